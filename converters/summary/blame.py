"""Says with whom most of what threads wait for ends, and claims no more than the chains of wakers show."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ..base.units import count, duration, share
from ..facts.thread_names import name_pattern, thread_pattern
from ..facts.wait_kinds import LOCK
from ..facts.waits import Waits
from ..facts.wakers import Wakers
from ..model import Profile, Sample, ThreadTimes
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
from ..model.wakers import has_waker, own_part
from .blamed import Blamed

_MUCH = 0.3
"""Somebody is blamed from this share of what a group of threads waits for on."""
_SIGNIFICANT = 0.05
"""… if the group waits for this share of its time."""
_MOSTLY = 0.5
"""Where the blamed one ended waits is told if it is so for this share of the time."""


class _Group(NamedTuple):
    """Who waits: processes of one name; if there is a single process, its threads of one name."""

    process: str
    thread: str


class _Culprit(NamedTuple):
    """With whom a wait ends: other processes of one name; a single process or thread (pid, tid); or a device."""

    name: str
    pid: int = 0
    tid: int = 0


class _Case(NamedTuple):
    group: _Group
    culprit: _Culprit
    time: int
    whole: int


class Told(NamedTuple):
    """What is said of a case."""

    sentence: str = ""
    """"" if nobody stands out. Names are unescaped (hostile)."""
    untraced: tuple[int, ...] = ()
    """The ids of the processes that are blamed, if none of them was traced."""
    victim: int = 0
    """The id of the thread that waits longest for who is blamed."""


class Blame:
    """Of the threads of a graph that do not only wait for work."""

    def __init__(self, graph: WaitGraph, idle: set[Node], threads: Iterable[ThreadTimes]) -> None:
        self._graph = graph
        self._victims = {victim for victim, _ in graph.edges} - idle
        self._several = len({node.pid for node in self._victims}) > 1
        self._groups: dict[_Group, set[Node]] = defaultdict(set)
        for node in self._victims:
            self._groups[self._group(node)].add(node)
        self._pids = {group: {node.pid for node in nodes} for group, nodes in self._groups.items()}
        self._blamed = Blamed(graph, threads)

    def blamed(self, profile: Profile, wakers: Wakers) -> Told:
        """The case with the longest time. ``profile`` is that of the graph."""
        case = max(self._cases(profile), key=lambda case: (case.time, case), default=None)
        if case is None:
            return Told()
        return Told(self._sentence(case, profile, wakers), self._untraced(case), self._victim(case))

    def _sentence(self, case: _Case, profile: Profile, wakers: Wakers) -> str:
        samples = list(self._samples(profile, case))
        where = _where(samples, case.time, wakers)
        waiting = len(self._groups[case.group])
        base = f"{share(case.whole, self._wall(case.group))} of {'their' if waiting > 1 else 'its'} time"
        text = f"{share(case.time, case.whole)} of what {self._waiting(case)} for others ({base}) "
        text += f"ends with {self._whom(case)}"
        text += f", in {' → '.join(where)}" if where else ""
        if profile.duration_ns:
            often = duration(case.time * 1_000_000_000 // profile.duration_ns)
            together = ", all together" if waiting > 1 else ""
            text += f": {often} each second{together}"
        return f"{text}{self._blamed.does(profile, self._ends(case), samples)}."

    def _group(self, node: Node) -> _Group:
        process, thread = self._graph.names[node]
        if self._several:
            return _Group(name_pattern(process), "")
        return _Group(process, thread_pattern(thread, node.pid == node.tid))

    def _wall(self, group: _Group) -> int:
        return self._blamed.wall(self._groups[group])

    def _cases(self, profile: Profile) -> Iterator[_Case]:
        whole = self._asked_again(profile)
        times: Counter[tuple[_Group, _Culprit]] = Counter()
        for (victim, end), time in self._graph.ends.items():
            # What ends only because of a thread's own timer, it waits for nobody.
            if victim in self._victims and end.kind != TIMER:
                group = self._group(victim)
                whole[group] += time
                if culprit := self._culprit(group, victim, end):
                    times[group, culprit] += time
        for (group, culprit), time in times.items():
            wall = self._wall(group)
            if time >= _MUCH * whole[group] and whole[group] >= _SIGNIFICANT * wall > 0:
                yield _Case(group, culprit, time, whole[group])

    def _asked_again(self, profile: Profile) -> Counter[_Group]:
        """What they wait for locks until a timer of their own ends it, and they ask again: for others, too."""
        found: Counter[_Group] = Counter()
        column, waits, parts = profile.index(COLUMN), Waits(), []
        for sample in profile.samples:
            if not (has_waker(sample.stack) and sample.values[column] and sample.label("waker") == "[timer]"):
                continue
            victim = victim_of(sample.labels)
            if victim in self._victims:
                parts.append(own_part(sample.stack))  # waits are known by the identity of their stacks
                if waits.of(parts[-1], str(sample.label("state"))).kind == LOCK:
                    found[self._group(victim)] += sample.values[column]
        return found

    def _culprit(self, group: _Group, victim: Node, end: Node) -> _Culprit | None:
        if end.kind == DEVICE:
            return _Culprit(end.name)
        if end.kind != THREAD or victim == end:
            return None
        process, thread = self._graph.names[end]
        if end.pid == victim.pid:
            # Threads that wait for their main thread wait for work.
            return _Culprit(thread or process, end.pid, end.tid) if end.tid != end.pid else None
        if end.pid in self._pids[group]:
            return _Culprit(process, end.pid)
        return _Culprit(name_pattern(process))

    def _samples(self, profile: Profile, case: _Case) -> Iterator[tuple[Sample, int]]:
        column = profile.index(COLUMN)
        for sample in profile.samples:
            if not (has_waker(sample.stack) and sample.values[column]):
                continue
            victim = victim_of(sample.labels)
            if victim in self._groups[case.group]:
                end = end_of(chain_of(sample))
                if self._culprit(case.group, victim, end) == case.culprit:
                    yield sample, sample.values[column]

    def _waiting(self, case: _Case) -> str:
        nodes, (process, thread) = self._groups[case.group], case.group
        processes = len(self._pids[case.group])
        if processes > 1:
            return f"the {count(processes)} processes {process} wait"
        if self._several:
            return f"{process} (pid {next(iter(nodes)).pid}) waits"
        if len(nodes) > 1:
            return f"the {count(len(nodes))} {thread} threads of {process} wait"
        return f"the {thread} thread of {process} waits"

    def _ends(self, case: _Case) -> set[Node]:
        """The threads that are blamed."""
        victims = self._groups[case.group]
        return {
            end
            for victim, end in self._graph.ends
            if victim in victims and self._culprit(case.group, victim, end) == case.culprit
        }

    def _victim(self, case: _Case) -> int:
        times: Counter[Node] = Counter()
        for (victim, end), time in self._graph.ends.items():
            if victim in self._groups[case.group] and self._culprit(case.group, victim, end) == case.culprit:
                times[victim] += time
        return max(times, key=lambda node: (times[node], node)).tid

    def _untraced(self, case: _Case) -> tuple[int, ...]:
        pids = {end.pid for end in self._ends(case)} - {0}
        return () if any(node.pid in pids for node in self._graph.traced) else tuple(sorted(pids))

    def _whom(self, case: _Case) -> str:
        culprit = case.culprit
        if culprit.tid:
            return f"its own thread {culprit.name} (tid {culprit.tid})"
        if culprit.pid:
            return f"{culprit.name} (pid {culprit.pid})"
        ends = self._ends(case)
        pids = {end.pid for end in ends} - {0}
        if not pids:
            return culprit.name
        note = ", not traced" if self._untraced(case) else ""
        if len(pids) == 1:
            name = self._graph.names[min(ends)][0]
            return f"{name} (pid {pids.pop()}{note})"
        return f"{count(len(pids))} processes {culprit.name}{f' ({note[2:]})' if note else ''}"


def _where(samples: list[tuple[Sample, int]], whole: int, wakers: Wakers) -> tuple[str, ...]:
    """Where most of these waits were ended."""
    times: Counter[tuple[str, ...]] = Counter()
    for sample, time in samples:
        times[wakers.site_of(chain_stack(sample.stack)).frames] += time
    frames, most = max(times.items(), key=lambda entry: (entry[1], entry[0]), default=((), 0))
    return frames if most >= _MOSTLY * whole else ()
