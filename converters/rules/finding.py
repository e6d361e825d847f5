"""Some threads, and what they do for a part of their time: the subject of a verdict, or its cause."""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ..facts import thresholds
from ..facts.facts import Facts
from ..facts.frame_names import without_line
from ..facts.inner_function import Names, with_inner
from ..facts.wait_kinds import SLEEP, THREAD
from ..facts.wait_objects import On
from ..facts.wait_sums import Place, Sum, Thread
from ..facts.who_can_end import nobody
from ..model.states import PREEMPTED

CPU = "cpu"
"""The kind of a finding on running threads, not a wait."""

Key = tuple[object, ...]
"""Equal for waits that one finding tells of; begins with their kind."""
Members = Mapping[Thread, Sequence[Place]]
"""Threads, and where each of them waits."""


@dataclass(frozen=True)
class Finding:
    """Threads that do one thing. Times in ns."""

    kind: str
    """Kind of the wait, one of `wait_kinds`, or `CPU`."""
    threads: tuple[Thread, ...]
    """Threads that do it, those with most time first."""
    time: int
    wall: int
    """Sum of the threads; 0 if unknown."""
    places: tuple[Place, ...] = ()
    """Places with much of the time, longest first."""
    count: int = 0
    max: int = 0
    runnable: int = 0
    """Part of ``time`` spent waiting for a core, for `CPU`."""

    most: int = 0
    """Part of ``time`` that is the first thread's, for waits; 0 if there is no other one."""
    samples: int = 0
    """Number of samples, for waits that only samples show."""
    runs_in: tuple[str, ...] = ()
    """Place where the threads run most often, for `CPU`; () if it is not known."""
    on: On | None = None
    """File, socket or pipe that most of the time of waits is on; None if it is not known."""
    asked_by: frozenset[int] = frozenset()
    """Processes whose waits these threads end, if they are of none that was asked itself."""
    nobody: str = ""
    """Evidence that no traced thread of the process can end these waits, as in `who_can_end`; "" if one may."""

    @functools.cached_property
    def pids(self) -> frozenset[int]:
        return frozenset(pid for pid, _ in self.threads)


def by_time(finding: Finding) -> tuple[int, tuple[Thread, ...]]:
    """Key for sorting: longest first."""
    return -finding.time, finding.threads


def findings(facts: Facts, kinds: Sequence[str], groups: Mapping[Key, Members]) -> list[Finding]:
    """One for each of ``groups``, whose keys begin with their kind; in the order of ``kinds``."""
    in_order = sorted(groups.items(), key=lambda group: kinds.index(str(group[0][0])))
    return [made for key, members in in_order if (made := waiting(facts, str(key[0]), members))]


def waiting(facts: Facts, kind: str, members: Members, least: float = thresholds.SIGNIFICANT) -> Finding | None:
    """The waits of those of ``members`` that lose at least this share of their time there; None if there are none."""
    if len(members) == 1 and len(places := next(iter(members.values()))) == 1:
        return _single(facts, kind, next(iter(members)), places[0], least)
    sums, threads = facts.sums, facts.threads
    times = {thread: sum(sums[thread][place].time for place in places) for thread, places in members.items()}
    told = [thread for thread in times if times[thread] >= least * threads[thread].wall]
    if not told:
        return None
    together: dict[Place, int] = defaultdict(int)
    total = Sum()
    for thread in told:
        for place in members[thread]:
            together[place] += sums[thread][place].time
            total.add(sums[thread][place])
    telling = [place for place in together if together[place] >= thresholds.TELLING * total.time]
    of_all = telling or list(together)
    of_all.sort(key=lambda place: (-together[place], place))
    in_order = tuple(sorted(told, key=lambda thread: (-times[thread], thread)))
    made = Finding(kind, in_order, total.time, facts.wall_of(in_order), tuple(of_all), total.count, total.max)
    on = facts.on(total, kind, {pid for pid, _ in told})
    return replace(made, samples=total.samples, on=on, most=times[in_order[0]] if len(in_order) > 1 else 0)


def _single(facts: Facts, kind: str, thread: Thread, place: Place, least: float) -> Finding | None:
    total, wall = facts.sums[thread][place], facts.threads[thread].wall
    if total.time < least * wall:
        return None
    on = facts.on(total, kind, (thread[0],))
    made = Finding(kind, (thread,), total.time, wall, (place,), total.count, total.max, samples=total.samples, on=on)
    return replace(made, nobody=nobody(facts, thread, place)) if kind == THREAD else made


def running(facts: Facts, members: Iterable[Thread]) -> Finding:
    """Threads that run, or wait for a core."""
    times = {thread: facts.threads[thread] for thread in members}
    of = {thread: each.on_cpu + each.runnable for thread, each in times.items()}
    threads = tuple(sorted(of, key=lambda thread: (-of[thread], thread)))
    runnable = sum(each.runnable for each in times.values())
    made = Finding(CPU, threads, sum(of.values()), facts.wall_of(threads), runnable=runnable)
    return replace(made, runs_in=_runs_in(facts, threads))


def _runs_in(facts: Facts, threads: Iterable[Thread]) -> tuple[str, ...]:
    """The place with most of the samples, or of the preemptions, of these threads, if it has a good part of them."""
    seen: Counter[tuple[str, ...]] = Counter()
    inner: dict[tuple[str, ...], Counter[Names]] = defaultdict(Counter)
    for thread in threads:
        if facts.runs:
            for run, total in facts.runs.get(thread, {}).items():
                frames = tuple(map(without_line, run.site.frames))
                seen[frames] += total.samples
                inner[frames].update(total.inner)
        else:
            for place, of in facts.waits_of(thread).items():
                if place.state == PREEMPTED and not place.wait.nowhere:
                    seen[tuple(map(without_line, place.site.frames))] += of.count
    frames, most = max(seen.items(), key=lambda entry: (entry[1], entry[0]), default=((), 0))
    enough = seen.total() >= thresholds.POLLS_SEEN and most >= thresholds.RUNS_IN * seen.total()
    return with_inner(frames, inner[frames], most) if enough else ()


def sleeps_again(finding: Finding) -> bool:
    """Whether these threads sleep for a short time again and again: they ask whether something has happened."""
    if finding.kind != SLEEP or finding.count < thresholds.SLEEPS_AGAIN * len(finding.threads):
        return False
    return finding.time <= thresholds.SHORT_SLEEP * finding.count
