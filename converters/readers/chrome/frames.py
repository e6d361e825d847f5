"""Frames for the events of a Chrome trace: function and place, in the notations of the common writers."""

from __future__ import annotations

import json
import re
from typing import Any

from ...model import Frame, Kind, Labels
from ..base.python_frames import kind_of, root_labels

_TORCH_FUNCTION = re.compile(r"(.+?)\((\d{1,9})\): (.+)\Z", re.DOTALL)
"""``file.py(12): function``, in PyTorch's profiler with category python_function."""
_VIZTRACER = re.compile(r"(.+?) \((.+):(\d{1,9})\)\Z", re.DOTALL)
"""``function (file.py:12)``."""
_VIZTRACER_CATEGORIES = ("fee", "FEE")
"""Categories of version 1, and of the versions before it."""
_KINDS: dict[str, Kind] = {
    "python_function": "python",
    "cuda_runtime": "api",
    "cuda_driver": "api",
    "kernel": "other",
    "gpu_memcpy": "other",
    "gpu_memset": "other",
    "gpu_user_annotation": "other",
    "user_annotation": "other",
}
"""Kinds by the categories of PyTorch's profiler (Kineto); anything else is native."""
_MAX_ARGUMENTS = 16
_MAX_TEXT = 200
_MAX_INTEGER = 1 << 63
_decode = json.JSONDecoder(parse_float=str).decode
_NO_LABELS: dict[str, str | int] = {}


class Frames:
    """Makes each frame once, and maps frames and their events' names to indices."""

    def __init__(self, name_of: list[int]) -> None:
        """``name_of`` is filled with the index of the events' name for each frame index."""
        self.frames: list[Frame] = []
        self._name_of = name_of
        self._names: dict[str, int] | None = None
        """Filled by the first call of `name`, like ``name_of``: many traces never need it."""
        self._texts: list[str] = []
        """The names of the frames before that call."""
        self._plain: dict[str, dict[str, int]] = {}
        """Frames without a file that do not represent labels, by category and name."""
        self._known: dict[tuple[str, str, str, int], tuple[int, dict[str, str | int]]] = {}

    def of(self, event: dict[str, Any]) -> tuple[int, dict[str, str | int]]:
        """Index of the event's frame, and the labels that it represents: py-spy's processes and threads."""
        name, category = event.get("name"), event.get("cat")
        if type(name) is not str or type(category) is not str:
            name, category = str(name or ""), str(category or "")
        file, line = "", 0
        args = event.get("args")
        if args and isinstance(args, dict) and ("filename" in args or "line" in args):
            file = args.get("filename", "")
            line = args.get("line", 0)
            if not isinstance(file, str) or not isinstance(line, int):
                file, line = "", 0
        if not file and not line and category != "py-spy":
            plain = self._plain.get(category)
            if plain is None:
                plain = self._plain[category] = {}
            index = plain.get(name)
            if index is None:
                index = plain[name] = self._add(name, _frame(name, category, "", 0))
            return index, _NO_LABELS
        key = (name, category, file, line)
        known = self._known.get(key)
        if known is None:
            roots = root_labels(name) if category == "py-spy" and not file else _NO_LABELS
            known = self._known[key] = self._add(name, _frame(name, category, file, line)), roots
        return known

    def _add(self, name: str, frame: Frame) -> int:
        self.frames.append(frame)
        if self._names is None:
            self._texts.append(name)
        else:
            self._name_of.append(self.name(name))
        return len(self.frames) - 1

    def name(self, name: str) -> int:
        """Index of an event's name."""
        if self._names is None:
            self._names = {}
            self._name_of += [self.name(text) for text in self._texts]
            self._texts = []
        return self._names.setdefault(name, len(self._names))


def _frame(name: str, category: str, file: str, line: int) -> Frame:
    if category == "python_function" and (match := _TORCH_FUNCTION.match(name)):
        return Frame(match[3], "python", file=match[1], line=int(match[2]))
    if category in _VIZTRACER_CATEGORIES and (match := _VIZTRACER.match(name)):
        return Frame(match[1], kind_of(match[2]), file=match[2], line=int(match[3]))
    if not file and not line:
        return Frame(name if name.strip() else "[unknown]", _KINDS.get(category, "native"))
    kind = kind_of(file) if file else _KINDS.get(category, "native")
    return Frame(name if name.strip() else "[unknown]", kind, file=file, line=line if 0 < line < _MAX_INTEGER else 0)


def arguments(event: dict[str, Any]) -> Labels:
    """The event's arguments that are numbers or text (shortened), without the function's place: its frame has that."""
    args = event.get("args")
    if not args or not isinstance(args, dict):
        return ()
    pairs: list[tuple[str, str | int]] = []
    for key, value in args.items():
        if type(value) is int:
            if -_MAX_INTEGER < value < _MAX_INTEGER and key != "line":
                pairs.append((key[:_MAX_TEXT], value))
        elif isinstance(value, str) and key != "filename":
            pairs.append((key[:_MAX_TEXT], value[:_MAX_TEXT]))
    return tuple(sorted(pairs)[:_MAX_ARGUMENTS])


def arguments_in(text: bytes) -> Labels:
    """`arguments` of the text of an event's last members: ``, "args": {…}``. () for invalid JSON."""
    try:
        return arguments(_decode(f'{{"":0,{text.decode()}}}'))
    except (ValueError, RecursionError):
        return ()
