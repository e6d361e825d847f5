"""Threads run, or wait for a core, for much of the time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from typing import NamedTuple

from ..facts import thresholds
from ..facts.facts import Facts
from ..facts.groups import users_of_cores
from ..facts.identity import number_of
from ..facts.pools import Pool, pools_among
from ..facts.wait_sums import LOST, Thread
from ..model.states import PREEMPTED
from .finding import CPU, Finding, Key, by_time, running
from .verdict import CORES, Verdict

RULE = "busy"


class Busy(NamedTuple):
    """The detail of such a verdict. Times in ns."""

    groups: tuple[Finding, ...]
    """One for each name of threads, longest first."""
    threads: int
    """Number of threads that do not only wait."""
    everyone: int
    """All that were traced."""
    on_cpu: int
    """ns that ``threads`` were on cores; ``runnable`` and ``wall`` are theirs, too."""
    runnable: int
    wall: int
    lost_in: LostIn | None = None
    """Place where the first group runs, by lost cores, if no samples tell; None if that is not known."""
    runs_in: tuple[str, ...] = ()
    """Place where all of them run most often, by samples; () if it is not known."""
    takers: tuple[tuple[str, float], ...] = ()
    """Names of processes that were not traced, and how many cores these used, if the threads wait much for cores."""
    pools: tuple[Pool, ...] = ()
    """Pools that the threads of the first group are in, if they are several."""


class LostIn(NamedTuple):
    """Place where threads mostly were as they lost their cores to others: that comes with the clock, as samples do."""

    frames: tuple[str, ...]
    times: int
    all_times: int


def find(facts: Facts) -> list[Verdict]:
    """One for all threads that run."""
    groups = busy(facts)
    together = sum(each.time for each in groups)
    if (
        not groups
        or together < thresholds.SIGNIFICANT * facts.active_wall
        or _only_wake_up_late(facts, groups, together)
    ):
        return []
    finding = Finding(CPU, groups[0].threads, together, groups[0].wall)
    active = [times for thread, times in facts.threads.items() if not facts.is_quiet(thread)]
    detail = Busy(
        tuple(groups),
        number_of(active),
        number_of(times for thread, times in facts.threads.items() if thread != LOST),
        sum(times.on_cpu for times in active),
        sum(times.runnable for times in active),
        sum(times.wall for times in active),
        lost_in(facts, groups[0]),
        running(facts, [thread for group in groups for thread in group.threads]).runs_in if facts.runs else (),
        _takers(facts, groups),
        pools_among(facts, groups[0].threads),
    )
    kind = CORES if sum(each.runnable for each in groups) > thresholds.MOSTLY * together else CPU
    return [Verdict(RULE, kind, together, confidence(facts, groups), frozenset(), finding, detail=detail)]


def _only_wake_up_late(facts: Facts, groups: Sequence[Finding], together: int) -> bool:
    """Whether these threads only wait for work, and for a core after each such wait, but not for much of their time."""
    threads = [thread for group in groups for thread in group.threads]
    mostly = thresholds.MOSTLY * sum(facts.threads[thread].wall for thread in threads)
    return together < mostly and all(map(facts.is_idle, threads))


def busy(facts: Facts) -> list[Finding]:
    """Running or runnable threads by name, longest first, without kernel threads and threads that only wait."""
    groups: dict[Key, list[Thread]] = defaultdict(list)
    for thread in facts.own:
        times = facts.threads[thread]
        if not facts.is_quiet(thread) and times.on_cpu + times.runnable:
            groups[facts.process_of(thread), facts.name_of(thread)].append(thread)
    return sorted((running(facts, members) for members in groups.values()), key=by_time)


def without(facts: Facts, groups: Sequence[Finding], told: Collection[Thread]) -> tuple[Finding, ...]:
    """Groups without threads of which others tell."""
    left = [(group, [thread for thread in group.threads if thread not in told]) for group in groups]
    parts = [group if len(rest) == len(group.threads) else running(facts, rest) for group, rest in left if rest]
    return tuple(sorted(parts, key=by_time))


def confidence(facts: Facts, groups: Sequence[Finding], explained: frozenset[int] = frozenset()) -> float:
    """Confidence in the running time of these groups, without processes that are explained already."""
    on_core = thresholds.SAMPLED_SAVES if facts.runs else thresholds.RUNNING_SAVES
    left = [each for each in groups if not each.pids <= explained]
    saved = sum(on_core * (each.time - each.runnable) + thresholds.QUEUED_SAVES * each.runnable for each in left)
    whole = sum(each.time for each in groups)
    return saved / whole if whole else 0.0


def lost_in(facts: Facts, finding: Finding) -> LostIn | None:
    """None if no place stands out, or samples tell where they run."""
    if facts.runs:
        return None
    times: Counter[tuple[str, ...]] = Counter()
    everywhere = 0
    for thread in finding.threads:
        for place, total in facts.waits_of(thread).items():
            if place.state == PREEMPTED:
                everywhere += total.count
                if not place.wait.nowhere:
                    times[place.site.frames] += total.count
    frames, most = max(times.items(), key=lambda entry: (entry[1], entry[0]), default=((), 0))
    if not frames or everywhere < thresholds.POLLS_SEEN or most < thresholds.PREEMPTED_IN * everywhere:
        return None
    return LostIn(frames, most, everywhere)


def _takers(facts: Facts, groups: Sequence[Finding]) -> tuple[tuple[str, float], ...]:
    runnable, whole = sum(each.runnable for each in groups), sum(each.time for each in groups)
    if runnable < thresholds.CROWD_WAITS * whole:
        return ()
    pids = {pid for each in groups for pid in each.pids}
    cores = frozenset().union(*(each.cpus for each in facts.contention if pids & set(each.pids)))
    users = users_of_cores(facts.neighbours, facts.duration, cores)
    return tuple(each for each in users[: thresholds.PROCESSES_NAMED] if each[1] >= thresholds.CROWD_WAITS)
