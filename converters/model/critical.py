"""The critical path of a thread: what it, or the thread that it waited for, did at each moment."""

from __future__ import annotations

from dataclasses import dataclass

NOT_TRACED = "not traced"
"""State of a thread of which only the id is known."""


@dataclass(frozen=True, slots=True)
class Segment:
    """From ``begin`` to ``end``, in ns since the recording began, one thread did one thing."""

    begin: int
    end: int
    thread: int
    """Row of `Scheduling.threads`; -1: not traced."""
    tid: int
    state: str
    """Of `converters.model.states`, or `NOT_TRACED`."""
    stack: int
    """Where it waits: index of `Scheduling.stacks`; `NO_STACK` while it runs, or if that is not known."""
    behind: tuple[int, ...] = ()
    """The threads (rows) that waited for it: first the one whose path this is."""

    @property
    def time(self) -> int:
        """Its length in ns."""
        return self.end - self.begin


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """The path of one thread. The segments are in the order of time, without a gap."""

    thread: int
    """Row of `Scheduling.threads`."""
    segments: tuple[Segment, ...]

    @property
    def wall(self) -> int:
        """ns from the first segment's begin to the last one's end."""
        return self.segments[-1].end - self.segments[0].begin if self.segments else 0
