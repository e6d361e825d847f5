"""Frames of the events of a Chrome trace: what the common writers tell of a function, and where."""

from __future__ import annotations

import json
import re
from typing import Any

from ..model import Frame, Kind, Labels
from .python_frames import kind_of, root_labels

_TORCH_FUNCTION = re.compile(r"(.+?)\((\d{1,9})\): (.+)\Z", re.DOTALL)
"""``file.py(12): function``, category python_function, of PyTorch's profiler."""
_VIZTRACER = re.compile(r"(.+?) \((.+):(\d{1,9})\)\Z", re.DOTALL)
"""``function (file.py:12)``."""
_VIZTRACER_CATEGORIES = ("fee", "FEE")
"""Of version 1, and of those before it."""
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
"""By the categories of PyTorch's profiler (Kineto); anything else is native."""
_MAX_ARGUMENTS = 16
_MAX_TEXT = 200
_MAX_INTEGER = 1 << 63
_decode = json.JSONDecoder(parse_float=str).decode
_NO_LABELS: dict[str, str | int] = {}


class Frames:
    """Makes each frame once, and knows them and their events' names by their index."""

    def __init__(self, name_of: list[int]) -> None:
        """``name_of`` is filled: of a frame, by its index, the index of the name that its events have."""
        self.frames: list[Frame] = []
        self._name_of = name_of
        self._names: dict[str, int] = {}
        self._known: dict[tuple[str, str, str, int], tuple[int, dict[str, str | int]]] = {}

    def of(self, event: dict[str, Any]) -> tuple[int, dict[str, str | int]]:
        """Index of the event's frame, and the labels that it stands for instead: py-spy's processes and threads."""
        name, category = str(event.get("name") or ""), str(event.get("cat") or "")
        file, line = "", 0
        args = event.get("args")
        if args and isinstance(args, dict):
            file = args.get("filename", "")
            line = args.get("line", 0)
            if not isinstance(file, str) or not isinstance(line, int):
                file, line = "", 0
        key = (name, category, file, line)
        known = self._known.get(key)
        if known is None:
            roots = root_labels(name) if category == "py-spy" and not file else _NO_LABELS
            known = self._known[key] = len(self.frames), roots
            self.frames.append(_frame(name, category, file, line))
            self._name_of.append(self.name(name))
        return known

    def name(self, name: str) -> int:
        """Index of an event's name."""
        return self._names.setdefault(name, len(self._names))


def _frame(name: str, category: str, file: str, line: int) -> Frame:
    if category == "python_function" and (match := _TORCH_FUNCTION.match(name)):
        return Frame(match[3], "python", file=match[1], line=int(match[2]))
    if category in _VIZTRACER_CATEGORIES and (match := _VIZTRACER.match(name)):
        return Frame(match[1], kind_of(match[2]), file=match[2], line=int(match[3]))
    kind = kind_of(file) if file else _KINDS.get(category, "native")
    return Frame(name or "[unknown]", kind, file=file, line=line if 0 < line < _MAX_INTEGER else 0)


def arguments(event: dict[str, Any]) -> Labels:
    """The event's arguments that are numbers or short texts; not where the function is, which its frame says."""
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
    """As `arguments`, of the last members of an event: ``, "args": {…}``. None for what is no JSON."""
    try:
        return arguments(_decode(f'{{"":0,{text.decode()}}}'))
    except (ValueError, RecursionError):
        return ()
