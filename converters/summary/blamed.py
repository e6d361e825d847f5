"""What those do themselves for whom others wait: they sleep, wait for somebody else, or run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ..base.units import share
from ..facts.hot_sites import hot_site
from ..facts.wait_sites import Sites
from ..model import Profile, Sample, ThreadTimes
from ..model.states import RUNNING
from ..model.waits_for import COLUMN, DEVICE, THREAD, TIMER, Node, WaitGraph, chain_of, victim_of
from ..model.wakers import has_waker, own_part
from .running import ON_CPU

_MOSTLY = 0.5
"""Something is told if it is so for this share of the time."""
_IDLY = 0.8
"""Somebody who is blocked for this share of the time does little himself."""


class Blamed:
    """Of the threads of a graph. Names are unescaped (hostile)."""

    def __init__(self, graph: WaitGraph, threads: Iterable[ThreadTimes]) -> None:
        self._graph = graph
        self._walls: Counter[Node] = Counter()
        self._on_cpu: Counter[Node] = Counter()
        self._runnable: Counter[Node] = Counter()
        for times in threads:
            node = Node(THREAD, times.pid, times.tid)
            self._walls[node] += times.wall
            self._on_cpu[node] += times.on_cpu
            self._runnable[node] += times.runnable

    def wall(self, nodes: Iterable[Node]) -> int:
        """ns that these threads were traced for."""
        return sum(self._walls[node] for node in nodes)

    def does(self, profile: Profile, ends: set[Node], waits: list[tuple[Sample, int]]) -> str:
        """The end of a sentence, or "". ``ends``: those who are blamed; ``waits``: what ends with them, with
        ns; empty if only the lock tells that they are waited for."""
        whole = sum(time for _, time in waits)
        return (
            _in_a_device(waits, whole)
            or _asleep(profile, ends, waits, whole)
            or self._blocked(ends)
            or self._runs(profile, ends, waits)
        )

    def _blocked(self, ends: set[Node]) -> str:
        """For whom the main threads of their processes wait, if they do nearly all the time, and mostly for one other
        process."""
        mains = {Node(THREAD, end.pid, end.pid) for end in ends}
        wall = self.wall(mains)
        blocked = sum(edge.waited for (victim, _), edge in self._graph.edges.items() if victim in mains)
        of: Counter[tuple[str, int]] = Counter()
        for (victim, end), time in self._graph.ends.items():
            if victim in mains and end.kind == THREAD and end.pid != victim.pid:
                of[self._graph.names[end][0], end.pid] += time
        (name, pid), most = max(of.items(), key=lambda entry: (entry[1], entry[0]), default=(("", 0), 0))
        if not 0 < wall * _IDLY <= blocked or most < _MOSTLY * blocked:
            return ""
        whom, whose = _they_are(mains)
        return (
            f"; {whom} blocked for {share(blocked, wall)} of {whose} own time, and {share(most, blocked)} of that ends "
            f"with {name} (pid {pid})"
        )

    def _runs(self, profile: Profile, ends: set[Node], waits: list[tuple[Sample, int]]) -> str:
        """For how long they are on a core, and where, if it is for half of their time, or of what somebody waits for
        them."""
        waiting: Counter[Node] = Counter()
        for sample, time in waits:
            waiting[victim_of(sample.labels)] += time
        wall = self.wall(ends)
        longest = max(waiting.values(), default=wall)
        on_cpu, runnable = (sum(of[end] for end in ends) for of in (self._on_cpu, self._runnable))
        if not wall or on_cpu + runnable < _MOSTLY * min(wall, longest):
            return ""
        whom, whose = _they_are(ends)
        text = f"; {whom} on a core for {share(on_cpu, wall)} of {whose} own time"
        if frames := _runs_in(profile, ends):
            text += f", mostly in {' → '.join(frames)}"
        if runnable >= _MOSTLY * on_cpu:
            text += f", and waiting for one for {share(runnable, wall)}"
        return text


def _they_are(nodes: set[Node]) -> tuple[str, str]:
    return ("they are", "their") if len(nodes) > 1 else ("it is", "its")


def _runs_in(profile: Profile, threads: set[Node]) -> tuple[str, ...]:
    """Where these threads are on cores for most of that time; () if no samples tell."""
    if not {value_type.name for value_type in profile.value_types} >= ON_CPU:
        return ()
    times: Counter[tuple[str, ...]] = Counter()
    sites = Sites()
    for sample in profile.samples:
        if sample.label("state") == RUNNING and victim_of(sample.labels) in threads:
            times[hot_site(sample.stack, sites).frames] += sample.values[0]
    return _most(times, times.total())


def _in_a_device(waits: list[tuple[Sample, int]], whole: int) -> str:
    """For which device the last thread itself waits, if it does for most of the time."""
    times: Counter[tuple[str, ...]] = Counter()
    for sample, time in waits:
        last = chain_of(sample)[-1]
        if len(chain_of(sample)) > 1 and last.kind == DEVICE:
            times[last.name,] += time
    if not (found := _most(times, whole)):
        return ""
    return f"; for {share(times[found], whole)} of that, it waits for {found[0]} itself"


def _asleep(profile: Profile, ends: set[Node], waits: list[tuple[Sample, int]], whole: int) -> str:
    """Where the last thread itself waits until a timer wakes it, if it does for most of the time. Without the place,
    which is only known if it is traced, that would help nobody."""
    slept = sum(time for sample, time in waits if len(chain := chain_of(sample)) > 1 and chain[-1].kind == TIMER)
    if not slept or slept < _MOSTLY * whole:
        return ""
    column = profile.index(COLUMN)
    times: Counter[tuple[str, ...]] = Counter()
    sites, parts = Sites(), []
    for sample in profile.samples:
        if has_waker(sample.stack) and victim_of(sample.labels) in ends and chain_of(sample)[0].kind == TIMER:
            parts.append(own_part(sample.stack))  # sites are known by the identity of their stacks
            times[sites.of(parts[-1]).frames] += sample.values[column]
    where = _most(times, times.total())
    return f"; for {share(slept, whole)} of that, it sleeps itself, in {' → '.join(where)}" if where else ""


def _most(times: Counter[tuple[str, ...]], whole: int) -> tuple[str, ...]:
    found, most = max(times.items(), key=lambda entry: (entry[1], entry[0]), default=((), 0))
    return found if most >= _MOSTLY * whole else ()
