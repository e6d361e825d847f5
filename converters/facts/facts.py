"""Facts that rules look at: the threads of one profile, their times and waits, and what is known of each."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar, cast

from ..model import Profile, ThreadTimes
from ..model.collectives import Collectives
from ..model.file_locks import FileLock
from ..model.group_limits import GroupLimit
from ..model.neighbours import Neighbour
from ..model.origins import ProcessOrigin
from ..model.slices import ThreadSlices
from ..model.steps import Steps
from ..model.waits_for import WaitGraph
from . import thresholds
from .collective_names import with_names
from .contention import Contention
from .coordinators import coordinators
from .gil import GilShare
from .group_limits import limit_of, memory_limit
from .identity import kernel_ids
from .memory_waits import OF_MEMORY
from .runs import Runs
from .server_waits import OF_SERVERS
from .started import Started
from .thread_names import name_pattern, thread_pattern
from .thread_roles import ThreadRoles, only_waits
from .wait_kinds import HALTED, HELD
from .wait_objects import Objects, On, on_of, with_peer
from .wait_sums import Place, Sum, Sums, Thread

_Found = TypeVar("_Found")

NOWHERE: Mapping[Place, Sum] = {}
"""The waits of a thread that has none."""


class Recorded(NamedTuple):
    """Profile and graph of recorded wakers."""

    profile: Profile
    """Profile with the kernel's ids."""
    graph: WaitGraph
    """Wait-for graph of ``profile``."""


class Beside(NamedTuple):
    """Knowledge beside the times and waits of threads."""

    accounts: Sequence[ThreadTimes] = ()
    """Accounts of all threads, also both of a thread id that was used twice; empty: those of the profile's threads."""
    contention: Sequence[Contention] = ()
    gil: Sequence[GilShare] = ()
    pools: Callable[[], Collection[int]] | None = None
    """Finds the processes with libraries whose number of threads variables set, which takes long; None: not known."""
    neighbours: Sequence[Neighbour] = ()
    recorded: Recorded | None = None
    runs: Runs = {}  # noqa: RUF012 (it never changes)
    """Samples on cores, by thread and place; empty: not known."""
    steps: Sequence[Steps] = ()
    ranks: Mapping[int, int] = {}
    """The ranks of processes in their job, by pid."""
    started: Started = {}  # noqa: RUF012 (it never changes)
    file_locks: Sequence[FileLock] = ()
    objects: Objects = {}  # noqa: RUF012 (likewise)
    """Files, sockets and pipes that waits are on, by id."""
    labels: Mapping[int, Mapping[str, str]] = {}
    """Labels of ranks and GPUs (`model.ranks`), by pid."""
    origins: Mapping[int, ProcessOrigin] = {}
    """Origins of processes, by pid."""
    group_limits: Sequence[GroupLimit] = ()
    slices: Mapping[Thread, ThreadSlices] = {}
    """Times by slices of the trace, by thread; those of several of a process have 0 as their thread."""
    collectives: Sequence[Collectives] = ()
    watched: Mapping[int, int] = {}
    """Number of calls of communication libraries, by pid, of processes whose calls were all seen."""


class Facts:
    """Facts of one profile. What follows from the times and waits of threads is found out once."""

    def __init__(
        self,
        sums: Sums,
        threads: dict[Thread, ThreadTimes],
        roles: ThreadRoles,
        duration: int,
        beside: Beside = Beside(),  # noqa: B008 (it never changes)
    ) -> None:
        """``duration``: of the trace, in ns."""
        self.sums, self.threads, self.roles, self.duration = sums, threads, roles, duration
        self.accounts = beside.accounts or tuple(threads.values())
        self.contention, self.gil, self.pools = beside.contention, beside.gil, beside.pools
        self.runs, self.neighbours, self.recorded = beside.runs, beside.neighbours, beside.recorded
        self.steps, self.ranks, self.started = beside.steps, beside.ranks, beside.started
        self.file_locks, self.group_limits = beside.file_locks, beside.group_limits
        self.objects: Objects = {**beside.objects, **OF_MEMORY, **OF_SERVERS}
        self.labels, self.origins = beside.labels, beside.origins
        self.slices = beside.slices
        self.pids_moving = frozenset(pid for pid, tid in threads if (pid, tid) not in roles.still)
        self.still_pids = frozenset(pid for pid, _ in roles.still) - self.pids_moving
        """Processes in which no thread moved."""
        self.own = [thread for thread in threads if thread not in roles.kernel]
        """Threads of user space; all, if only kernel threads were traced."""
        self._processes = {thread: name_pattern(times.process) for thread, times in threads.items()}
        self._names = {thread: thread_pattern(of.thread, thread[0] == thread[1]) for thread, of in threads.items()}
        by_pid = {thread[0]: name for thread, name in self._processes.items()}
        self.watched = beside.watched
        self.collectives = tuple(with_names(each, by_pid, self.ranks) for each in beside.collectives)
        self.process_names = {self.process_of(thread) for thread in self.own}
        self.at_work = self._pids_at_work()
        """Processes that do something."""
        self.active_wall = sum(times.wall for thread, times in threads.items() if not self.is_quiet(thread))
        self._working = {each for each in self.own if each not in roles.idle and self._waits_at_work(each)}
        self.coordinators = coordinators(sums, roles.still, self._working, roles.quiet)
        """Main threads that only wait for their workers: they keep nobody waiting."""
        self._led_by_workers = {pid for pid, _ in self.coordinators}
        self.whole: Facts | None = None
        """Facts of all processes, if these are of some; None: they are of all."""
        self._found: dict[Callable[[Any], Any], Any] = {}

    def once(self, find: Callable[[Facts], _Found]) -> _Found:
        """Result of ``find`` for these facts, which takes long and is asked for by several: it is kept."""
        if find not in self._found:
            self._found[find] = find(self)
        return cast(_Found, self._found[find])

    def waits_of(self, thread: Thread) -> Mapping[Place, Sum]:
        """Waits of a thread by place."""
        return self.sums.get(thread, NOWHERE)

    def process_of(self, thread: Thread) -> str:
        """The name of its process, without a final number."""
        return self._processes[thread]

    def name_of_pid(self, pid: int) -> str:
        """The name of a process, without a final number; "" if none of its threads is known."""
        return next((name for thread, name in self._processes.items() if thread[0] == pid), "")

    def name_of(self, thread: Thread) -> str:
        """Name of a thread without a final number; that of main threads is one."""
        return self._names[thread]

    def on(self, waits: Sum, kind: str, pids: Iterable[int]) -> On | None:
        """File or socket that most of the time of these waits, of this kind and in these processes, is on."""
        found = on_of(waits.objects, waits.time, self.objects) if waits.objects else None
        if found:
            found = replace(found, count=waits.count, longest=waits.max)
        if found and waits.by_peers:
            found = with_peer(found, waits.by_peers, self.objects)
        if found and kind == HELD and self.group_limits:
            found = replace(found, limit=limit_of(found.what, self.group_limits, kernel_ids(pids)))
        return found

    def memory_limit(self, pids: Iterable[int]) -> GroupLimit | None:
        """The limit of memory that a control group of all these processes has reached."""
        return memory_limit(self.group_limits, kernel_ids(pids))

    def is_idle(self, thread: Thread) -> bool:
        """Whether it is known to wait for work."""
        return thread in self.roles.idle

    def is_quiet(self, thread: Thread) -> bool:
        """Whether it spends nearly all its time in one wait that others end."""
        places = self.roles.quiet.get(thread, ())
        return bool(places) and only_waits(self.threads[thread], self.sums[thread], places)

    def are_still(self, threads: Iterable[Thread]) -> bool:
        """Whether none of them moved."""
        return self.roles.still.issuperset(threads)

    def _waits_at_work(self, thread: Thread) -> bool:
        """Whether it mostly waits, but not always in one place, or there in the middle of a task."""
        times = self.threads[thread]
        if thread in self.roles.in_task:
            return True
        return times.on_cpu + times.runnable < thresholds.MOSTLY * times.wall and not self.is_quiet(thread)

    def _pids_at_work(self) -> frozenset[int]:
        on_cpu: dict[int, int] = defaultdict(int)
        switches: dict[int, int] = defaultdict(int)
        for thread in self.own:
            on_cpu[thread[0]] += self.threads[thread].on_cpu
            switches[thread[0]] += sum(total.count for total in self.waits_of(thread).values())
        least = thresholds.AT_WORK_SWITCHES * self.duration / 1e9
        enough = thresholds.AT_WORK_CPU * self.duration
        found = {pid for pid in on_cpu if on_cpu[pid] >= enough or switches[pid] >= least}
        starters = {pid for (pid, _), pids in self.started.items() if pids & found}
        return frozenset(found | starters)

    def mains(self) -> list[Thread]:
        """Main threads of the processes at work; if there are none, of those that moved; else of all. In place of a
        main thread that only waits for the end of others, the threads of its process that are at work."""
        own = [thread for thread in self.own if not self.is_idle(thread)]
        mains = [thread for thread in own if self.is_main(thread)] or own
        moving = [thread for thread in mains if thread[0] not in self.still_pids]
        return [thread for thread in moving if thread[0] in self.at_work] or moving or mains

    def is_main(self, thread: Thread) -> bool:
        """Whether what holds this thread up holds up its process."""
        if thread[0] in self._led_by_workers:
            return thread in self._working and thread[0] != thread[1]
        return thread[0] == thread[1]

    def cores_of(self, pid: int) -> float:
        """Number of cores that a process may use; 2 if that is not known."""
        allowed = (each.allowed for each in self.contention if pid in each.pids)
        return next((cores for cores in allowed if cores is not None), 2.0)

    @property
    def least_for_cores(self) -> float:
        """ns: a problem with cores that costs less is none of all that was traced."""
        return thresholds.MATTERS_FOR_HOST * sum(each.on_cpu + each.runnable for each in self.contention)

    @property
    def gil_matters(self) -> bool:
        """Whether the threads of a process wait much for Python's interpreter lock."""
        return any(each.wall and each.gil.time >= thresholds.GIL_MATTERS * each.wall for each in self.gil)

    @property
    def is_whole_host(self) -> bool:
        """Whether threads of the kernel were traced, too."""
        return bool(self.roles.kernel)

    def are_slight(self, threads: Iterable[Thread]) -> bool:
        """Whether the whole host is traced and the processes of these threads hardly use a core: most wait for work."""
        pids = {pid for pid, _ in threads}
        of = self.once(_on_cpu_by_pid)
        on_cpu = sum(of[pid] for pid in pids)
        return self.is_whole_host and on_cpu < thresholds.SLIGHT * self.duration * len(pids)

    def where_of(self, pid: int) -> tuple[str, Place | None]:
        """The name of a process, and where its main thread (or its first one) waits most; None: nobody knows."""
        thread = min((thread for thread in self.threads if thread[0] == pid), key=lambda each: (each[1] != pid, each))
        places = self.waits_of(thread)
        place = max(places, key=lambda place: (places[place].time, place), default=None)
        is_told = place is not None and (place.kind == HALTED or not place.wait.nowhere)
        return self.process_of(thread), place if is_told else None

    def places_of(self, threads: Iterable[Thread]) -> dict[Place, int]:
        """The time of these threads' waits, in ns."""
        found: dict[Place, int] = defaultdict(int)
        for thread in threads:
            for place, total in self.waits_of(thread).items():
                found[place] += total.time
        return found

    def wall_of(self, threads: Iterable[Thread]) -> int:
        """ns that these threads were traced for; 0: not known of all."""
        walls = [self.threads[thread].wall for thread in threads]
        return sum(walls) if all(walls) else 0


def _on_cpu_by_pid(facts: Facts) -> Counter[int]:
    """ns that the threads of each process were on cores."""
    found: Counter[int] = Counter()
    for (pid, _), times in facts.threads.items():
        found[pid] += times.on_cpu
    return found
