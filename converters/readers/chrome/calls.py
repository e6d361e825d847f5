"""Calls of one thread in a Chrome trace: sorted, made to nest, and summed while they are read."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from operator import eq, gt

from ...model import Frame, Labels, Stack
from ...model.timeline import Span
from .frames import arguments_in

OPEN = (1 << 63) - 1
"""The end of a call that has not ended."""
END = -(1 << 63)
"""Marks a record that is not a call, but the end of the innermost open one."""
HIDDEN = -1
"""The frame of a call that contains others but is not shown."""
ANY = -1
"""The name of an end event without a name."""
MAX_DEPTH = 2_000
"""Maximum depth of nested calls: memory grows with its square if each call has its own stack."""

_NO_BEGIN, _NO_END = "ends of calls without a begin", "calls without an end"
_CUT = "calls that overlapped others, shortened"
_DEEP = "calls too deep, counted in their callers"
_CLOCK = 1000
"""Maximum difference between two clocks that tick in µs, in ns."""
_ROOT = 0

Lose = Callable[[str, int], None]


class LateCall(Exception):
    """A call began before others that have already been summed."""


class _Nodes(dict[int, int]):
    """Caller << 32 | frame → stack, all indices; 0 is the empty stack. Missing stacks are added, unless they are too
    deep: then the result is the caller."""

    def __init__(self) -> None:
        super().__init__()
        self.callers, self.frames = array("i", [_ROOT]), array("i", [HIDDEN])
        self._depths = array("i", [0])
        self.times, self.counts = [0], array("q", [0])
        """Total time (which may exceed 64 bits) and number of calls of each stack's innermost frame."""

    def __missing__(self, key: int) -> int:
        caller = key >> 32
        if self._depths[caller] >= MAX_DEPTH:
            return caller
        node = self[key] = len(self.callers)
        self.callers.append(caller)
        self.frames.append(key & 0xFFFF_FFFF)
        self._depths.append(self._depths[caller] + 1)
        self.times.append(0)
        self.counts.append(0)
        return node


class Calls:
    """Records of one pid and tid, in columns; times are ns. ``labels`` are those given by the events themselves.

    ``frames[i]`` is an index into the trace's frames (or HIDDEN); for an END, an index into ``names`` (or ANY).

    If two calls overlap without nesting, the first one ends where the second one begins: no time is lost, and none
    counts twice. PyTorch's annotations overlap in this way: they begin inside a function, and continue after it.
    HIDDEN calls end with the call around them instead.
    """

    __slots__ = (
        "_done", "_kept", "_last_end", "_last_mark", "_lone", "_lone_at", "_names", "_nodes", "args", "ends", "first",
        "frames", "labels", "last", "starts",
    )  # fmt: skip

    def __init__(self, names: list[int], *, keep_args: bool) -> None:
        """``names``: for each frame, the index of its name in the trace."""
        self.labels: dict[str, str | int] = {}
        self.starts, self.ends = array("q"), array("q")
        self.frames = array("i")
        self.args: dict[int, Labels | bytes] | None = {} if keep_args else None
        """Record index to arguments, for records that have some."""
        self.first: int | None = None
        """Begin of the earliest call; None before any call."""
        self.last: int | None = None
        """End of the last call of those that are shown and summed; None before any."""
        self._names = names
        self._done = END
        self._kept = 0
        self._last_mark = self._last_end = END
        self._lone: Counter[int] = Counter()
        """Number of ends without an open call by name, for the latest time with such ends."""
        self._lone_at = END
        self._nodes: _Nodes | None = None

    @property
    def is_new(self) -> bool:
        """Whether there are records that `fold` has not processed."""
        return len(self.starts) > self._kept

    @property
    def count(self) -> int:
        """Number of calls, including those already summed."""
        return sum(end != END for end in self.ends) + sum(self._nodes.counts if self._nodes else ())

    def began(self) -> int | None:
        """Begin of the earliest call that has not been summed."""
        if END not in self.ends:
            return min(self.starts, default=None)
        return min((start for start, end in zip(self.starts, self.ends, strict=True) if end != END), default=None)

    def keep(self, args: Labels | bytes) -> None:
        """Sets the arguments of the next record, or the text that contains them."""
        if self.args is not None:
            self.args[len(self.starts)] = args

    def fold(self, lose: Lose, *, final: bool = False) -> None:
        """Sums the calls that no later record can change, provided that records come in time order; sums all calls if
        ``final``. LateCall if a record came too late."""
        if not self.starts:
            return
        if min(islice(self.starts, self._kept, None), default=self._done) < self._done:
            raise LateCall
        firsts = [first for first in (self.first, self.began()) if first is not None]
        self.first = min(firsts, default=None)
        if not final and not self._ordered():
            return
        self._pair(lose, final=final)
        until = OPEN if final else max(self._settled(), self._done)
        self._keep(self._add_up(until, lose), until)
        self._done = until

    def sums(self, frames: list[Frame]) -> Iterator[tuple[Stack, int, int]]:
        """(stack, self time, number of calls) for each stack, in the order of their first calls."""
        nodes = self._nodes or _Nodes()
        stacks: list[Stack] = [()]
        times = nodes.times.copy()
        for parent, time in zip(nodes.callers, nodes.times, strict=True):
            times[parent] -= time
        paths = zip(nodes.callers, nodes.frames, strict=True)
        for node, (parent, frame) in enumerate(islice(paths, 1, None), 1):
            stacks.append((*stacks[parent], frames[frame]))
            if nodes.counts[node]:
                yield stacks[node], times[node], nodes.counts[node]

    def spans(self, zero: int, frames: list[Frame], lose: Lose) -> list[Span]:
        """All calls, callers first; times relative to ``zero``."""
        self._pair(lose, final=True)
        starts, ends, indices, args = self.starts, self.ends, self.frames, self.args or {}
        spans: list[Span] = []
        open_ = [_OpenSpan(OPEN + 1, HIDDEN, 0)]
        cut = deep = 0
        for i in self._order():
            start, end, frame = starts[i], ends[i], indices[i]
            while (top := open_[-1]).end <= start or (frame != HIDDEN and not _is_within(start, end, top.end)):
                if top.end > start:
                    cut += top.end - start > _CLOCK
                    top.end, top.moved = start, True
                open_.pop().finish(spans, zero)
            if frame == HIDDEN:
                end = min(end, top.end)
            elif end > top.end:
                _prolong(open_, end)
            depth = top.depth
            if frame == HIDDEN or depth >= MAX_DEPTH:
                deep += frame != HIDDEN
                open_.append(_OpenSpan(end, HIDDEN, depth))
            else:
                open_.append(_OpenSpan(end, len(spans), depth + 1))
                spans.append(Span(start - zero, end - zero, frames[frame], _arguments(args.pop(i, ()))))
        for each in open_:
            each.finish(spans, zero)
        lose(_CUT, cut)
        lose(_DEEP, deep)
        return spans

    def _ordered(self) -> bool:
        return not any(map(gt, self.starts, islice(self.starts, 1, None)))

    def _settled(self) -> int:
        """The time before which every call is complete, including everything that it calls."""
        until = self.starts[-1]
        open_ = next((start for start, end in zip(self.starts, self.ends, strict=True) if end == OPEN), None)
        if open_ is None:
            return until
        # An open call may later shorten others, or be shortened, unless all calls are pairs of begin and end.
        return min(until, self._last_mark) if self._last_end == END else min(until, open_)

    def _pair(self, lose: Lose, *, final: bool) -> None:
        """Sets the ends of begin records; the records of ends are left for `_order` to skip."""
        starts, ends = self.starts, self.ends
        if OPEN not in ends and END not in ends:
            self._last_end = max([self._last_end, *ends])
            return
        whole = (end for end in islice(ends, self._kept, None) if end != OPEN)
        self._last_end = max([self._last_end, *whole])
        marks = [i for i, end in enumerate(ends) if end in (OPEN, END)]
        if any(starts[i] < self._last_mark for i in marks if i >= self._kept):
            raise LateCall
        marks.sort(key=starts.__getitem__)
        self._last_mark = max(self._last_mark, starts[marks[-1]])
        open_, lone, unended = self._matched(marks)
        if final:
            unended += len(open_)
            last = max(self._last_mark, self._last_end)
            for begin in open_:
                ends[begin] = max(last, starts[begin])
        lose(_NO_BEGIN, lone)
        lose(_NO_END, unended)

    def _matched(self, marks: list[int]) -> tuple[list[int], int, int]:
        """(begins that are still open, number of ends without a begin, number of begins without an end)."""
        starts, ends = self.starts, self.ends
        open_: list[int] = []
        lone = unended = 0
        for i in marks:
            if ends[i] == OPEN:
                if self._is_over(i):
                    ends[i] = starts[i]
                    lone -= 1
                else:
                    open_.append(i)
            elif (depth := self._closed(open_, self.frames[i])) >= 0:
                unended += len(open_) - 1 - depth
                for begin in open_[depth:]:
                    ends[begin] = starts[i]
                del open_[depth:]
            else:
                lone += 1
                if starts[i] != self._lone_at:
                    self._lone.clear()
                    self._lone_at = starts[i]
                self._lone[self.frames[i]] += 1
        return open_, lone, unended

    def _is_over(self, begin: int) -> bool:
        """Whether the call's end preceded its begin in the file, both with the same time."""
        frame = self.frames[begin]
        if frame == HIDDEN or self.starts[begin] != self._lone_at or not self._lone[self._names[frame]]:
            return False
        self._lone[self._names[frame]] -= 1
        return True

    def _closed(self, open_: list[int], name: int) -> int:
        """Index of the open call to which an end belongs; -1 for none."""
        if not open_ or name == ANY:
            return len(open_) - 1
        frames, names = self.frames, self._names
        innermost = frames[open_[-1]]
        if innermost == HIDDEN or names[innermost] == name:
            return len(open_) - 1
        found = (i for i in range(len(open_) - 1, -1, -1) if frames[open_[i]] != HIDDEN)
        return next((i for i in found if names[frames[open_[i]]] == name), -1)

    def _records(self, until: int) -> Iterator[tuple[int, int, int]]:
        """(start, end, frame) of the calls that began before ``until``, sorted."""
        order = self._order()
        order = order[: bisect_left(order, until, key=self.starts.__getitem__)]
        columns = self.starts, self.ends, self.frames
        if isinstance(order, range):
            return islice(zip(*columns, strict=True), len(order))
        return zip(*(map(column.__getitem__, order) for column in columns), strict=True)

    def _order(self) -> Sequence[int]:
        """Indices of the calls sorted by start, the longest first; a range if they are already in that order."""
        starts, ends = self.starts, self.ends
        if self._ordered() and END not in ends and not any(map(eq, starts, islice(starts, 1, None))):
            return range(len(starts))
        order = [i for i, end in enumerate(ends) if end != END]
        order.sort(key=ends.__getitem__, reverse=True)
        order.sort(key=starts.__getitem__)
        return order

    def _add_up(self, until: int, lose: Lose) -> list[tuple[int, int, int]]:
        """Sums the calls that end before ``until``; returns the records of those that are still open then."""
        nodes = self._nodes = self._nodes or _Nodes()
        times, counts = nodes.times, nodes.counts
        last = END if self.last is None else self.last
        # The innermost open call; if it is not shown, its node is its caller's. ``around`` has the calls around it.
        begin, top, node, shown = END, OPEN + 1, _ROOT, HIDDEN
        around: list[tuple[int, int, int, int]] = []
        cut = deep = 0
        for start, end, frame in chain(self._records(until), [(until, until, HIDDEN)]):
            while top <= start or (frame != HIDDEN and not _is_within(start, end, top)):
                if top > start:
                    cut += top - start > _CLOCK
                    top = start
                if node != around[-1][2]:
                    times[node] += top - begin
                    counts[node] += 1
                    last = top if top > last else last
                else:
                    deep += shown != HIDDEN
                begin, top, node, shown = around.pop()
            if frame == HIDDEN:
                end = min(end, top)
            elif end > top:
                top = end
                around = [(entry[0], max(entry[1], end), *entry[2:]) for entry in around]
            around.append((begin, top, node, shown))
            begin, top, node, shown = start, end, nodes[node << 32 | frame] if frame != HIDDEN else node, frame
        self.last = None if last == END else last
        lose(_CUT, cut)
        lose(_DEEP, deep)
        return [(begin, end, frame) for begin, end, _, frame in around[1:]]

    def _keep(self, open_: list[tuple[int, int, int]], until: int) -> None:
        """Removes all records but these and those from ``until`` on. Keeps the column objects, which others refer
        to."""
        columns = self.starts, self.ends, self.frames
        first = len(self.starts) if until == OPEN else bisect_left(self.starts, until)
        rest = [i for i in range(first, len(self.starts)) if self.ends[i] != END]
        for column, values in zip(columns, list(zip(*open_, strict=True)) or [()] * 3, strict=True):
            column[:] = array(column.typecode, [*values, *map(column.__getitem__, rest)])
        self._kept = len(self.starts)


def _is_within(start: int, end: int, around: int) -> bool:
    """Whether a call is within one that ends at ``around``, within the precision of the clock."""
    over = end - around
    return over <= 0 or (over <= _CLOCK and over <= around - start)


class _OpenSpan:
    """A call whose span is at ``index``, HIDDEN if it has none. ``moved``: its end was changed."""

    __slots__ = ("depth", "end", "index", "moved")

    def __init__(self, end: int, index: int, depth: int) -> None:
        self.end, self.index, self.depth, self.moved = end, index, depth, False

    def finish(self, spans: list[Span], zero: int) -> None:
        """Stores the final end."""
        if self.moved and self.index != HIDDEN:
            spans[self.index] = spans[self.index]._replace(end=self.end - zero)


def _prolong(open_: list[_OpenSpan], end: int) -> None:
    """Extends the calls around one that ends later than they do, by at most the difference between two clocks."""
    for each in reversed(open_):
        if each.end >= end:
            break
        each.end, each.moved = end, True


def _arguments(args: Labels | bytes) -> Labels:
    return arguments_in(args) if isinstance(args, bytes) else args
