"""Folded stacks, FlameGraph's text format: ``process-PID;frame;…;frame WEIGHT``, one line per distinct stack.

Written like stackcollapse-perf.pl --all --pid: spaces of the process name become ``_``, kernel frames end in
``_[k]`` and JIT frames in ``_[j]``; with per-thread roots ``thread-PID/TID``, like its --tid; with roots of other
labels one field each. Nanoseconds become microseconds, unless ``options`` say otherwise. A differential profile has two
weights, before and after, like the output of difffolded.pl. Every reader must be able to find the weight: a name
therefore never begins or ends with white space, nor ends in a space and a number (a second weight for flamegraph.pl):
that space is written ``\\x20``. No function is called ``-`` or ``--`` like bcc's delimiters (frames of kind other):
that is written ``\\x2d``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import BinaryIO

from ..base.text import folded_name
from ..model import Frame, Kind, Labels, Profile
from ..transforms.diff import is_differential
from ..transforms.labels import root_name, shown_id
from ..transforms.samples import ByFrame
from .base.options import WriteOptions, value_index

_SUFFIXES: dict[Kind, str] = {"kernel": "_[k]", "jit": "_[j]"}
_EDGE = re.compile(r"(?!\A \Z)(?:\A\s+|\s+\Z|\s(?=\d+(?:\.\d*)?\Z))")
"""Does not match a single space: perf has frames with that name, and stackcollapse-perf.pl prints them unchanged."""
_DELIMITERS = ("-", "--")
"""bcc's delimiters between the parts of a stack."""
_AFTER, _BEFORE = 0, 1
"""Columns of a differential profile."""


def write(profile: Profile, file: BinaryIO, options: WriteOptions) -> None:
    """Writes the lines sorted, equal stacks merged. Raises StallscopeError when ``options`` do not fit the profile.

    The weights of nanoseconds add up to the true total: the remainder from rounding one line is carried to the next,
    so each is less than 1 µs off. A stack whose weights are all 0 has no line.
    """
    index = value_index(profile, options)
    columns = (_BEFORE, _AFTER) if is_differential(profile) else (index,)
    merged = _merged(profile, columns, options)
    times = [options.microseconds and profile.value_types[i].unit == "nanoseconds" for i in columns]
    weights = [_Weights(1000 if is_time else 1) for is_time in times]
    for stack in sorted(merged):
        rounded = [weight.next(exact) for weight, exact in zip(weights, merged[stack], strict=True)]
        if any(rounded):
            file.write(f"{stack} {' '.join(map(str, rounded))}\n".encode())


class _Weights:
    """One column, rounded so that it adds up."""

    def __init__(self, scale: int) -> None:
        self._scale = scale
        self._exact = self._written = 0

    def next(self, exact: int) -> int:
        """The weight for the next line."""
        self._exact += exact
        weight = (self._exact + self._scale // 2) // self._scale - self._written
        self._written += weight
        return weight


def _merged(profile: Profile, columns: Sequence[int], options: WriteOptions) -> dict[str, list[int]]:
    """Sums of the columns by the text of the stack."""
    suffixes = {kind: suffix for kind, suffix in _SUFFIXES.items() if kind in options.marks}
    field_of = ByFrame(lambda frame: _frame_field(frame) + suffixes.get(frame.kind, "")).__getitem__
    roots = _Roots(profile, options)
    merged: dict[str, list[int]] = {}
    for stack, values, labels in profile.samples:
        text = roots[labels] + ";".join(map(field_of, stack))
        sums = merged.setdefault(text.removesuffix(";") or _field(""), [0] * len(columns))
        for i, column in enumerate(columns):
            sums[i] += values[column]
    return merged


class _Roots(dict[Labels, str]):
    """Labels → the part before the frames: fields that each end in ``;``, or "" without any."""

    def __init__(self, profile: Profile, options: WriteOptions) -> None:
        self._per_thread = options.per_thread
        self._keys = options.roots
        if self._keys is not None:
            there = {labels for _, _, labels in profile.samples}
            self._keys = tuple(key for key in self._keys if any(root_name(labels, key) for labels in there))

    def __missing__(self, labels: Labels) -> str:
        if self._keys is None:
            names = [_thread_root(dict(labels)) if self._per_thread else root_name(labels, "process", always=True)]
            names = list(filter(None, names))
        else:
            names = [root_name(labels, key) or f"[unknown {key}]" for key in self._keys]
        text = self[labels] = "".join(f"{_field(name.replace(' ', '_'))};" for name in names)
        return text


def _thread_root(labels: dict[str, str | int]) -> str:
    """``thread-PID/TID``; "" for labels without a process."""
    pid, tid = shown_id(labels, "pid"), shown_id(labels, "tid")
    root = str(labels.get("thread") or labels.get("process") or "")
    if pid:
        root = f"{root or '[unknown]'}-{pid}"
    return f"{root}/{tid}" if tid else root


def _frame_field(frame: Frame) -> str:
    if frame.name in _DELIMITERS and frame.kind != "other":
        return "".join(map(_escape, frame.name))
    return _field(frame.name)


def _field(name: str) -> str:
    """``name`` as one field; never empty."""
    return _EDGE.sub(lambda spaces: "".join(map(_escape, spaces[0])), folded_name(name)) or "[unknown]"


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
