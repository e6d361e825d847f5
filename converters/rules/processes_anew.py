"""A program starts processes all the time, which end at once: a script that calls tools for each line of its input."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from ..facts import thresholds
from ..facts.contention import SECOND
from ..facts.facts import Facts
from ..facts.thread_names import name_pattern
from ..model import ThreadTimes
from .verdict import PROCESSES_ANEW, Verdict

RULE = "processes-anew"


@dataclass(slots=True)
class Started:
    """Processes that were started by one of a name, or by others that it has started, and have ended: the detail of
    such a verdict. Names are unescaped (hostile); times in ns."""

    starter: str
    trace: int
    processes: int = 0
    wall: int = 0
    busy: int = 0
    names: Counter[str] = field(default_factory=Counter)
    """Number of processes by the name of the program that they ran when they ended."""
    pids: set[int] = field(default_factory=set)
    """Theirs, and those of the processes that started them."""

    def add(self, times: ThreadTimes) -> None:
        """One more of them."""
        self.processes += times.count
        self.wall += times.wall
        self.busy += times.on_cpu + times.runnable
        self.names[name_pattern(times.process)] += times.count
        self.pids.add(times.pid)

    @property
    def is_made_anew(self) -> bool:
        """Whether there are many, which end soon and keep cores busy."""
        often = self.processes * SECOND >= thresholds.ANEW_PER_SECOND * self.trace > 0
        short = self.wall <= thresholds.ANEW_LIFE * self.trace * self.processes
        many = self.processes >= thresholds.ANEW_THREADS
        return often and many and short and self.busy >= thresholds.ANEW_CORES * self.trace


def find(facts: Facts) -> list[Verdict]:
    """One for each name of those that start them, most of them first."""
    mains = {tid: times for (pid, tid), times in facts.threads.items() if pid == tid}
    parents = {times.tid: times.pid for times in facts.accounts}
    found: dict[str, Started] = {}
    for times in facts.accounts:
        if _is_short_lived(times):
            starter = _starter(times, mains, parents)
            name = name_pattern(starter.process) if starter else ""
            of = found.setdefault(name, Started(name, facts.duration))
            of.add(times)
            of.pids |= {starter.pid} if starter else set()
    most = sorted(
        (each for each in found.values() if each.is_made_anew), key=lambda each: (-each.processes, each.starter)
    )
    return [Verdict(RULE, PROCESSES_ANEW, each.busy, 1, frozenset(each.pids), detail=each) for each in most]


def _is_short_lived(times: ThreadTimes) -> bool:
    """Whether it is a process that began and ended during the trace."""
    return times.pid == times.tid and times.exited and times.creator != 0


def _starter(times: ThreadTimes, mains: dict[int, ThreadTimes], parents: dict[int, int]) -> ThreadTimes | None:
    """The nearest process above it that is not short-lived itself; None if it is not known."""
    seen: set[int] = set()
    while _is_short_lived(times):
        if times.creator < 0:
            return None
        above = mains.get(parents.get(times.creator, 0))
        if above is None or above.tid in seen:
            return None
        seen.add(above.tid)
        times = above
    return times
