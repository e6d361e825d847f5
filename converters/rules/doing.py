"""Work of threads for whom others wait: they wait for a device, sleep, wait for somebody else, or run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..facts import thresholds
from ..facts.hot_sites import hot_site
from ..facts.runs import SAMPLED
from ..facts.wait_sites import Sites
from ..model import Profile, Sample, ThreadTimes
from ..model.states import RUNNING
from ..model.waits_for import COLUMN, DEVICE, THREAD, TIMER, Node, WaitGraph, chain_of, victim_of
from ..model.wakers import has_waker, own_part

IN_DEVICE, ASLEEP, BLOCKED, RUNS = "in-device", "asleep", "blocked", "runs"

Waits = Sequence[tuple[Sample, int]]
"""Samples of waits that end with somebody, with ns."""


class Doing(NamedTuple):
    """Work of some threads. Times in ns; names are unescaped (hostile)."""

    kind: str
    """Kind of the work: `IN_DEVICE`: they wait for a device (``name``); `ASLEEP`: they sleep until a timer wakes them;
    `BLOCKED`: until a process (``name``, ``pid``) ends it; `RUNS`."""
    part: int
    """Part of ``whole`` for which they do it."""
    whole: int
    """Time that others wait for them; for those that are blocked or run, their own time."""
    several: bool = False
    name: str = ""
    pid: int = 0
    ends: int = 0
    """Part that this process ends, for `BLOCKED`."""
    frames: tuple[str, ...] = ()
    """Place where they sleep, or run; () if it is not known."""
    runnable: int = 0
    """Time that they wait for a core, for `RUNS`, if that is much; else 0."""


class Doings:
    """Work of the threads of a graph."""

    def __init__(self, graph: WaitGraph, profile: Profile) -> None:
        """``profile``: that of the graph."""
        self._graph, self._profile = graph, profile
        self._walls: Counter[Node] = Counter()
        self._on_cpu: Counter[Node] = Counter()
        self._runnable: Counter[Node] = Counter()
        for times in profile.threads:
            self._add(times)

    def _add(self, times: ThreadTimes) -> None:
        node = Node(THREAD, times.pid, times.tid)
        self._walls[node] += times.wall
        self._on_cpu[node] += times.on_cpu
        self._runnable[node] += times.runnable

    def wall(self, nodes: Iterable[Node]) -> int:
        """ns that these threads were traced for."""
        return sum(self._walls[node] for node in nodes)

    def of(self, ends: set[Node], waits: Waits = ()) -> Doing | None:
        """None if nothing stands out. ``ends``: those for whom others wait; ``waits``: what ends with them; empty if
        only a lock tells that they are waited for."""
        whole = sum(time for _, time in waits)
        return (
            _in_a_device(waits, whole)
            or self._asleep(ends, waits, whole)
            or self._blocked(ends, {victim_of(sample.labels).pid for sample, _ in waits})
            or self._runs(ends, waits)
        )

    def _blocked(self, ends: set[Node], waiting: set[int]) -> Doing | None:
        """A process for which the main threads of these wait, if they do nearly all the time, and mostly for one other
        process; not one that waits for them: a server waits for whoever asks it. ``waiting``: pids of those."""
        mains = {Node(THREAD, end.pid, end.pid) for end in ends}
        wall = self.wall(mains)
        blocked = sum(edge.waited for (victim, _), edge in self._graph.edges.items() if victim in mains)
        of: Counter[tuple[str, int]] = Counter()
        for (victim, end), time in self._graph.ends.items():
            if victim in mains and end.kind == THREAD and end.pid != victim.pid:
                of[self._graph.names[end][0], end.pid] += time
        (name, pid), most = max(of.items(), key=lambda entry: (entry[1], entry[0]), default=(("", 0), 0))
        if (
            pid in waiting
            or not 0 < wall * thresholds.BLOCKED_ITSELF <= blocked
            or most < thresholds.DOES_MOSTLY * blocked
        ):
            return None
        return Doing(BLOCKED, blocked, wall, len(mains) > 1, name, pid, most)

    def _runs(self, ends: set[Node], waits: Waits) -> Doing | None:
        """Time of these threads on a core, and the place, if it is for half of their time, or of what somebody waits
        for them."""
        waiting: Counter[Node] = Counter()
        for sample, time in waits:
            waiting[victim_of(sample.labels)] += time
        wall = self.wall(ends)
        longest = max(waiting.values(), default=wall)
        on_cpu, runnable = (sum(of[end] for end in ends) for of in (self._on_cpu, self._runnable))
        if not wall or on_cpu + runnable < thresholds.DOES_MOSTLY * min(wall, longest):
            return None
        much = runnable if runnable >= thresholds.DOES_MOSTLY * on_cpu else 0
        return Doing(RUNS, on_cpu, wall, len(ends) > 1, frames=self._runs_in(ends), runnable=much)

    def _runs_in(self, threads: set[Node]) -> tuple[str, ...]:
        """Place where these threads are on cores for most of that time; () if no samples tell."""
        if not {value_type.name for value_type in self._profile.value_types} >= SAMPLED:
            return ()
        times: Counter[tuple[str, ...]] = Counter()
        sites = Sites()
        for sample in self._profile.samples:
            if sample.label("state") == RUNNING and victim_of(sample.labels) in threads:
                times[hot_site(sample.stack, sites).frames] += sample.values[0]
        return _most(times, times.total())

    def _asleep(self, ends: set[Node], waits: Waits, whole: int) -> Doing | None:
        """Place in which the last thread itself waits until a timer wakes it, if it does for most of the time. Without
        the place, which is only known if it is traced, that would help nobody."""
        slept = sum(time for sample, time in waits if len(chain := chain_of(sample)) > 1 and chain[-1].kind == TIMER)
        if not slept or slept < thresholds.DOES_MOSTLY * whole:
            return None
        column = self._profile.index(COLUMN)
        times: Counter[tuple[str, ...]] = Counter()
        sites, parts = Sites(), []
        for sample in self._profile.samples:
            if has_waker(sample.stack) and victim_of(sample.labels) in ends and chain_of(sample)[0].kind == TIMER:
                parts.append(own_part(sample.stack))  # sites are known by the identity of their stacks
                times[sites.of(parts[-1]).frames] += sample.values[column]
        where = _most(times, times.total())
        return Doing(ASLEEP, slept, whole, frames=where) if where else None


def _in_a_device(waits: Waits, whole: int) -> Doing | None:
    """Device for which the last thread itself waits, if it does for most of the time."""
    times: Counter[tuple[str, ...]] = Counter()
    for sample, time in waits:
        last = chain_of(sample)[-1]
        if len(chain_of(sample)) > 1 and last.kind == DEVICE:
            times[last.name,] += time
    found = _most(times, whole)
    return Doing(IN_DEVICE, times[found], whole, name=found[0]) if found else None


def _most(times: Counter[tuple[str, ...]], whole: int) -> tuple[str, ...]:
    found, most = max(times.items(), key=lambda entry: (entry[1], entry[0]), default=((), 0))
    return found if most >= thresholds.DOES_MOSTLY * whole else ()
