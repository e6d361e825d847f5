"""Common parts of the formats of a wait-for graph: nodes and edges with safe names, and those that are drawn."""

from __future__ import annotations

from typing import NamedTuple

from ...base.errors import StallscopeError
from ...base.text import printable
from ...base.units import duration
from ...facts.idle_evidence import idle_nodes
from ...graph.bounded import bounded, without_victims
from ...graph.knots import knots
from ...model import Profile
from ...model.states import RUNNABLE_STATES, RUNNING
from ...model.waits_for import COLUMN, PROCESS, THREAD, Node, WaitGraph, by_process, has_wakers, waits_for
from ..base.options import WriteOptions

_NODES, _EDGES = 2_000, 10_000
"""Most nodes and edges that are written; what is rarer is in a node ``[other]``."""
_DRAWN_NODES, _DRAWN_EDGES = 40, 80
_FAINT = 0.005
"""Edges with a smaller share of all waiting are not drawn."""
_WAITS = {"count", "min", "max"}


class Point(NamedTuple):
    """A node. Names are safe to print."""

    id: str
    kind: str
    name: str
    process: str
    thread: str
    pid: int
    tid: int
    traced: bool
    idle: bool
    knot: int
    """Number of the knot, by time, that it is in; 0: none."""
    waits: int
    """ns that it was blocked."""
    blocks: int
    """ns of others' waits that end with it."""


class Arrow(NamedTuple):
    """An edge, from who waited to who was waited for. Times in ns."""

    source: str
    target: str
    waited: int
    passed_on: int


class Picture(NamedTuple):
    """A graph that can be written."""

    title: str
    by: str
    total: int
    idle: int
    """Part of the total that idle threads waited."""
    lost: dict[str, int]
    points: list[Point]
    arrows: list[Arrow]
    faint: int
    """ns, after redistribution, on edges that are not drawn."""

    def subtitle(self) -> str:
        """``12.0 s blocked, of which 8.00 s of idle threads; a node per process``"""
        idle = f", of which {duration(self.idle)} of idle threads" if self.idle else ""
        lost = ", ".join(f"lost: {number} {printable(kind)}" for kind, number in self.lost.items() if number)
        faint = f"edges with {duration(self.faint)} in all are not drawn" if self.faint else ""
        return "; ".join(filter(None, (f"{duration(self.total)} blocked{idle}", f"a node per {self.by}", faint, lost)))


def _was_blocked(profile: Profile) -> bool:
    return COLUMN not in {each.name for each in profile.value_types} or any(
        sample.label("state") not in (*RUNNABLE_STATES, RUNNING) for sample in profile.samples
    )


def picture(profile: Profile, options: WriteOptions, *, drawn: bool = False) -> Picture:
    """The graph; ``drawn``: small enough for a drawing, without what idle threads wait for unless ``options.idle``.

    StallscopeError if the profile does not tell who ended waits. Without a wait, the graph is empty.
    """
    if not has_wakers(profile) and _was_blocked(profile):
        raise StallscopeError(
            "the profile does not tell who ended waits, so that it has no wait-for graph",
            "record it with trace-wakeup, or with --wakers",
            exit_code=2,
        )
    graph = waits_for(profile)
    names = {value_type.name for value_type in profile.value_types}
    idle = idle_nodes(profile, graph) if names >= _WAITS else set()
    without = without_victims(graph, idle)
    idle_time = graph.total - without.total
    whole = graph.total
    if drawn and not options.idle and without.total:
        graph = without
    if options.by == PROCESS:
        graph, idle = by_process(graph), _idle_processes(graph, idle)
    few = bounded(graph, *((_DRAWN_NODES, _DRAWN_EDGES) if drawn else (_NODES, _EDGES)))
    title = printable(options.title or profile.title or "Wait-for graph")
    ids = _ids(few)
    points, arrows = _points(few, idle, without, ids), _arrows(few, ids)
    least = _FAINT * graph.total if drawn else 0
    faint = [arrow for arrow in arrows if arrow.passed_on < least]
    if faint:
        arrows = [arrow for arrow in arrows if arrow.passed_on >= least]
        used = {name for arrow in arrows for name in (arrow.source, arrow.target)}
        points = [point for point in points if point.id in used]
    not_drawn = sum(arrow.passed_on for arrow in faint)
    return Picture(title, graph.by, whole, idle_time, dict(profile.lost), points, arrows, not_drawn)


def several_processes(profile: Profile) -> bool:
    """Whether waits of more than one process were recorded."""
    return len({times.pid for times in profile.threads}) > 1


def _idle_processes(graph: WaitGraph, idle: set[Node]) -> set[Node]:
    """Processes with idle threads only."""
    active = {node.pid for node in graph.traced - idle}
    return {Node(PROCESS, node.pid) for node in idle if node.pid not in active}


def _points(graph: WaitGraph, idle: set[Node], without_idle: WaitGraph, ids: dict[Node, str]) -> list[Point]:
    waits, blocks = graph.waits(), graph.blocks()
    of_knots = by_process(without_idle) if graph.by == PROCESS else without_idle
    knotted = {node: i for i, knot in enumerate(knots(of_knots), 1) for node in knot.nodes}
    made = []
    for node, name in ids.items():
        process, thread = map(printable, graph.names.get(node, (node.name, "")))
        made.append(
            Point(
                id=name,
                kind=node.kind,
                name=_name(node, process, thread),
                process=process,
                thread=thread,
                pid=node.pid,
                tid=node.tid,
                traced=node in graph.traced,
                idle=node in idle,
                knot=knotted.get(node, 0),
                waits=waits.get(node, 0),
                blocks=blocks.get(node, 0),
            )
        )
    return made


def _arrows(graph: WaitGraph, ids: dict[Node, str]) -> list[Arrow]:
    arrows = [Arrow(ids[one], ids[other], edge.waited, edge.passed_on) for (one, other), edge in graph.edges.items()]
    return sorted(arrows, key=lambda arrow: (-max(arrow.waited, arrow.passed_on), arrow))


def _ids(graph: WaitGraph) -> dict[Node, str]:
    """Safe and unique: ``thread 4711/4712``, ``process 4711``, ``timer [timer]``."""
    made: dict[Node, str] = {}
    used: set[str] = set()
    for node in sorted({node for pair in graph.edges for node in pair}):
        number = f"{node.pid}/{node.tid}" if node.kind == THREAD else str(node.pid or "")
        name = printable(" ".join(filter(None, (node.kind, number, node.name))))
        # Different names can be equal when they are printable.
        made[node] = name if name not in used else f"{name} #{len(made)}"
        used.add(made[node])
    return made


def _name(node: Node, process: str, thread: str) -> str:
    if node.kind == THREAD and node.tid != node.pid:
        return f"{process}-{node.pid}/{thread}-{node.tid}"
    return f"{process}-{node.pid}" if node.pid else process
