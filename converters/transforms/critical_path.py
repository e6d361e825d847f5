"""The critical path of a thread, from the scheduler's events.

Walked backwards from the end. While the thread runs or waits for a core, the path is its own. Where it was blocked
until another thread woke it, the path goes on with that thread, back to the moment when the wait began, and in the same
way through those that this one waited for; then it comes back. A wait that ends without another thread (a timer, a
device) is part of the path itself. So the segments add up to the wall time.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from ..base.errors import StallscopeError
from ..model import Frame, Profile, Sample, Stack, ValueType
from ..model.critical import NOT_TRACED, CriticalPath, Segment, segment_name, thread_name
from ..model.phases import NOBODY, STATES, phases
from ..model.scheduling import NO_STACK, Scheduling, Threads, in_order
from ..model.states import BLOCKED, RUNNING, UNKNOWN, WOKEN

_BLOCKED = frozenset(STATES.index(state) for state in BLOCKED)
_RUNNING, _WOKEN = STATES.index(RUNNING), STATES.index(WOKEN)
_DEEPEST = 64
"""Threads that wait for each other in a chain."""


def thread_of(scheduling: Scheduling, tid: int) -> int:
    """The row of a thread by its id, the last one that had it; of 0 the first process's main thread. StallscopeError
    if it was not traced."""
    threads = scheduling.threads
    if not tid:
        main = np.flatnonzero(threads["tid"] == threads["tgid"])
        if len(main):
            return int(main[np.argmin(threads["begin"][main])])
    rows = np.flatnonzero(threads["tid"] == tid)
    if not tid or not len(rows):
        raise StallscopeError(f"thread {tid} was not traced", "give --critical the id of a traced process or thread")
    return int(rows[np.argmax(threads["begin"][rows])])


def critical_path(scheduling: Scheduling, thread: int) -> CriticalPath:
    """The path of a thread (row) over the time for which it is known."""
    walk = _Walk(in_order(scheduling))
    begin, end = walk.bounds(thread)
    return CriticalPath(thread, tuple(_merged(walk.back(thread, begin, end))))


@dataclass(slots=True)
class _Position:
    """Position of the walk: with a thread at a time, down to ``lower``."""

    thread: int
    time: int
    lower: int
    waiting: list[tuple[int, int]] = field(default_factory=list)
    """Threads that waited for it, and how far they are to be followed."""
    found: list[Segment] = field(default_factory=list)

    @property
    def behind(self) -> tuple[int, ...]:
        return tuple(row for row, _ in self.waiting)

    def add(self, begin: int, state: str, tid: int, stack: int = NO_STACK) -> None:
        """Ends the segment that goes back to ``begin``."""
        self.found.append(Segment(begin, self.time, self.thread, tid, state, stack, self.behind))
        self.time = begin

    def comes_back(self) -> bool:
        """Goes on with the thread that waited; whether there is one."""
        if not self.waiting:
            return False
        self.thread, self.lower = self.waiting.pop()
        return True


class _Walk:
    def __init__(self, scheduling: Scheduling) -> None:
        found = phases(scheduling)
        self._begins, self._ends = found["begin"], found["end"]
        self._states, self._stacks, self._wakers = found["state"], found["stack"], found["waker"]
        count = len(scheduling.threads)
        self._first = np.searchsorted(found["thread"], np.arange(count + 1))
        self._threads = scheduling.threads
        self._known = Threads(scheduling.threads)
        self._parents = {(int(c["tid"]), int(c["time"])): int(c["parent"]) for c in scheduling.created}

    def bounds(self, thread: int) -> tuple[int, int]:
        first, last = int(self._first[thread]), int(self._first[thread + 1])
        return (int(self._begins[first]), int(self._ends[last - 1])) if last > first else (0, 0)

    def _row(self, tid: int, time: int) -> int:
        return int(self._known.rows(np.array([tid]), np.array([time]))[0]) if tid > 0 else -1

    def _phase(self, thread: int, time: int) -> int:
        """The last phase of the thread that began before ``time``; -1: none."""
        first, last = int(self._first[thread]), int(self._first[thread + 1])
        place = first + int(np.searchsorted(self._begins[first:last], time)) - 1
        return place if place >= first else -1

    def back(self, thread: int, begin: int, end: int) -> list[Segment]:
        """The segments from ``end`` back to ``begin``, the latest first."""
        at = _Position(thread, end, begin)
        while at.time > at.lower or at.comes_back():
            if at.time <= at.lower:
                continue
            place = self._phase(at.thread, at.time)
            if place < 0:
                self._before_first(at)
            elif int(self._ends[place]) < at.time:  # it had ended
                at.add(max(int(self._ends[place]), at.lower), UNKNOWN, self._tid(at.thread))
            else:
                self._within(at, place)
        return at.found

    def _before_first(self, at: _Position) -> None:
        """Moves to the thread that created this one: before the first phase of a thread that one is on the path."""
        parent = self._parent(at.thread)
        if parent >= 0 and parent != at.thread and parent not in at.behind:
            at.thread = parent
        else:
            at.add(at.lower, UNKNOWN, self._tid(at.thread))

    def _within(self, at: _Position, place: int) -> None:
        since, state = max(int(self._begins[place]), at.lower), int(self._states[place])
        waker = self._waker(at.thread, place, at.time) if state in _BLOCKED else NOBODY
        row = self._row(waker, at.time)
        if row >= 0 and row != at.thread and row not in at.behind and len(at.waiting) < _DEEPEST:
            at.waiting.append((at.thread, at.lower))
            at.thread, at.lower = row, since
        elif waker > 0 and row < 0:
            at.found.append(Segment(since, at.time, -1, waker, NOT_TRACED, NO_STACK, (*at.behind, at.thread)))
            at.time = since
        else:
            stack = NO_STACK if state == _RUNNING else int(self._stacks[place])
            at.add(since, STATES[state], self._tid(at.thread), stack)

    def _tid(self, thread: int) -> int:
        return int(self._threads["tid"][thread])

    def _waker(self, thread: int, place: int, time: int) -> int:
        """Row of the thread that ended the wait that ends at ``time``; `NOBODY`: no thread, or not known."""
        following = place + 1
        if following >= int(self._first[thread + 1]) or int(self._ends[place]) != time:
            return NOBODY
        return int(self._wakers[following]) if int(self._states[following]) == _WOKEN else NOBODY

    def _parent(self, thread: int) -> int:
        tid, begin = int(self._threads["tid"][thread]), int(self._threads["begin"][thread])
        return self._row(self._parents.get((tid, begin), 0), begin)


def _merged(backwards: list[Segment]) -> list[Segment]:
    """Segments in the order of time; equal ones that follow each other are one."""
    found: list[Segment] = []
    for segment in reversed(backwards):
        if found and replace(found[-1], begin=segment.begin, end=segment.end) == segment:
            found[-1] = replace(found[-1], end=segment.end)
        else:
            found.append(segment)
    return found


def path_profile(profile: Profile, path: CriticalPath) -> Profile:
    """The path's segments as samples: the threads from the one that waits to the one that is waited for, then what that
    one does. Keeps the scheduler's events."""
    scheduling = profile.scheduling
    assert scheduling is not None, "a path is made of events"
    name = thread_name(scheduling, path.thread)
    samples = [_sample(scheduling, path, segment) for segment in path.segments]
    return replace(
        profile,
        value_types=[ValueType("critical", "nanoseconds"), ValueType("segments", "count")],
        samples=samples,
        title=f"Critical path of {name}",
        duration_ns=path.wall,
        calls=[],
        shared=[],
        locks=[],
        gil=[],
        critical=path,
        answered=profile,
    )


def _sample(scheduling: Scheduling, path: CriticalPath, segment: Segment) -> Sample:
    frames: Stack = tuple(Frame(thread_name(scheduling, row), "other") for row in segment.behind)
    frames += (Frame(segment_name(scheduling, segment), "other"), Frame(f"[{segment.state}]", "other"))
    if segment.stack != NO_STACK:
        frames += scheduling.stacks[segment.stack]
    row = segment.thread if segment.thread >= 0 else path.thread
    thread = scheduling.threads[row]
    labels = (
        ("pid", int(thread["tgid"])),
        ("process", scheduling.names[thread["process"]]),
        ("state", segment.state),
        ("thread", scheduling.names[thread["name"]]),
        ("tid", segment.tid),
    )
    return Sample(frames, (segment.time, 1), labels)
