"""Calls of one thread in a Chrome trace: put in order, made to nest, and added up while they come."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from operator import eq, gt

from ..model import Frame, Labels, Stack
from ..timeline import Span
from .chrome_frames import arguments_in

OPEN = (1 << 63) - 1
"""The end of a call that has only begun."""
END = -(1 << 63)
"""The "end" of a record that is none of a call, but tells where the innermost open one ends."""
HIDDEN = -1
"""The frame of a call that holds others but is not shown."""
ANY = -1
"""The name of an end that tells none."""
MAX_DEPTH = 2_000
"""Calls within calls: memory grows with its square where each is a stack of its own."""

_NO_BEGIN, _NO_END = "ends of calls without a begin", "calls without an end"
_CUT = "calls that overlapped others, shortened"
_DEEP = "calls that are too deep, told with their callers"
_CLOCK = 1000
"""ns: what two clocks that tick in µs may differ by."""
_ROOT = 0

Lose = Callable[[str, int], None]


class LateCall(Exception):
    """A call began before others that were added up already."""


class _Nodes(dict[int, int]):
    """Caller << 32 | frame → stack, all by their indices; 0 is the empty one. New ones are made, but none that is too
    deep: then it is the caller's."""

    def __init__(self) -> None:
        super().__init__()
        self.paths: list[tuple[int, int]] = [(_ROOT, HIDDEN)]
        """(caller, frame)."""
        self._depths = [0]
        self.times, self.counts = [0], [0]
        """How long, in all, its innermost frame was called, and how often."""

    def __missing__(self, key: int) -> int:
        caller = key >> 32
        if self._depths[caller] >= MAX_DEPTH:
            return caller
        node = self[key] = len(self.paths)
        self.paths.append((caller, key & 0xFFFF_FFFF))
        self._depths.append(self._depths[caller] + 1)
        self.times.append(0)
        self.counts.append(0)
        return node


class Calls:
    """Records of one pid and tid, in columns; times are ns. ``labels`` are what the events themselves say of it.

    ``frames[i]`` is an index into the trace's frames (or HIDDEN); of an END, an index into ``names`` (or ANY).

    Of two calls that overlap, but neither is within the other, that one is shortened which loses less: PyTorch's
    annotations begin in the function that begins them, and go on behind it. What is HIDDEN always does.
    """

    __slots__ = (
        "_done", "_kept", "_last_end", "_last_mark", "_names", "_nodes", "args", "ends", "first", "frames", "labels",
        "last", "starts",
    )  # fmt: skip

    def __init__(self, names: list[int], *, keep_args: bool) -> None:
        """``names``: which of the trace's names a frame has, by its index."""
        self.labels: dict[str, str | int] = {}
        self.starts, self.ends = array("q"), array("q")
        self.frames = array("i")
        self.args: dict[int, Labels | bytes] | None = {} if keep_args else None
        """By the index of the record, of those that have some."""
        self.first: int | None = None
        """When the earliest call began, and"""
        self.last: int | None = None
        """when the last call ended that is shown, of those that were added up."""
        self._names = names
        self._done = END
        self._kept = 0
        self._last_mark = self._last_end = END
        self._nodes: _Nodes | None = None

    @property
    def is_new(self) -> bool:
        """Whether there are records that `fold` has not seen."""
        return len(self.starts) > self._kept

    def began(self) -> int | None:
        """When the earliest call began that is still kept."""
        if END not in self.ends:
            return min(self.starts, default=None)
        return min((start for start, end in zip(self.starts, self.ends, strict=True) if end != END), default=None)

    def keep(self, args: Labels | bytes) -> None:
        """The arguments of the record that comes next, or the text that they stand in."""
        if self.args is not None:
            self.args[len(self.starts)] = args

    def fold(self, lose: Lose, *, final: bool = False) -> None:
        """Adds up what no later record can change, if those before came in the order of time; all of it when
        ``final``. LateCall when one came too late."""
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
        """(stack, self time, how often called) of each stack, in the order of their first calls."""
        nodes = self._nodes or _Nodes()
        stacks: list[Stack] = [()]
        times = nodes.times.copy()
        for (parent, _), time in zip(nodes.paths, nodes.times, strict=True):
            times[parent] -= time
        for node, (parent, frame) in enumerate(islice(nodes.paths, 1, None), 1):
            stacks.append((*stacks[parent], frames[frame]))
            if nodes.counts[node]:
                yield stacks[node], times[node], nodes.counts[node]

    def spans(self, zero: int, frames: list[Frame], lose: Lose) -> list[Span]:
        """All calls, callers first; times from ``zero`` on."""
        self._pair(lose, final=True)
        starts, ends, indices, args = self.starts, self.ends, self.frames, self.args or {}
        spans: list[Span] = []
        open_ = [(OPEN, HIDDEN, 0)]
        cut = deep = 0
        for i in self._order():
            start, end, frame = starts[i], ends[i], indices[i]
            while (top := open_[-1])[0] <= start or (end - top[0] > top[0] - start and frame != HIDDEN):
                if top[0] > start:
                    cut += top[0] - start > _CLOCK
                    if top[1] != HIDDEN:
                        spans[top[1]] = spans[top[1]]._replace(end=start - zero)
                open_.pop()
            if end > top[0]:
                cut += end - top[0] > _CLOCK
                end = top[0]
            depth = top[2]
            if frame == HIDDEN or depth >= MAX_DEPTH:
                deep += frame != HIDDEN
                open_.append((end, HIDDEN, depth))
            else:
                open_.append((end, len(spans), depth + 1))
                spans.append(Span(start - zero, end - zero, frames[frame], _arguments(args.pop(i, ()))))
        lose(_CUT, cut)
        lose(_DEEP, deep)
        return spans

    def _ordered(self) -> bool:
        return not any(map(gt, self.starts, islice(self.starts, 1, None)))

    def _settled(self) -> int:
        """The time before which every call is known, and with it all that it calls."""
        until = self.starts[-1]
        open_ = next((start for start, end in zip(self.starts, self.ends, strict=True) if end == OPEN), None)
        if open_ is None:
            return until
        # A call whose end is told later may yet shorten others, or be shortened, unless all are such pairs.
        return min(until, self._last_mark) if self._last_end == END else min(until, open_)

    def _pair(self, lose: Lose, *, final: bool) -> None:
        """Gives begins their ends; the records of those are left for `_order` to leave out."""
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
        open_: list[int] = []
        lone = unended = 0
        for i in marks:
            if ends[i] == OPEN:
                open_.append(i)
                continue
            depth = self._closed(open_, self.frames[i])
            if depth < 0:
                lone += 1
                continue
            unended += len(open_) - 1 - depth
            for begin in open_[depth:]:
                ends[begin] = starts[i]
            del open_[depth:]
        if final:
            unended += len(open_)
            last = max(self._last_mark, self._last_end)
            for begin in open_:
                ends[begin] = max(last, starts[begin])
        lose(_NO_BEGIN, lone)
        lose(_NO_END, unended)

    def _closed(self, open_: list[int], name: int) -> int:
        """Index of the open call that an end means; -1 for none."""
        if not open_ or name == ANY:
            return len(open_) - 1
        frames, names = self.frames, self._names
        innermost = frames[open_[-1]]
        if innermost == HIDDEN or names[innermost] == name:
            return len(open_) - 1
        found = (i for i in range(len(open_) - 1, -1, -1) if frames[open_[i]] != HIDDEN)
        return next((i for i in found if names[frames[open_[i]]] == name), -1)

    def _records(self, until: int) -> Iterator[tuple[int, int, int]]:
        """(start, end, frame) of the calls that began before ``until``, in their order."""
        order = self._order()
        order = order[: bisect_left(order, until, key=self.starts.__getitem__)]
        columns = self.starts, self.ends, self.frames
        if isinstance(order, range):
            return islice(zip(*columns, strict=True), len(order))
        return zip(*(map(column.__getitem__, order) for column in columns), strict=True)

    def _order(self) -> Sequence[int]:
        """Indices of the calls by their start, the longest first; a range if that is how they came."""
        starts, ends = self.starts, self.ends
        if self._ordered() and END not in ends and not any(map(eq, starts, islice(starts, 1, None))):
            return range(len(starts))
        order = [i for i, end in enumerate(ends) if end != END]
        order.sort(key=ends.__getitem__, reverse=True)
        order.sort(key=starts.__getitem__)
        return order

    def _add_up(self, until: int, lose: Lose) -> list[tuple[int, int, int]]:
        """Adds up the calls that end before ``until``; the records of those that are open then are returned."""
        nodes = self._nodes = self._nodes or _Nodes()
        times, counts = nodes.times, nodes.counts
        ends: list[int] = []
        above: list[int] = []
        top, parent = OPEN, _ROOT
        kept: list[tuple[int, int, int]] = []
        cut = deep = 0
        last = END if self.last is None else self.last
        for start, end, frame in self._records(until):
            while top <= start:
                top, parent = ends.pop(), above.pop()
            while end - top > top - start and frame != HIDDEN:
                if top <= until:
                    cut += top - start > _CLOCK
                    times[parent] -= (top - start) * (parent != above[-1])
                top, parent = ends.pop(), above.pop()
            node = nodes[parent << 32 | frame] if frame != HIDDEN else parent
            ends.append(top)
            above.append(parent)
            if end <= top:
                top = end
            elif top <= until:
                cut += end - top > _CLOCK
            if top > until:
                kept.append((start, end, frame))
            elif node != parent:
                times[node] += top - start
                counts[node] += 1
                last = top if top > last else last
            else:
                deep += frame != HIDDEN
            parent = node
        self.last = None if last == END else last
        lose(_CUT, cut)
        lose(_DEEP, deep)
        return kept

    def _keep(self, open_: list[tuple[int, int, int]], until: int) -> None:
        """Forgets all records but these, and those from ``until`` on. The columns stay what they are: others hold
        them."""
        columns = self.starts, self.ends, self.frames
        first = len(self.starts) if until == OPEN else bisect_left(self.starts, until)
        rest = [i for i in range(first, len(self.starts)) if self.ends[i] != END]
        for column, values in zip(columns, list(zip(*open_, strict=True)) or [()] * 3, strict=True):
            column[:] = array(column.typecode, [*values, *map(column.__getitem__, rest)])
        self._kept = len(self.starts)


def _arguments(args: Labels | bytes) -> Labels:
    return arguments_in(args) if isinstance(args, bytes) else args
