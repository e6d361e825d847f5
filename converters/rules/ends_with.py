"""Most of what threads wait for others ends with the same ones, as the chains of wakers show."""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from ..facts import thresholds
from ..facts.facts import Facts
from ..facts.identity import kernel_id
from ..facts.idle_evidence import node_of, waiting_for_work
from ..facts.thread_names import thread_pattern
from ..facts.wait_kinds import EVENTS, LOCK, PEER
from ..facts.wait_kinds import THREAD as FOR_THREAD
from ..facts.waits import Waits
from ..facts.wakers import Wakers
from ..model import Frame, Profile, Sample
from ..model.kinds import kind_of_module
from ..model.waits_for import (
    COLUMN,
    DEVICE,
    THREAD,
    TIMER,
    Node,
    WaitGraph,
    chain_of,
    chain_stack,
    end_of,
    victim_of,
)
from ..model.wakers import has_waker
from . import idle
from .doing import Doing, Doings
from .verdict import IO, Verdict

RULE = "ends-with"


class EndsWith(NamedTuple):
    """The detail of such a verdict. Times in ns; names are unescaped (hostile)."""

    process: str
    """Name of the processes that wait."""
    thread: str
    """"" if they are all of a process, or of several."""
    waiting: int
    """Number of threads that wait."""
    processes: int
    pid: int
    """Id of the process that waits; of several, the lowest one."""
    wall: int
    waits: int
    """Time that the threads wait for others."""
    time: int
    """The part of it that ends with the others."""
    name: str
    """Name of the others, or of a device."""
    others: tuple[int, ...]
    """Ids of the processes of the others."""
    tid: int
    """Id of the thread for which they wait, if it is one of their own process; else 0."""
    is_one: bool
    """Whether the other is one process among those that wait, too."""
    untraced: tuple[int, ...]
    """``others``, if none of them was traced."""
    victim: int
    """The id of the thread that waits longest for them."""
    frames: tuple[str, ...]
    """Place where the others end most of these waits."""
    doing: Doing | None
    """Work of the others meanwhile; None if nothing is known of it."""


class _Group(NamedTuple):
    """Threads that wait: processes of one name; if there is a single process, its threads of one name."""

    process: str
    thread: str


class _Culprit(NamedTuple):
    """End of a wait: other processes of one name; a single process or thread (pid, tid); or a device."""

    name: str
    pid: int = 0
    tid: int = 0


class _Case(NamedTuple):
    group: _Group
    culprit: _Culprit
    time: int
    whole: int


def find(facts: Facts) -> list[Verdict]:
    """The one with the longest time, of threads that do not only wait for work; of event loops, too, if nothing else
    goes on: they may wait for replies."""
    return about(facts)


def about(facts: Facts, pids: frozenset[int] = frozenset()) -> list[Verdict]:
    """Finds it among threads of these processes, if any are given (own ids)."""
    return facts.once(_blame).find(frozenset(map(kernel_id, pids))) if facts.recorded else []


def for_work(facts: Facts) -> Counter[tuple[Node, Node]]:
    """Time in ns of waits for work of threads that do not only wait for it, by who waits and who ends them."""
    return facts.once(_blame).for_work if facts.recorded else Counter()


def _blame(facts: Facts) -> Blame:
    assert facts.recorded is not None
    loops = {thread for verdict in idle.find(facts) if verdict.finding for thread in verdict.finding.threads}
    left_out = {node_of(thread) for thread in waiting_for_work(facts.roles, facts.sums) - loops}
    return Blame(facts.recorded.graph, left_out, facts.recorded.profile, frozenset(map(node_of, loops)))


class Blame:
    """Search for those with whom waits end, among the threads of a graph that do not only wait for work."""

    def __init__(
        self, graph: WaitGraph, idle: set[Node], profile: Profile, loops: frozenset[Node] = frozenset()
    ) -> None:
        """``profile``: that of the graph. ``loops``: threads whose waits for events are all for others; some of other
        threads' are for work."""
        self._graph, self._profile, self._loops = graph, profile, loops
        self._victims = {victim for victim, _ in graph.edges} - idle
        self._several = len({node.pid for node in self._victims}) > 1
        self._groups: dict[_Group, set[Node]] = defaultdict(set)
        for node in self._victims:
            self._groups[self._group(node)].add(node)
        self._pids = {group: {node.pid for node in nodes} for group, nodes in self._groups.items()}
        self._doings = Doings(graph, profile)
        self._walls = {group: self._doings.wall(nodes) for group, nodes in self._groups.items()}
        self._of_kernel = _of_kernel(profile)
        self._in_kernel = self._of_kernel - graph.traced
        self._again, self.for_work = self._by_kind()

    def find(self, of: frozenset[int] = frozenset()) -> list[Verdict]:
        """Finds at most one verdict, of threads of these processes if any are given."""
        cases = (case for case in self._cases if not of or of & self._pids[case.group])
        case = max(cases, key=lambda case: (case.time, case), default=None)
        if case is None:
            return []
        kind = IO if not self._others(case) else FOR_THREAD if case.culprit.tid else PEER
        pids = frozenset(self._pids[case.group])
        return [Verdict(RULE, kind, case.time, 1, pids, detail=self._detail(case))]

    def _detail(self, case: _Case) -> EndsWith:
        nodes, (process, thread) = self._groups[case.group], case.group
        pids, samples, ends = self._pids[case.group], list(self._samples(case)), self._ends(case)
        others = self._others(case)
        name = case.culprit.name
        if len(others) == 1 and not case.culprit.pid:
            name = self._graph.names[min(ends)][0]
        return EndsWith(
            process,
            "" if self._several else thread,
            len(nodes),
            len(pids),
            min(pids),
            self._walls[case.group],
            case.whole,
            case.time,
            name,
            others,
            case.culprit.tid,
            bool(case.culprit.pid) and not case.culprit.tid,
            self._untraced(others),
            self._victim(case),
            _where(samples, case.time),
            self._doings.of(ends, samples),
        )

    def _group(self, node: Node) -> _Group:
        process, thread = self._graph.names[node]
        if self._several:
            return _Group(thread_pattern(process, main=False), "")
        return _Group(process, thread_pattern(thread, node.pid == node.tid))

    @functools.cached_property
    def _cases(self) -> list[_Case]:
        return list(self._found())

    def _found(self) -> Iterator[_Case]:
        whole = self._again.copy()
        times: Counter[tuple[_Group, _Culprit]] = Counter()
        for (victim, end), time in self._graph.ends.items():
            # What ends only because of a thread's own timer, it waits for nobody.
            if victim in self._victims and end.kind != TIMER:
                group = self._group(victim)
                left = time - self.for_work[victim, end]
                whole[group] += left
                if left and (culprit := self._culprit(group, victim, end)):
                    times[group, culprit] += left
        for (group, culprit), time in times.items():
            wall, much = self._walls[group], thresholds.BLAMED * whole[group]
            if time >= much and whole[group] >= thresholds.SIGNIFICANT * wall > 0:
                yield _Case(group, culprit, time, whole[group])

    def _by_kind(self) -> tuple[Counter[_Group], Counter[tuple[Node, Node]]]:
        """Time of waits for locks that a timer of the group's own ends, and which are repeated: for others, too. And
        time of waits for work, by victim and end."""
        again: Counter[_Group] = Counter()
        for_events: Counter[tuple[Node, Node]] = Counter()
        column, waits, wakers = self._profile.index(COLUMN), Waits(), Wakers()
        who: dict[int, tuple[str, str]] = {}  # by labels, which samples share
        for sample in self._profile.samples:
            if not sample.values[column] or not has_waker(sample.stack):
                continue
            if id(sample.labels) not in who:
                who[id(sample.labels)] = str(sample.label("state")), str(sample.label("waker"))
            state, waker = who[id(sample.labels)]
            kind = waits.of(wakers.own(sample.stack), state).kind
            is_again = kind == LOCK and waker == "[timer]"
            if not is_again and kind != EVENTS:
                continue
            victim = victim_of(sample.labels)
            if is_again and victim in self._victims:
                again[self._group(victim)] += sample.values[column]
            elif not is_again and victim in self._victims and victim not in self._loops:
                for_events[victim, end_of(chain_of(sample))] += sample.values[column]
        return again, self._for_work(for_events)

    def _for_work(self, for_events: Counter[tuple[Node, Node]]) -> Counter[tuple[Node, Node]]:
        """Keeps those that a process ends which itself waits for longer for the one that it wakes, as a client does;
        and those that threads of the kernel end: they hand on what was asked for."""
        between: Counter[tuple[int, int]] = Counter()
        events: Counter[tuple[int, int]] = Counter()
        for (victim, end), time in self._graph.ends.items():
            between[victim.pid, end.pid] += time
        for (victim, end), time in for_events.items():
            events[victim.pid, end.pid] += time
        return Counter(
            {
                (victim, end): time
                for (victim, end), time in for_events.items()
                if between[end.pid, victim.pid] > events[victim.pid, end.pid] or end in self._of_kernel
            }
        )

    def _culprit(self, group: _Group, victim: Node, end: Node) -> _Culprit | None:
        if end.kind == DEVICE:
            return _Culprit(end.name)
        if end.kind != THREAD or victim == end or end in self._in_kernel:
            return None
        process, thread = self._graph.names[end]
        if end.pid == victim.pid:
            # Threads that wait for their main thread wait for work.
            return _Culprit(thread or process, end.pid, end.tid) if end.tid != end.pid else None
        if end.pid in self._pids[group]:
            return _Culprit(process, end.pid)
        return _Culprit(thread_pattern(process, main=False))

    def _samples(self, case: _Case) -> Iterator[tuple[Sample, int]]:
        column = self._profile.index(COLUMN)
        for sample in self._profile.samples:
            if not (has_waker(sample.stack) and sample.values[column]):
                continue
            victim = victim_of(sample.labels)
            if victim in self._groups[case.group]:
                end = end_of(chain_of(sample))
                if self._culprit(case.group, victim, end) == case.culprit:
                    yield sample, sample.values[column]

    def _ends(self, case: _Case) -> set[Node]:
        """The threads that are blamed."""
        victims = self._groups[case.group]
        return {
            end
            for victim, end in self._graph.ends
            if victim in victims and self._culprit(case.group, victim, end) == case.culprit
        }

    def _others(self, case: _Case) -> tuple[int, ...]:
        return tuple(sorted({end.pid for end in self._ends(case)} - {0}))

    def _victim(self, case: _Case) -> int:
        times: Counter[Node] = Counter()
        for (victim, end), time in self._graph.ends.items():
            if victim in self._groups[case.group] and self._culprit(case.group, victim, end) == case.culprit:
                times[victim] += time
        return max(times, key=lambda node: (times[node], node)).tid

    def _untraced(self, pids: tuple[int, ...]) -> tuple[int, ...]:
        return () if any(node.pid in pids for node in self._graph.traced) else pids


def _of_kernel(profile: Profile) -> set[Node]:
    """Threads of the kernel: they do what a device, or a thread of a process, has asked for."""
    column = profile.index(COLUMN)
    found: dict[Node, bool] = {}
    for sample in profile.samples:
        if has_waker(sample.stack) and sample.values[column]:
            end = end_of(chain_of(sample))
            if end.kind == THREAD and found.get(end, True):
                frames = chain_stack(sample.stack)
                found[end] = bool(frames) and all(_is_kernels(frame) for frame in frames)
    return {node for node, is_kernels in found.items() if is_kernels}


def _is_kernels(frame: Frame) -> bool:
    return frame.module is not None and kind_of_module(frame.module.path) == "kernel"


def _where(samples: list[tuple[Sample, int]], whole: int) -> tuple[str, ...]:
    """Place where most of these waits were ended."""
    times: Counter[tuple[str, ...]] = Counter()
    wakers = Wakers()
    for sample, time in samples:
        times[wakers.site_of(chain_stack(sample.stack)).frames] += time
    frames, most = max(times.items(), key=lambda entry: (entry[1], entry[0]), default=((), 0))
    return frames if most >= thresholds.DOES_MOSTLY * whole else ()
