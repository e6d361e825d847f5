"""The critical path of a thread: what it, or the thread that it waited for, did at each moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .scheduling import Scheduling

NOT_TRACED = "not traced"
"""State of a thread of which only the id is known."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Part of a path: one thread did one thing from ``begin`` to ``end``, in ns since the recording began."""

    begin: int
    end: int
    thread: int
    """Row of `Scheduling.threads`; -1: not traced."""
    tid: int
    state: str
    """State of the thread: one of `converters.model.states`, or `NOT_TRACED`."""
    stack: int
    """Place where the thread waits: index of `Scheduling.stacks`; `NO_STACK` while it runs, or if that is not known."""
    behind: tuple[int, ...] = ()
    """The threads (rows) that waited for it: first the one whose path this is."""

    @property
    def time(self) -> int:
        """Length in ns."""
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


def thread_name(scheduling: Scheduling, row: int) -> str:
    """``train-4711``; or ``train (loader)-4712`` for a thread with a name of its own. Hostile."""
    thread = scheduling.threads[row]
    process, name = scheduling.names[thread["process"]], scheduling.names[thread["name"]]
    return f"{process}-{thread['tid']}" if name == process else f"{process} ({name})-{thread['tid']}"


def segment_name(scheduling: Scheduling, segment: Segment) -> str:
    """The thread's name, also if it was not traced."""
    return thread_name(scheduling, segment.thread) if segment.thread >= 0 else f"thread-{segment.tid}"
