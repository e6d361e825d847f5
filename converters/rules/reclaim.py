"""Threads run to get memory: they swap in, or free some first, at the limit of a control group or of the host.

That takes cores, not only waiting: compressed memory as swap is not waited for at all.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import NamedTuple

from ..facts import thresholds
from ..facts.facts import Facts
from ..facts.runs import AT_LIMIT
from ..facts.wait_sums import Thread
from ..model.group_limits import GroupLimit
from .finding import Key, by_time, running
from .verdict import MEMORY, Verdict

RULE = "reclaim"


class Reclaim(NamedTuple):
    """The detail of such a verdict. Numbers of samples."""

    memory: tuple[tuple[str, int], ...]
    """Work for memory (`runs.AT_LIMIT` and others) with its number of samples, most first."""
    samples: int
    """All of these threads."""
    frames: tuple[str, ...]
    """Place where most of it is done."""
    limit: GroupLimit | None = None
    """The limit of a control group that was reached; None if that is not known."""

    @property
    def share(self) -> float:
        """The part of their time on cores."""
        return sum(number for _, number in self.memory) / self.samples


def find(facts: Facts) -> list[Verdict]:
    """One for threads of one name, longest first."""
    groups: dict[Key, list[Thread]] = defaultdict(list)
    for thread in facts.own:
        if facts.runs.get(thread):
            groups[facts.process_of(thread), facts.name_of(thread)].append(thread)
    found = [verdict for members in groups.values() if (verdict := _verdict(facts, members))]
    return sorted(found, key=lambda verdict: by_time(verdict.finding) if verdict.finding else (0, ()))


def _verdict(facts: Facts, members: list[Thread]) -> Verdict | None:
    kinds: Counter[str] = Counter()
    places: Counter[tuple[str, ...]] = Counter()
    samples = 0
    for thread in members:
        for run, total in facts.runs[thread].items():
            samples += total.samples
            if run.memory:
                kinds[run.memory] += total.samples
                places[run.site.frames] += total.samples
    if samples < thresholds.POLLS_SEEN or kinds.total() < thresholds.RECLAIMS * samples:
        return None
    finding = running(facts, members)
    most = max(places, key=lambda frames: (places[frames], frames))
    limit = facts.memory_limit(finding.pids) if AT_LIMIT in kinds else None
    detail = Reclaim(tuple(kinds.most_common()), samples, most, limit)
    time = round((finding.time - finding.runnable) * detail.share)
    if time < thresholds.SIGNIFICANT * facts.active_wall:
        return None
    return Verdict(RULE, MEMORY, time, 1, finding.pids, finding, detail=detail)
