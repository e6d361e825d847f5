"""Threads run, or wait for a core, for much of the time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from ..facts import thresholds
from ..facts.facts import Facts
from ..facts.identity import number_of
from ..facts.wait_sums import LOST, Thread
from .finding import CPU, Finding, Key, by_time, running
from .verdict import Verdict

RULE = "busy"


class Busy(NamedTuple):
    """The detail of such a verdict. Times in ns."""

    groups: tuple[Finding, ...]
    """One for each name of threads, longest first."""
    threads: int
    """Those that do not only wait."""
    everyone: int
    """All that were traced."""
    on_cpu: int
    """Of ``threads``, as the following."""
    runnable: int
    wall: int


def find(facts: Facts) -> list[Verdict]:
    """One for all threads that run."""
    groups = busy(facts)
    together = sum(each.time for each in groups)
    if not groups or together < thresholds.SIGNIFICANT * facts.active_wall:
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
    )
    return [Verdict(RULE, CPU, together, confidence(facts, groups), frozenset(), finding, detail=detail)]


def busy(facts: Facts) -> list[Finding]:
    """Running or runnable threads by name, longest first, without kernel threads and threads that only wait."""
    groups: dict[Key, list[Thread]] = defaultdict(list)
    for thread in facts.own:
        times = facts.threads[thread]
        if not facts.is_quiet(thread) and times.on_cpu + times.runnable:
            groups[facts.process_of(thread), facts.name_of(thread)].append(thread)
    return sorted((running(facts, members) for members in groups.values()), key=by_time)


def confidence(facts: Facts, groups: Sequence[Finding], explained: frozenset[int] = frozenset()) -> float:
    """Of their time, without processes that are explained already."""
    on_core = thresholds.SAMPLED_SAVES if facts.has_samples else thresholds.RUNNING_SAVES
    left = [each for each in groups if not each.pids <= explained]
    saved = sum(on_core * (each.time - each.runnable) + thresholds.QUEUED_SAVES * each.runnable for each in left)
    whole = sum(each.time for each in groups)
    return saved / whole if whole else 0.0
