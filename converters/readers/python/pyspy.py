"""The text of ``py-spy record --format raw``: lines ``function (file.py:12);…;function (file.py:3) SAMPLES``.

With --subprocesses and --threads the first fields are ``process 12:"command line"``, once per ancestor, and
``thread (13): name``: the innermost process and the thread become labels. Functions of native code have a library in
brackets, or a file that is not Python's; with --nolineno there are no line numbers. Command lines and thread names may
contain semicolons: fields belong to them up to the quotation mark, or up to the first frame.

py-spy's other formats have other readers: dumps (`pyspy_dump`), speedscope and Chrome trace.
"""

from __future__ import annotations

import re

from ...model import Frame, Labels, Profile, Sample, Stack, ValueType
from ..base.options import ReadOptions
from ..base.python_frames import py_spy_frame, root_labels
from ..base.skipped import Skipped
from ..base.source import Source
from . import pyspy_dump
from .line_weights import LineWeights

EXPECTED = "a stack of py-spy: function (file.py:12);function (file.py:3) SAMPLES"

_SNIFFED = 20
_FRAME = re.compile(rb".+ \([^()]+\)\Z", re.DOTALL)
_PYTHON = re.compile(rb".+ \((?:[^()]+\.pyx?|<[^()]+>)(?::\d{1,18})?\)\Z", re.DOTALL)
_ROOT = re.compile(rb'process \d{1,18}:"|thread \((?:0x[0-9a-fA-F]{1,16}|\d{1,18})\)')
_CACHE = 1 << 15
"""Maximum number of callers whose frames are cached."""
_MAX_DIGITS = 18
_BAD, _EMPTY = "lines not understood", "samples without a stack"


def sniff(head: bytes) -> bool:
    """Whether one of the first lines begins with a process or thread of py-spy, or has only frames, at least one of
    them in Python; or whether it is a dump."""
    return pyspy_dump.sniff(head) or any(map(_is_stack, head.splitlines()[:_SNIFFED]))


def _is_stack(line: bytes) -> bool:
    stack, _, weight = line.rpartition(b" ")
    if not weight.isdigit() or not stack:
        return False
    fields = stack.split(b";")
    return _ROOT.match(fields[0]) is not None or (all(map(_FRAME.match, fields)) and any(map(_PYTHON.match, fields)))


def read(source: Source, options: ReadOptions) -> Profile:
    """One sample per distinct stack and thread. Raises StallscopeError when there are lines, but no stack."""
    if pyspy_dump.sniff(source.head):
        return pyspy_dump.read(source, options)
    skipped = Skipped(source.name, EXPECTED)
    tally = LineWeights(lambda line, number: _skip(skipped, line.strip(), number))
    for chunk in source.chunks():
        tally.add(chunk)
    skipped.check(source, bool(tally.weights), EXPECTED)
    profile = Profile([ValueType("samples", "count")], title="py-spy samples")
    skipped.tell(profile)
    profile.samples = _samples(tally.weights, _Frames(options.addrs))
    return profile


def _skip(skipped: Skipped, line: bytes, number: int) -> None:
    """Counts a line without a stack: threads without Python frames have only a weight; other lines are errors."""
    if line.isdigit() and len(line) <= _MAX_DIGITS:
        skipped.add(_EMPTY, count=int(line))
    elif line:
        skipped.add(_BAD, number)


def _samples(weights: dict[bytes, int], frames: _Frames) -> list[Sample]:
    """Removes the stacks from ``weights`` one by one, so that they are not in memory twice."""
    callers: dict[bytes, tuple[Stack, Labels]] = {}
    samples = []
    for text in list(weights):
        weight = weights.pop(text)
        caller, separator, leaf = text.rpartition(b";")
        if not separator or leaf[-1:] != b")" or _ROOT.match(leaf):
            stack, labels = _parse(text, frames)
        else:
            known = callers.get(caller)
            if known is None:
                if len(callers) >= _CACHE:
                    callers.clear()
                known = callers[caller] = _parse(caller, frames)
            stack, labels = (*known[0], frames[leaf]), known[1]
        samples.append(Sample(stack, (weight,), labels))
    return samples


def _parse(text: bytes, frames: _Frames) -> tuple[Stack, Labels]:
    """The frames and the labels of a stack."""
    fields = text.split(b";")
    labels: dict[str, str | int] = {}
    start = 0
    while start < len(fields) and _ROOT.match(fields[start]):
        end = _end_of_root(fields, start)
        if not (more := root_labels(b";".join(fields[start:end]).decode(errors="surrogateescape"))):
            break
        if "pid" in more:
            labels.pop("process", None)
        labels.update(more)
        start = end
    return tuple(map(frames.__getitem__, fields[start:])), tuple(sorted(labels.items()))


def _end_of_root(fields: list[bytes], start: int) -> int:
    """Index after the fields of a process or thread, whose name may contain semicolons."""
    end = start + 1
    if fields[start].startswith(b"process"):
        while end < len(fields) and (len(fields[end - 1]) < 2 or fields[end - 1][-1:] != b'"'):
            end += 1
    elif b": " in fields[start]:
        while end < len(fields) and not _FRAME.match(fields[end]):
            end += 1
    return end


class _Frames(dict[bytes, Frame]):
    """Field → frame."""

    def __init__(self, addrs: bool) -> None:
        super().__init__()
        self._addrs = addrs

    def __missing__(self, field: bytes) -> Frame:
        frame = self[field] = py_spy_frame(field.decode(errors="surrogateescape"), self._addrs)
        return frame
