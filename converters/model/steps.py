"""Steps told apart: how long each takes, what its thread does in it, and what is between one and the next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from .sites import Site

SLOW = 3
"""Slow steps take more than this many medians."""


class StepWait(NamedTuple):
    """Waits of a step in one place; ns."""

    site: Site
    time: int
    number: int


class StepRun(NamedTuple):
    """Samples of a step in one place; also what the kernel does for it."""

    frames: tuple[str, ...]
    """Outermost first, as in `Site`; empty if only the kernel is known."""
    samples: int


@dataclass(frozen=True, slots=True)
class Spent:
    """Times in ns of ``count`` steps, or of what is between them: wall = on_cpu + blocked + runnable."""

    count: int
    wall: int
    on_cpu: int
    blocked: int
    waits: tuple[StepWait, ...] = ()
    """The longest first; those of less time than these are left out."""
    samples: int = 0
    """Number of samples of the thread while it was on a core; 0: none, or they were not recorded one by one."""
    ran: tuple[StepRun, ...] = ()
    """Places where the thread ran, those with most samples first; others are left out."""

    @property
    def runnable(self) -> int:
        return self.wall - self.on_cpu - self.blocked

    def estimated(self, samples: int) -> int:
        """The part of ``on_cpu`` that so many of its samples stand for."""
        return self.on_cpu * samples // self.samples if self.samples else 0

    @property
    def mean(self) -> int:
        """0 without any."""
        return self.wall // self.count if self.count else 0


class Step(NamedTuple):
    """One step. ``begin``: ns since the trace began; ``before``: ns since the step before ended, None for the first
    one, and after calls that were not seen."""

    number: int
    begin: int
    spent: Spent
    before: int | None


@dataclass(frozen=True, slots=True)
class SlowSteps:
    """Steps that take much longer than the median, as a group."""

    spent: Spent
    others: Spent
    """Times of the other steps."""
    first: int
    """Number of the first one."""
    every: int | None
    """Distance in steps between ``first`` and the others of the group, each to the next; None: they come
    irregularly."""


@dataclass(frozen=True, slots=True)
class Found:
    """Evidence of steps that nobody named: one is from an end of a wait in one place to the next end. Times in ns."""

    place: Site
    deviation: int
    """Median distance of the steps' lengths from their median."""
    waited: int
    """Time that all steps wait in the place."""
    is_timed: bool = False
    """Whether a timer ends the waits."""


class Maker(NamedTuple):
    """A thread that makes what another one waits for. Names are hostile."""

    process: str
    pid: int
    thread: str
    tid: int
    work: int
    """ns for which it did not wait for the one that takes what it makes."""


@dataclass(frozen=True, slots=True)
class Reader:
    """Threads that make the batches of a thread's steps, those with most work first."""

    makers: tuple[Maker, ...]
    number: int
    """Number of batches: of the thread's steps."""
    wall: int
    """ns from the first step to the end of the last one."""

    @property
    def work(self) -> int:
        """ns that they work for a batch, all together; 0 without any."""
        return sum(each.work for each in self.makers) // self.number if self.number else 0

    @property
    def per_second(self) -> float | None:
        """Batches that they made a second; None if that is not known."""
        return self.number * 1e9 / self.wall if self.wall else None

    @property
    def at_most(self) -> float | None:
        """Batches a second if they never had to wait for the one that takes them; None if that is not known."""
        work = self.work
        return len(self.makers) * 1e9 / work if work else None


@dataclass(frozen=True, slots=True)
class Steps:
    """Steps of a function and a thread that began and ended during the recording. Names are hostile."""

    name: str
    """Name of the function; "" of steps that nobody named."""
    process: str
    pid: int
    thread: str
    tid: int
    steps: Spent
    between: Spent
    """Times from the end of a step to the begin of the thread's next one, if all calls between them were seen."""
    median: int
    max: int
    span: int
    """ns from the begins of steps to those of the next ones, of as many as ``between`` has."""
    slowest: tuple[Step, ...]
    not_whole: int = 0
    """Steps that had begun before the recording, or that had not ended."""
    slow: SlowSteps | None = None
    """None if none is, or if they take little of the time."""
    p90: int | None = None
    """ns that nine tenths of the steps take at most; None in captures of before."""
    found: Found | None = None
    """Evidence of steps that nobody named; None: the user named the function."""
    reader: Reader | None = None
    """Threads that end the waits for the next batch; None: that is not known."""

    @property
    def title(self) -> str:
        """Name of the function, or the place of which the steps were found."""
        return self.name or (" → ".join(self.found.place.frames) if self.found else "")

    @property
    def per_second(self) -> float | None:
        """Steps per second in times in which all calls were seen. None for less than two steps there."""
        return self.between.count * 1e9 / self.span if self.between.count and self.span else None
