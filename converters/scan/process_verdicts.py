"""Verdicts on each process by itself: what holds it up, and who ends its waits."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ..facts import thresholds
from ..facts.facts import Facts
from ..facts.identity import kernel_id
from ..facts.restricted import Restricted
from ..facts.thread_names import name_pattern
from ..facts.wait_kinds import EVENTS, SLEEP, TOLD_BY_OTHERS
from ..facts.wait_sums import Thread
from ..model.waits_for import DEVICE, THREAD, Node, WaitGraph
from ..phrases.connections import network
from ..phrases.sentences import Sentences
from ..rules import ends_with, for_others
from ..rules.busy import Busy
from ..rules.finding import CPU, Finding, running, waiting
from ..rules.ranking import judge
from ..rules.verdict import IDLE, POLLING, STILL, Verdict, kind_of
from .hot import NOTHING, Hot, hot_of, together
from .nothing_to_do import has_no_work, has_nothing_to_do, needed_pids
from .over_time import OverTime, over_time
from .told_kinds import told_kinds

_End = tuple[Node, Node, tuple[str, int], int]
"""End of waits: who waited, and who ended it; the name and the process of the latter, 0 for a device; ns."""
_Ends = dict[int, list[_End]]
"""Ends of waits by others, by the pid of who waited, as the kernel knows it."""


class _Known(NamedTuple):
    """Knowledge of a process beside its own facts."""

    waits: Mapping[Node, int]
    """Time in ns for which each thread waits."""
    ends: _Ends
    needed: frozenset[int]
    """Processes for which others wait."""
    is_awake: bool
    """Whether it is not idle if something holds it up, though it does nothing."""
    told: frozenset[str]
    """Kinds of verdicts, or of waits, that tell what the first sentence tells of it; none if it is on others."""
    for_work: Mapping[tuple[Node, Node], int]
    """Time in ns of its waits for work, by who waits and who ends them."""
    first: Verdict | None
    """The verdict of which the first sentence tells."""


@dataclass(frozen=True)
class Ender:
    """Process or device that ends waits. The name is unescaped (hostile)."""

    name: str
    pids: tuple[int, ...]
    """Processes of this name that end them; () for a device."""
    time: int
    """ns of waits that it ends; part of `ProcessVerdict.waits`."""


@dataclass(frozen=True)
class ProcessVerdict:
    """Verdict on the processes of one name that do the same in the same place. Times in ns; names are unescaped
    (hostile)."""

    name: str
    pids: tuple[int, ...]
    kind: str
    """One of `rules.verdict.KINDS`; `IDLE` if nothing holds them up."""
    time: int
    """Time of their threads for which they are held up."""
    wall: int
    """Time of these threads; 0 if it is not known."""
    on_cpu: int
    """Time on cores of all their threads."""
    score: float
    """ns that are believed to be saved, see `Verdict.score`."""
    verdict: Verdict | None
    """Verdict on the process with the highest score; None if nothing was judged."""
    ender: Ender | None = None
    """Process or device that ends most of their waits; None if nobody else does."""
    waits: int = 0
    """Time for which the threads of their verdicts wait, wherever and for whatever; 0 if it is not known who ends
    waits. ``ender`` ends a part of it: ``time`` is that of the place of the verdict only."""
    told: str = ""
    """Sentence of ``verdict``; "" for idle ones."""
    verdicts: tuple[Verdict, ...] = ()
    """The verdicts on each of them that are of its kind."""
    over: OverTime | None = None
    """Time in each slice of the scan; None if that was not recorded."""
    network: str = ""
    """Words for what the network does to the connection on which they wait, if that explains it; hostile."""
    hot: Hot = NOTHING
    """Functions in which they run, if the verdict is on that, or has no place."""

    @property
    def share(self) -> float | None:
        """``time`` as a share of ``wall``; None if that is not known."""
        return self.time / self.wall if self.wall else None

    @property
    def frames(self) -> tuple[str, ...]:
        """Place where they are held up, or run; () if it is not known."""
        finding = self.verdict.finding if self.verdict else None
        if finding is None:
            return ()
        return finding.places[0].site.frames if finding.places else finding.runs_in

    @property
    def kernel(self) -> str:
        """Function of the kernel in which they wait; "" if it is not known."""
        finding = self.verdict.finding if self.verdict else None
        return finding.places[0].site.kernel if finding and finding.places else ""


def process_verdicts(facts: Facts, awake: Collection[int] = (), first: Verdict | None = None) -> list[ProcessVerdict]:
    """Verdicts on all processes of user space: those at work first, by what would be saved; then the idle ones.

    ``awake``: the kernel's ids of processes that are not idle if something holds them up, though they do nothing.
    ``first``: the verdict of which the first sentence tells: the processes that it concerns are not idle either.
    """
    rows = _together(each_process(facts, awake, first))
    rows = _over_time(rows, facts) if facts.slices else rows
    return sorted(rows, key=lambda each: (each.kind == IDLE, -each.score, -each.on_cpu, each.pids))


def each_process(facts: Facts, awake: Collection[int] = (), first: Verdict | None = None) -> list[ProcessVerdict]:
    """Verdict on each process of user space by itself, by pid, without slices. ``awake``, ``first``: see
    `process_verdicts`."""
    pids = {pid for pid, _ in facts.own if pid}
    graph = facts.recorded.graph if facts.recorded else None
    each, ends, waits = Restricted(facts), _ends_by_pid(graph) if graph else {}, graph.waits() if graph else {}
    needed = needed_pids(graph, facts.duration) if graph else frozenset[int]()
    told = told_kinds(first, graph)
    for_work: dict[int, dict[tuple[Node, Node], int]] = defaultdict(dict)
    for (victim, end), time in ends_with.for_work(facts).items():
        for_work[victim.pid][victim, end] = time
    found = []
    for pid in sorted(pids):
        kinds = told.get(kernel_id(pid), frozenset())
        own_work = for_work.get(kernel_id(pid), {})
        known = _Known(waits, ends, needed, kernel_id(pid) in awake, kinds, own_work, first)
        found.append(_of(facts, each.of((pid,)), pid, known))
    return found


def _ends_by_pid(graph: WaitGraph) -> _Ends:
    found: _Ends = defaultdict(list)
    for (victim, end), part in graph.ends.items():
        if end.kind in (THREAD, DEVICE) and end.pid != victim.pid:
            name = graph.names[end][0] if end.kind == THREAD else end.name
            found[victim.pid].append((victim, end, (name, end.pid if end.kind == THREAD else 0), part))
    return found


def _of(facts: Facts, own: Facts, pid: int, known: _Known) -> ProcessVerdict:
    verdict = judge(own).first
    if verdict is None or known.told.isdisjoint((verdict.kind, verdict.wait_kind)):
        verdict = _as_cause(own, known.first) or verdict
    verdict = _not_polling(verdict, pid, known)
    finding = verdict.finding if verdict else None
    on_cpu = sum(times.on_cpu for times in own.threads.values())
    name = _name(own, pid)
    is_held = verdict is not None and (
        not known.told.isdisjoint((verdict.kind, verdict.wait_kind))
        or (known.is_awake and verdict.wait_kind not in TOLD_BY_OTHERS)
    )
    is_at_work = (pid in facts.at_work or is_held) and verdict is not None and verdict.kind not in (IDLE, STILL)
    if verdict is None or not is_at_work:
        return ProcessVerdict(name, (pid,), IDLE, 0, 0, on_cpu, 0.0, verdict)
    threads = finding.threads if finding else ()
    time, wall = _times(verdict)
    victims = {Node(THREAD, kernel_id(pid), kernel_id(tid)) for pid, tid in threads}
    # Who waits for events may have no other waits; who is held up does not wait there for those who ask it.
    for_work = known.for_work if verdict.wait_kind != EVENTS else {}
    waits = sum(known.waits.get(victim, 0) for victim in victims)
    waits -= sum(part for (victim, _), part in for_work.items() if victim in victims)
    # Who ends its other waits does not end its sleep.
    ends = known.ends.get(kernel_id(pid), ()) if verdict.kind != SLEEP else ()
    ender = _ender(ends, victims, time, for_work)
    has_nothing = ender is None and has_nothing_to_do(facts, verdict, known.needed)
    if not is_held and (has_nothing or has_no_work(facts, verdict, known.needed)):
        return ProcessVerdict(name, (pid,), IDLE, 0, 0, on_cpu, 0.0, verdict)
    told, all_of = Sentences(own).of(verdict), (verdict,)
    by_network = network(own, verdict).removeprefix("; ")
    hot = NOTHING if finding and finding.places and finding.kind != CPU else hot_of(own, (pid,))
    return ProcessVerdict(
        name,
        (pid,),
        verdict.kind,
        time,
        wall,
        on_cpu,
        verdict.score,
        verdict,
        ender,
        waits,
        told,
        all_of,
        network=by_network,
        hot=hot,
    )


def _as_cause(own: Facts, first: Verdict | None) -> Verdict | None:
    """Verdict on a process that keeps others waiting, as the first sentence tells of it; None if it does not."""
    cause = first.cause if first else None
    threads = [thread for thread in cause.threads if thread in own.threads] if cause else []
    if not first or not cause or not threads:
        return None
    if cause.kind == CPU:
        finding: Finding | None = running(own, threads)
    else:
        places = {thread: [each for each in own.waits_of(thread) if each.kind == cause.kind] for thread in threads}
        finding = waiting(own, cause.kind, {thread: of for thread, of in places.items() if of}, least=0)
    # The rule of the first sentence may tell of details that are its own.
    return Verdict(for_others.RULE, kind_of(finding), finding.time, 1, finding.pids, finding) if finding else None


def _not_polling(verdict: Verdict | None, pid: int, known: _Known) -> Verdict | None:
    """The verdict on a process that sleeps again and again, while others wait for it, as one on its sleep: it asks for
    nothing, it delays them."""
    if verdict and verdict.kind == POLLING and verdict.wait_kind == SLEEP and kernel_id(pid) in known.needed:
        return replace(verdict, kind=SLEEP)
    return verdict


def _over_time(rows: Iterable[ProcessVerdict], facts: Facts) -> list[ProcessVerdict]:
    threads: dict[int, list[Thread]] = defaultdict(list)
    for thread in facts.slices:
        threads[thread[0]].append(thread)
    return [
        replace(row, over=over_time(facts, row.verdicts, [each for pid in row.pids for each in threads[pid]]))
        for row in rows
    ]


def _times(verdict: Verdict) -> tuple[int, int]:
    """Time for which threads are held up, or run, and the whole time of these threads."""
    if isinstance(verdict.detail, Busy):  # its finding has the place of the first group, and the time of all
        return verdict.detail.on_cpu + verdict.detail.runnable, verdict.detail.wall
    finding = verdict.finding
    return (finding.time, finding.wall) if finding else (verdict.time, 0)


def _name(facts: Facts, pid: int) -> str:
    main = facts.threads.get((pid, pid))
    return main.process if main else next(times.process for times in facts.threads.values())


def _ender(
    ends: Iterable[_End], victims: Collection[Node], time: int, for_work: Mapping[tuple[Node, Node], int]
) -> Ender | None:
    """The process, or the device, that ends most of the waits of these threads of one process; None if none ends much
    of ``time``."""
    times: Counter[tuple[str, int]] = Counter()
    for victim, end, ender, part in ends:
        if victim in victims:
            times[ender] += part - for_work.get((victim, end), 0)
    (name, pid), most = max(times.items(), key=lambda entry: (entry[1], entry[0]), default=(("", 0), 0))
    return Ender(name, (pid,) if pid else (), most) if 0 < thresholds.BLAMED * time <= most else None


def _together(found: Iterable[ProcessVerdict]) -> list[ProcessVerdict]:
    """Merges those of one name that do the same in the same place; idle ones are told by their names only."""
    groups: dict[object, list[ProcessVerdict]] = defaultdict(list)
    for each in found:
        # What runs is told by its functions: processes of one name that run in several are one row.
        where = () if each.kind == IDLE or each.hot.told else (each.frames, each.kernel)
        groups[name_pattern(each.name), each.kind, where].append(each)
    return [members[0] if len(members) == 1 else _merged(members) for members in groups.values()]


def _merged(members: Sequence[ProcessVerdict]) -> ProcessVerdict:
    first = max(members, key=lambda each: each.score)
    names = {each.name for each in members}
    time = sum(each.time for each in members)
    return ProcessVerdict(
        first.name if len(names) == 1 else name_pattern(first.name),
        tuple(sorted(pid for each in members for pid in each.pids)),
        first.kind,
        time,
        sum(each.wall for each in members) if all(each.wall for each in members) else 0,
        sum(each.on_cpu for each in members),
        sum(each.score for each in members),
        first.verdict,
        _most(filter(None, (each.ender for each in members)), time),
        sum(each.waits for each in members),
        first.told,
        tuple(verdict for each in members for verdict in each.verdicts),
        network=next(filter(None, (each.network for each in members)), ""),
        hot=together(each.hot for each in members),
    )


def _most(enders: Iterable[Ender], time: int) -> Ender | None:
    """The enders of several processes as one: that which ends most of the waits, of all processes of its name."""
    times: Counter[str] = Counter()
    pids: dict[str, set[int]] = defaultdict(set)
    for each in enders:
        times[name_pattern(each.name)] += each.time
        pids[name_pattern(each.name)].update(each.pids)
    name, most = max(times.items(), key=lambda entry: (entry[1], entry[0]), default=("", 0))
    return Ender(name, tuple(sorted(pids[name])), most) if 0 < thresholds.BLAMED * time <= most else None


def idle_names(rows: Collection[ProcessVerdict]) -> list[tuple[str, int]]:
    """Names of the idle processes, and how many there are of each; most first."""
    numbers = ((each.name, len(each.pids)) for each in rows if each.kind == IDLE)
    return sorted(numbers, key=lambda entry: (-entry[1], entry[0]))
