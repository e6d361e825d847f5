"""Folded stacks: ``frame;frame;…;frame WEIGHT`` a line, as FlameGraph's scripts, bcc, py-spy and we write them.

The suffixes ``_[k]`` and ``_[j]`` of stackcollapse-perf.pl become the frame's kind. A first field ``process-PID`` or
``thread-PID/TID``, as our own writer puts it, becomes labels. Weights are whole numbers; of others the sums are
rounded, so that what rounding takes from one stack the next one gets. Empty lines, and lines that
begin with ``#`` and have no weight, are comments.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from ..model import Frame, Kind, Labels, Profile, Sample, Stack, ValueType
from .options import ReadOptions
from .skipped import Skipped
from .source import Source

EXPECTED = "a folded stack: frame;frame;frame WEIGHT"

SEPARATOR = b"\n"
"""Between stacks: the text can be cut after it."""

_LINE = re.compile(rb"[^\s#].*[ \t]\d+(?:\.\d*)?\s*\Z")
_NUMBER = re.compile(rb"\d+\.?\d*\Z|\.\d+\Z")
_ROOT = re.compile(r"(.*)-(\d{1,10})(?:/(\d{1,10}))?\Z", re.DOTALL)
_KINDS: dict[bytes, Kind] = {b"_[k]": "kernel", b"_[j]": "jit"}
_MAX_DIGITS = 18
"""So that weights fit into 64 bits, and their sums mostly too."""
_CACHE = 1 << 15
"""Callers whose frames are remembered."""
_NO_COUNT, _BAD = "lines without a count", "lines not understood"


def sniff(head: bytes) -> bool:
    """Whether the first line that is no comment ends in a number."""
    for line in head.splitlines():
        if line.strip() and not line.startswith(b"#"):
            return _LINE.match(line) is not None and b"\0" not in line
    return False


def read(source: Source, _: ReadOptions) -> Profile:
    """One sample per distinct stack. Raises StallscopeError when there are lines, and none is a stack."""
    tally = FoldedLines(source.name, EXPECTED)
    for chunk in source.chunks():
        tally.add(chunk)
    weights = tally.weights()
    tally.skipped.check(source, bool(weights), EXPECTED)
    profile = Profile([ValueType("samples", "count")], title="folded stacks")
    tally.skipped.tell(profile)
    profile.samples = list(_samples(weights))
    return profile


class FoldedLines:
    """Weights by the text of the stack, which is what stands before the last space or tab of a line."""

    def __init__(self, name: str, expected: str) -> None:
        """``name`` of the input and what is ``expected`` of a line, for messages."""
        self.skipped = Skipped(name, expected)
        self._whole: defaultdict[bytes, int] = defaultdict(int)
        self._parts: dict[bytes, float] = {}
        self._line = 1

    def add(self, chunk: bytes) -> None:
        """Counts the lines of ``chunk``, which begins where the last one ended."""
        weights = self._whole
        lines = chunk.split(b"\n")
        for i, line in enumerate(lines):
            stack, _, weight = line.rpartition(b" ")
            # isdigit: int() takes more than we do. Short: see _MAX_DIGITS.
            if weight.isdigit() and stack and len(weight) <= _MAX_DIGITS:
                weights[stack] += int(weight)
            elif line:
                self._add_unusual(line, self._line + i)
        self._line += len(lines) - 1

    def _add_unusual(self, line: bytes, number: int) -> None:
        line = line.strip()
        if not line:
            return
        parts = line.rsplit(None, 1)
        stack, weight = parts if len(parts) == 2 else (line, b"")
        if len(weight) <= 2 * _MAX_DIGITS and _NUMBER.match(weight):
            if len(weight.partition(b".")[0]) > _MAX_DIGITS:
                self.skipped.add(_BAD, number)
            elif weight.isdigit():
                self._whole[stack] += int(weight)
            else:
                self._parts[stack] = self._parts.get(stack, 0.0) + float(weight)
                self.skipped.rounded += 1
        elif weight[-1:].isdigit() and b";" not in weight:
            self.skipped.add(_BAD, number)
        elif not line.startswith(b"#"):
            self.skipped.add(_NO_COUNT, number)

    def weights(self) -> dict[bytes, int]:
        """The sums, none below 0; the tally is empty afterwards."""
        exact, written = 0.0, 0
        for stack, part in self._parts.items():
            exact += part
            step = round(exact) - written
            written += step
            self._whole[stack] += step
        self._parts = {}
        weights, self._whole = self._whole, defaultdict(int)
        return weights


def _samples(weights: dict[bytes, int]) -> Iterator[Sample]:
    """Takes the stacks out of ``weights`` one by one: not all of them are in memory twice."""
    frames, roots = _Frames(), _Roots()
    callers: dict[bytes, tuple[Stack, Labels]] = {}
    for text in list(weights):
        weight = weights.pop(text)
        caller, separator, leaf = text.rpartition(b";")
        if not separator:
            stack, labels = _split(text, frames, roots)
        else:
            known = callers.get(caller)
            if known is None:
                if len(callers) >= _CACHE:
                    callers.clear()
                known = callers[caller] = _split(caller, frames, roots)
            stack, labels = known
            stack = (*stack, frames[leaf])
        yield Sample(stack, (weight,), labels)


def _split(text: bytes, frames: _Frames, roots: _Roots) -> tuple[Stack, Labels]:
    fields = text.split(b";")
    labels = roots[fields[0]]
    return tuple(map(frames.__getitem__, fields[1:] if labels else fields)), labels


class _Frames(dict[bytes, Frame]):
    """Field → frame."""

    def __missing__(self, field: bytes) -> Frame:
        kind = _KINDS.get(field[-4:], "native")
        name = field[:-4] if kind != "native" else field
        if not name:
            name, kind = field, "native"
        frame = self[field] = Frame(name.decode(errors="surrogateescape") or "[unknown]", kind)
        return frame


class _Roots(dict[bytes, Labels]):
    """First field → labels; () when it is a frame."""

    def __missing__(self, field: bytes) -> Labels:
        match = _ROOT.match(field.decode(errors="surrogateescape"))
        labels: Labels = ()
        if match:
            name, pid, tid = match[1], int(match[2]), match[3]
            pairs: dict[str, str | int] = {"pid": pid}
            if name != "[unknown]":
                pairs["process"] = name
            if tid is not None:
                pairs["tid"] = int(tid)
                if name != "[unknown]":
                    pairs["thread"] = name
            labels = tuple(sorted(pairs.items()))
        self[field] = labels
        return labels
