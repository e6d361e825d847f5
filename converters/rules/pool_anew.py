"""A program makes its threads anew all the time, instead of keeping a pool of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from ..facts import thresholds
from ..facts.contention import SECOND
from ..facts.facts import Facts
from ..facts.thread_names import name_pattern, thread_pattern
from ..model import ThreadTimes
from ..model.processes import OTHER_NAMES
from .verdict import POOL_ANEW, Verdict

RULE = "pool-anew"


@dataclass(slots=True)
class Pool:
    """Threads of one name, or of several, in processes of one name, that were created and have ended during the trace:
    the detail of such a verdict. Names are unescaped (hostile); times in ns."""

    process: str
    thread: str
    """Name of most of them."""
    trace: int
    threads: int = 0
    wall: int = 0
    busy: int = 0
    creators: set[str] = field(default_factory=set)
    """Names of the threads that made them."""
    pids: set[int] = field(default_factory=set)
    places: Counter[tuple[str, ...]] = field(default_factory=Counter)
    """Number of threads by the functions that created them, as far as they are known."""
    more_names: int = 0

    def add(self, times: ThreadTimes, creator: str) -> None:
        """One more of them."""
        self.threads += times.count
        self.wall += times.wall
        self.busy += times.on_cpu + times.runnable
        self.pids.add(times.pid)
        self.creators.add(creator)
        if times.made_in:
            self.places[times.made_in] += times.count

    def join(self, other: Pool) -> None:
        """Threads of other names, which are fewer, are of the same pool."""
        self.threads += other.threads
        self.wall += other.wall
        self.busy += other.busy
        self.pids |= other.pids
        self.creators |= other.creators
        self.places += other.places
        self.more_names += 1 + other.more_names

    @property
    def made_in(self) -> tuple[str, ...]:
        """Functions that created them; () if that is not known of most, or if several did."""
        known = self.places.total()
        place, number = max(self.places.items(), key=lambda entry: (entry[1], entry[0]), default=((), 0))
        is_one = number >= thresholds.ANEW_IN * known and known >= thresholds.MOSTLY * self.threads
        return place if is_one else ()

    @property
    def is_made_anew(self) -> bool:
        """Whether there are many, which end soon."""
        often = self.threads * SECOND >= thresholds.ANEW_PER_SECOND * self.trace > 0
        short = self.wall <= thresholds.ANEW_LIFE * self.trace * self.threads
        return often and self.threads >= thresholds.ANEW_THREADS and short


def find(facts: Facts) -> list[Verdict]:
    """One for each program, whatever its threads are called, those with most threads first."""
    trace = next((process.duration for process in facts.contention), 0)
    names = {thread: thread_pattern(times.thread, thread[0] == thread[1]) for thread, times in facts.threads.items()}
    pools: dict[tuple[str, str], Pool] = {}
    for times in facts.accounts:
        if times.creator and times.exited and times.tid != times.pid and times.thread != OTHER_NAMES:
            key = name_pattern(times.process), thread_pattern(times.thread, main=False)
            pool = pools.setdefault(key, Pool(*key, trace))
            pool.add(times, names.get((times.pid, times.creator), ""))
    programs: dict[str, Pool] = {}
    for pool in sorted((pool for pool in pools.values() if pool.is_made_anew), key=_order):
        if pool.process in programs:
            programs[pool.process].join(pool)
        else:
            programs[pool.process] = pool
    return [
        Verdict(RULE, POOL_ANEW, pool.wall, 1, frozenset(pool.pids), detail=pool)
        for pool in sorted(programs.values(), key=_order)
        if pool.busy >= facts.least_for_cores
    ]


def _order(pool: Pool) -> tuple[int, str, str]:
    return -pool.threads, pool.process, pool.thread
