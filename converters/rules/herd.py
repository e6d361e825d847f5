"""Similar threads are often woken together, with almost nothing to do each time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ..facts import thresholds
from ..facts.facts import Facts
from ..facts.teams import teams_of
from ..facts.wait_kinds import THREAD
from ..facts.wait_sums import Place, Thread
from .finding import Finding, Key, by_time, findings
from .verdict import HERD, Verdict

RULE = "herd"


def find(facts: Facts) -> list[Verdict]:
    """The one with the longest waits."""
    herds = [finding for finding in _pools_awake(facts) if _is_herd(facts, finding)]
    herd = min(herds, key=by_time, default=None)
    return [Verdict(RULE, HERD, herd.time, 1, herd.pids, herd)] if herd else []


def _pools_awake(facts: Facts) -> list[Finding]:
    workers = [thread for thread in facts.own if thread[0] != thread[1]]
    sizes = Counter(
        key
        for thread in workers
        for key in dict.fromkeys(_pool_key(facts, thread, place) for place in _pauses(facts, thread))
    )
    groups: dict[Key, dict[Thread, list[Place]]] = {
        key: {} for key, size in sizes.items() if size >= thresholds.HERD_THREADS
    }
    for thread in workers:
        for place in _pauses(facts, thread):
            if (of := groups.get(_pool_key(facts, thread, place))) is not None:
                of.setdefault(thread, []).append(place)
    return findings(facts, (THREAD,), groups)


def _pauses(facts: Facts, thread: Thread) -> Iterable[Place]:
    return [place for place in facts.waits_of(thread) if place.kind == THREAD]


def _pool_key(facts: Facts, thread: Thread, place: Place) -> Key:
    return THREAD, facts.process_of(thread), facts.name_of(thread), place.site.frames


def _is_herd(facts: Facts, finding: Finding) -> bool:
    threads = len(finding.threads)
    often = thresholds.HERD_WAKEUPS * threads * facts.duration / 1e9
    if threads < thresholds.HERD_THREADS or finding.count < often:
        return False
    counts = [
        sum(facts.sums[thread][place].count for place in finding.places if place in facts.sums[thread])
        for thread in finding.threads
    ]
    on_cpu = sum(facts.threads[thread].on_cpu for thread in finding.threads)
    alike = min(counts) >= thresholds.HERD_ALIKE * max(counts)
    return alike and on_cpu < thresholds.HERD_RUNS * finding.count and not _is_team(facts, finding)


def _is_team(facts: Facts, finding: Finding) -> bool:
    """Whether most of the threads are in teams of a library for parallel work: each has a part of the work, for which
    all of them are woken."""
    members = {(team.pid, tid) for team in facts.once(teams_of) for tid in team.threads}
    return len(members.intersection(finding.threads)) >= thresholds.MOSTLY * len(finding.threads)
