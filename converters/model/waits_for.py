"""Wait-for graph of a profile with wakers.

An edge leads from a thread that was blocked to the one that ended the wait. It has two times. `Edge.waited`: the whole
waits that the second one ended. `Edge.passed_on`: the same after cascaded redistribution (F. Zhou et al., wPerf, OSDI
2018): while the second one was itself waiting, the first one waited for what that one waited for. This part of the time
goes on to the edge from the second one to the third one, and so on through the chain. Either adds up to the blocked
time of all threads.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from .profile import Profile
from .samples import Labels, Sample, Stack
from .wakers import has_waker, links, tids_of

THREAD, PROCESS, TIMER, DEVICE, SOFTIRQ, CORE, UNKNOWN, OTHER = KINDS = (
    "thread",
    "process",
    "timer",
    "device",
    "softirq",
    "core",
    "unknown",
    "other",
)
"""Kinds of nodes. `UNKNOWN`: nobody is known to have ended the wait, or it had not ended. `OTHER`: several nodes."""
COLUMN = "blocked"
"""The value type of samples with wakers."""
_PROCESS = re.compile(r"(.*)-(\d{1,10})(?: ([A-Z_0-9]+))?", re.DOTALL)
"""The name of a waker that is no interrupt; ksoftirqd's has the softirq that it ran behind it."""
_TIMERS = ("TIMER", "HRTIMER")
"""Softirqs that timers raise."""
_INTERRUPTS = {"[timer]": TIMER, "[interrupt ": DEVICE, "[softirq ": SOFTIRQ, "[another core]": CORE}


class Node(NamedTuple):
    """Equal for what is one node. ``tid`` is 0 for a process. ``name`` tells nodes without ids apart: interrupts, and
    threads that ended and were added up by name."""

    kind: str
    pid: int = 0
    tid: int = 0
    name: str = ""


@dataclass(slots=True)
class Edge:
    """Times in ns."""

    waited: int = 0
    passed_on: int = 0

    def add(self, other: Edge) -> None:
        self.waited += other.waited
        self.passed_on += other.passed_on


@dataclass(slots=True)
class WaitGraph:
    """All names are hostile."""

    edges: dict[tuple[Node, Node], Edge] = field(default_factory=lambda: defaultdict(Edge))
    """Edges, by (who waited, who was waited for)."""
    ends: dict[tuple[Node, Node], int] = field(default_factory=lambda: defaultdict(int))
    """Blocked time by who waited and the last thread of the chain; an interrupt only if no thread is in the chain."""
    names: dict[Node, tuple[str, str]] = field(default_factory=dict)
    """Process and thread ("" for all of a process) of each node."""
    traced: set[Node] = field(default_factory=set)
    """Nodes whose waits were recorded, if they had any."""
    by: str = THREAD

    @property
    def total(self) -> int:
        """Blocked time of all threads, in ns."""
        return sum(edge.waited for edge in self.edges.values())

    def waits(self) -> dict[Node, int]:
        """Blocked time by who waited."""
        found: dict[Node, int] = defaultdict(int)
        for (victim, _), edge in self.edges.items():
            found[victim] += edge.waited
        return found

    def blocks(self) -> dict[Node, int]:
        """Blocked time of others by the end of the chain."""
        found: dict[Node, int] = defaultdict(int)
        for (victim, end), time in self.ends.items():
            if victim != end:
                found[end] += time
        return found

    def mapped(self, to: Callable[[Node], Node], names: Mapping[Node, tuple[str, str]], by: str = "") -> WaitGraph:
        """The graph with other nodes in place of these, and the same times; ``names``: those of nodes that are new."""
        made = WaitGraph(by=by or self.by)
        for (victim, waker), edge in self.edges.items():
            made.edges[to(victim), to(waker)].add(edge)
        for (victim, end), time in self.ends.items():
            made.ends[to(victim), to(end)] += time
        for node, name in self.names.items():
            new = to(node)
            made.names.setdefault(new, names.get(new, name))
        made.traced = {to(node) for node in self.traced}
        return made


def has_wakers(profile: Profile) -> bool:
    """Whether it tells who ended waits."""
    return any(value_type.name == COLUMN for value_type in profile.value_types) and any(
        has_waker(sample.stack) for sample in profile.samples
    )


def waits_for(profile: Profile, processes: Mapping[int, str] | None = None) -> WaitGraph:
    """The graph of threads; ``processes``: better names of processes, by pid. KeyError if the profile has no column
    `COLUMN`."""
    column, graph = profile.index(COLUMN), WaitGraph()
    maker = _Maker(graph, processes or {})
    for times in profile.threads:
        node = _thread(times.pid, times.tid, times.process, times.thread)
        maker.name(node, times.process, times.thread)
        graph.traced.add(node)
    for sample in profile.samples:
        if has_waker(sample.stack) and sample.values[column]:
            maker.add(sample, sample.values[column])
    return graph


def by_process(graph: WaitGraph) -> WaitGraph:
    """The graph with a node per process."""
    names = {_process(node): (process, "") for node, (process, _) in graph.names.items()}
    for node, name in graph.names.items():
        if node.tid and node.tid == node.pid:
            names[_process(node)] = name[0], ""  # what the main thread's process is called
    return graph.mapped(_process, names, PROCESS)


def _process(node: Node) -> Node:
    return Node(PROCESS, node.pid, name="" if node.pid else node.name) if node.kind == THREAD else node


def victim_of(labels: Labels) -> Node:
    """Node of the thread whose wait a sample with these labels is."""
    found = dict(labels)
    pid, tid = (number if isinstance(number := found.get(key), int) else 0 for key in ("pid", "tid"))
    return _thread(pid, tid, str(found.get("process", "")), str(found.get("thread", "")))


def chain_of(sample: Sample) -> list[Node]:
    """Nodes of the one that ended a wait, the one that had ended a wait of that one, and so on; never empty."""
    return _chain(sample, links(sample.stack))


def _chain(sample: Sample, of: Sequence[Stack]) -> list[Node]:
    names = [link[-1].name for link in of] or ["[unknown waker]"]
    return [_link(name, tid) for name, tid in zip(names, tids_of(sample, len(names)), strict=True)]


def end_of(chain: Sequence[Node]) -> Node:
    """The last thread of a chain; if there is none, the interrupt."""
    return next((node for node in reversed(chain) if node.kind == THREAD), chain[0])


def chain_stack(stack: Stack) -> Stack:
    """The stack of the last thread of the chain, innermost frame first; empty if there is none."""
    threads = [link for link in links(stack) if not link[-1].name.endswith("]")]
    return threads[-1][:-1] if threads else ()


def _thread(pid: int, tid: int, process: str, thread: str) -> Node:
    return Node(THREAD, pid, tid, "" if tid else thread if pid else process)


@lru_cache(maxsize=1 << 14)
def _link(name: str, tid: int) -> Node:
    match = None if name.endswith("]") else _PROCESS.fullmatch(name)
    if match and match[3]:  # ksoftirqd does what others have asked for
        return Node(TIMER, name="[timer]") if match[3] in _TIMERS else Node(SOFTIRQ, name=f"[softirq {match[3]}]")
    if match:
        return Node(THREAD, int(match[2]), tid)
    return Node(next((kind for begin, kind in _INTERRUPTS.items() if name.startswith(begin)), UNKNOWN), name=name)


def _process_name(name: str) -> str:
    match = None if name.endswith("]") else _PROCESS.fullmatch(name)
    if match and match[3]:
        return _link(name, 0).name
    return match[1] if match else name


class _Maker:
    """Adds samples to a graph. Cached by identity: samples share their labels and stacks."""

    def __init__(self, graph: WaitGraph, processes: Mapping[int, str]) -> None:
        self._graph, self._processes = graph, processes
        self._victims: dict[int, Node] = {}
        self._chains: dict[tuple[int, int], tuple[list[Node], Node]] = {}
        self._links: dict[int, list[Stack]] = {}

    def name(self, node: Node, process: str, thread: str) -> None:
        self._graph.names.setdefault(node, (self._processes.get(node.pid, process), thread))

    def add(self, sample: Sample, time: int) -> None:
        victim = self._victims.get(id(sample.labels))
        if victim is None:
            victim = self._victims[id(sample.labels)] = victim_of(sample.labels)
            self.name(victim, str(sample.label("process") or ""), str(sample.label("thread") or ""))
            self._graph.traced.add(victim)
        key = id(sample.stack), id(sample.labels)
        found = self._chains.get(key)
        if found is None:
            of = self._links.get(id(sample.stack))
            if of is None:
                of = self._links[id(sample.stack)] = links(sample.stack)
            chain = _chain(sample, of)
            self._name_all(chain, sample, of)
            found = self._chains[key] = chain, end_of(chain)
        chain, end = found
        edges = self._graph.edges
        edges[victim, chain[0]].waited += time
        edges[chain[-2] if len(chain) > 1 else victim, chain[-1]].passed_on += time
        self._graph.ends[victim, end] += time

    def _name_all(self, chain: Sequence[Node], sample: Sample, of: Sequence[Stack]) -> None:
        """The names of the threads of the first link and of the last thread are in labels, others are traced."""
        last = max((i for i, node in enumerate(chain) if node.tid), default=0)
        labels = {last: "chain_thread", 0: "waker_thread"}
        for i, (node, link) in enumerate(zip(chain, of, strict=False)):
            process = _process_name(link[-1].name)
            thread = str((i in labels and sample.label(labels[i])) or process) if node.kind == THREAD else ""
            self.name(node, process, thread)
