"""Folded stacks: lines ``frame;frame;…;frame WEIGHT``, as FlameGraph's scripts, bcc, py-spy and we write them.

The suffixes ``_[k]`` and ``_[j]`` of stackcollapse-perf.pl become the frame's kind. A first field ``process-PID`` or
``thread-PID/TID``, as our own writer adds it, becomes labels. Weights are integers; fractional ones are summed, and
the remainder from rounding one stack is carried to the next. Weights of a difference may be negative. Empty lines, and
lines that begin with ``#`` and have no weight, are comments.

Lines with two weights, ``stack BEFORE AFTER``, are how difffolded.pl and we write comparisons. They are read as a
comparison if all lines of the first 64 KiB have two integers, and no stack occurs twice. Otherwise a number before the
weight belongs to the name.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from ...model import Frame, Kind, Labels, Profile, Sample, Stack, ValueType
from ...model.timeline import Timeline, in_order
from ...transforms.diff import AFTER, BEFORE
from ..base.options import ReadOptions
from ..base.skipped import EXPECTED_TEXT, NUL, Skipped
from ..base.source import HEAD, Source

EXPECTED = "a folded stack: frame;frame;frame WEIGHT"
EXPECTED_WEIGHT = "a weight of at most 9223372036854775807, which is what 64 bits hold"
EXPECTED_PAIR = "a stack with two weights, as the others: frame;frame BEFORE AFTER"

SEPARATOR = b"\n"
"""Separates stacks: the text can be cut after it."""

_LINE = re.compile(rb"[^\s#].*[ \t]-?\d+(?:\.\d*)?\s*\Z")
_HASH = re.compile(rb"#[^;]*;.*[ \t]\d+\Z")
"""A stack of a thread whose name begins with ``#``."""
_PAIR = re.compile(rb"(\S.*)[ \t](\d{1,36})[ \t](\d{1,36})\s*\Z", re.DOTALL)
_NUMBER = re.compile(rb"-?(?:\d+(?:\.\d*)?|\.\d+)\Z")
_ROOT = re.compile(r"(.*)-(\d{1,10})(?:/(\d{1,10}))?\Z", re.DOTALL)
_SNIFFED = 200
_KINDS: dict[bytes, Kind] = {b"_[k]": "kernel", b"_[j]": "jit"}
_MAX_DIGITS = 18
"""Keeps weights, and mostly their sums, within 64 bits."""
_MAX_WEIGHT = 2**63 - 1
_CACHE = 1 << 15
"""Number of callers whose frames are cached."""
_NO_COUNT, _BAD, _NO_PAIR = "lines without a count", "lines not understood", "lines without two weights"
_TOO_LARGE = "weights beyond 64 bits"


def sniff(head: bytes) -> bool:
    """Whether at least half of the first lines that are not comments end in a number; all of them have to if none has
    two frames, because many lists have numbers. If all lines look like comments: whether one of them is a stack."""
    first = head[: head.rfind(b"\n")] if len(head) >= HEAD else head
    if not is_text(first):
        return False
    lines = [line for line in first.split(b"\n")[:_SNIFFED] if line.strip() and b"\0" not in line]
    stacks = [line for line in lines if not line.startswith(b"#")]
    if not stacks:
        return any(map(_HASH.match, lines))
    found = [line for line in stacks if _LINE.match(line)]
    return 2 * len(found) >= len(stacks) if any(b";" in line for line in found) else len(found) == len(stacks)


def is_text(head: bytes) -> bool:
    """Whether at most half of the lines have a NUL byte: only damaged text has one."""
    if b"\0" not in head:
        return True
    lines = [line for line in head.split(b"\n") if line.strip()]
    return 2 * sum(b"\0" in line for line in lines) <= len(lines)


def read(source: Source, options: ReadOptions) -> Profile:
    """One sample per distinct stack. Raises StallscopeError when there are lines, but no stack."""
    return _read_pairs(source) if _has_pairs(source.head) else _read_weights(source, ordered=options.in_order)


def _read_weights(source: Source, *, ordered: bool) -> Profile:
    tally = FoldedLines(source.name, EXPECTED)
    steps = _Steps()
    for chunk in source.chunks():
        tally.add(chunk)
        if ordered:
            steps.add(chunk)
    weights = tally.weights()
    for stack in [stack for stack in weights if stack[-1:] == b";"]:
        weight = weights.pop(stack)
        weights[_trimmed(stack)] = weights.get(_trimmed(stack), 0) + weight
    tally.skipped.check(source, bool(weights), EXPECTED)
    profile = Profile([ValueType("samples", "count")], title="folded stacks")
    tally.skipped.tell(profile)
    if ordered:
        profile.timeline = steps.timeline(source)
    texts = list(weights)
    # Removes the texts one by one, so that not all of them are in memory together with the stacks.
    profile.samples = [
        Sample(stack, (weights.pop(text),), labels)
        for text, (stack, labels) in zip(texts, _stacks(texts, source), strict=True)
    ]
    return profile


class _Steps:
    """The lines in their order, as ``--flamechart`` of flamegraph.pl uses them."""

    def __init__(self) -> None:
        self._texts: list[bytes] = []
        self._weights: list[int] = []
        self._known: dict[bytes, bytes] = {}
        """Makes equal texts one object."""
        self._rest = 0.0

    def add(self, chunk: bytes) -> None:
        """Adds the lines that `FoldedLines.add` counts. Fractions: rounds the position where each line ends, not its
        weight, so that errors do not add up."""
        for line in chunk.split(b"\n"):
            text, _, number = line.rpartition(b" ")
            if not (number.isdigit() and text):
                text, _, number = b" ".join(line.strip().rsplit(None, 1)).rpartition(b" ")
            if not (text and _NUMBER.match(number)) or _is_too_large(number) or b"\0" in text:
                continue
            if number.isdigit():
                weight = int(number)
            else:
                self._rest += float(number)
                weight = round(self._rest)
                self._rest -= weight
            text = _trimmed(text)
            self._texts.append(self._known.setdefault(text, text))
            self._weights.append(weight)

    def timeline(self, source: Source) -> Timeline:
        """A timeline whose clock counts weights; one track per process or thread."""
        stacks = zip(_stacks(self._texts, source), self._weights, strict=True)
        return in_order(((stack, labels, weight) for (stack, labels), weight in stacks), "count")


def _has_pairs(head: bytes) -> bool:
    """Whether all complete lines have two weights, and no stack occurs twice; ignores lines that are skipped later."""
    stacks = set()
    for line in head[: head.rfind(b"\n") + 1].split(b"\n"):
        match = _PAIR.match(line)
        if b"\0" in line or (match and (_is_too_large(match[2]) or _is_too_large(match[3]))):
            continue
        if match and match[1] not in stacks:
            stacks.add(match[1])
        elif line.strip() and not line.startswith(b"#"):
            return False
    return bool(stacks)


def _read_pairs(source: Source) -> Profile:
    """Reads a differential profile, see `transforms.diff`."""
    skipped = Skipped(source.name, EXPECTED_PAIR)
    sums: dict[bytes, tuple[int, int]] = {}
    number = 0
    for chunk in source.chunks():
        for line in chunk.removesuffix(b"\n").split(b"\n"):
            number += 1
            match = _PAIR.match(line)
            if b"\0" in line:
                skipped.add(NUL, number, expected=EXPECTED_TEXT)
            elif match and (_is_too_large(match[2]) or _is_too_large(match[3])):
                skipped.add(_TOO_LARGE, number, expected=EXPECTED_WEIGHT)
            elif match:
                stack = _trimmed(match[1])
                before, after = sums.get(stack, (0, 0))
                sums[stack] = before + int(match[2]), after + int(match[3])
            elif line.strip() and not line.startswith(b"#"):
                skipped.add(_NO_PAIR, number)
    profile = Profile([ValueType(AFTER, "count"), ValueType(BEFORE, "count")], title="folded stacks: before and after")
    profile.samples = [
        Sample(stack, (after, before), labels)
        for (before, after), (stack, labels) in zip(sums.values(), _stacks(sums, source), strict=True)
    ]
    skipped.tell(profile)
    return profile


class FoldedLines:
    """Weights by the text of the stack, which precedes the last space or tab of a line."""

    def __init__(self, name: str, expected: str) -> None:
        """``name`` of the input, and what a line is ``expected`` to be, for messages."""
        self.skipped = Skipped(name, expected)
        self._whole: defaultdict[bytes, int] = defaultdict(int)
        self._parts: dict[bytes, float] = {}
        self._line = 1

    def add(self, chunk: bytes) -> None:
        """Counts the lines of ``chunk``, which continues where the last one ended."""
        weights = self._whole
        lines = chunk.split(b"\n")
        if b"\0" in chunk:
            self._empty_damaged(lines)
        for i, line in enumerate(lines):
            stack, _, weight = line.rpartition(b" ")
            # isdigit() because int() accepts more than digits; for the length see _MAX_DIGITS.
            if weight.isdigit() and stack and len(weight) <= _MAX_DIGITS:
                weights[stack] += int(weight)
            elif line:
                self._add_unusual(line, self._line + i)
        self._line += len(lines) - 1

    def _empty_damaged(self, lines: list[bytes]) -> None:
        """Counts the lines with NUL bytes, and makes them empty."""
        for i, line in enumerate(lines):
            if b"\0" in line:
                self.skipped.add(NUL, self._line + i, expected=EXPECTED_TEXT)
                lines[i] = b""

    def _add_unusual(self, line: bytes, number: int) -> None:
        line = line.strip()
        if not line:
            return
        parts = line.rsplit(None, 1)
        stack, weight = parts if len(parts) == 2 else (line, b"")
        if _NUMBER.match(weight):
            if _is_too_large(weight):
                self.skipped.add(_TOO_LARGE, number, expected=EXPECTED_WEIGHT)
            elif len(weight) > 2 * _MAX_DIGITS:
                self.skipped.add(_BAD, number)
            elif weight.removeprefix(b"-").isdigit():
                self._whole[stack] += int(weight)
            else:
                self._parts[stack] = self._parts.get(stack, 0.0) + float(weight)
                self.skipped.rounded += 1
        elif weight[-1:].isdigit() and b";" not in weight:
            self.skipped.add(_BAD, number)
        elif not line.startswith(b"#"):
            self.skipped.add(_NO_COUNT, number)

    def weights(self) -> dict[bytes, int]:
        """The sums; clears the tally."""
        exact, written = 0.0, 0
        for stack, part in self._parts.items():
            exact += part
            step = round(exact) - written
            written += step
            self._whole[stack] += step
        self._parts = {}
        weights, self._whole = self._whole, defaultdict(int)
        return weights


def _is_too_large(weight: bytes) -> bool:
    """Whether this number has more than 64 bits."""
    digits = weight.partition(b".")[0].removeprefix(b"-")
    return len(digits) > _MAX_DIGITS + 1 or int(digits or b"0") > _MAX_WEIGHT


def _trimmed(stack: bytes) -> bytes:
    """``stack`` without a trailing ``;``, which heaptrack_print writes."""
    return stack.rstrip(b";") or stack


def _stacks(texts: Iterable[bytes], source: Source) -> Iterator[tuple[Stack, Labels]]:
    """Yields the frames and labels of each text of ``source``. StallscopeError when that takes too much memory."""
    frames, roots = _Frames(), _Roots()
    callers: dict[bytes, tuple[Stack, Labels]] = {}
    for text in texts:
        source.check_memory(len(text))
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
        yield stack, labels


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
        frame = self[field] = Frame(name.decode(errors="surrogateescape") if name.strip() else "[unknown]", kind)
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
