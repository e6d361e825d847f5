"""Times of threads by slices of a trace, so that a change of what they do is seen."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class SliceSpent:
    """Time that a thread spent in one way."""

    kind: str
    """Kind, one of `rules.verdict.KINDS`: what it waited for, that it ran, or that it waited for a core."""
    times: tuple[int, ...]
    """ns in each slice in which the thread lived."""
    frames: tuple[str, ...] = ()
    """Place, as in `Site`; () for several, and for running."""
    kernel: str = ""
    object: int = 0
    """Id of the `WaitObject` that most of it is on; 0 if that is not known."""


@dataclass(slots=True)
class ThreadSlices:
    """One thread, or all those of a process that have no slices of their own. Slice i of a trace begins ``length``
    times i after the trace did, and the last one ends with it. In each slice, the times add up to the time for which
    the thread lived in it."""

    process: str
    """Name of the process (hostile)."""
    thread: str
    """Name of the thread (hostile); "" for several."""
    pid: int
    tid: int
    """Id of the thread; 0 for several."""
    length: int
    """ns of a slice, except the last one, which may be shorter."""
    first: int
    """Number of the first slice in which it lived, from 0."""
    spent: list[SliceSpent] = field(default_factory=list)
    """Most time first."""
    pid_life: int = 1
    """See `ThreadTimes.pid_life`."""
    tid_life: int = 1
    """See `ThreadTimes.tid_life`."""

    @property
    def number(self) -> int:
        """Number of slices in which it lived."""
        return max((len(each.times) for each in self.spent), default=0)
