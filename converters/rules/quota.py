"""The CPU quota of a control group stops threads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..facts import thresholds
from ..facts.contention import Contention
from ..facts.facts import Facts
from ..facts.groups import by_name
from ..facts.ranks import numbers
from ..model.processes import CpuLimit
from .verdict import QUOTA, Verdict

RULE = "quota"


class Throttled(NamedTuple):
    """The detail of such a verdict. Names are unescaped (hostile)."""

    limit: CpuLimit
    groups: tuple[Contention, ...]
    """The processes that it stops, by name."""
    ranks: tuple[int, ...] = ()
    """Numbers of these processes in their job, if they are ranks of one, all of them."""


def find(facts: Facts) -> list[Verdict]:
    """One for each quota, those that stopped threads for longest first."""
    found: dict[str, CpuLimit] = {}
    whom: dict[str, list[Contention]] = defaultdict(list)
    for process in facts.contention:
        for limit in process.limits:
            if throttles(limit, process.duration):
                found[limit.cgroup] = limit
                whom[limit.cgroup].append(process)
    worst = sorted(found.values(), key=lambda limit: (-limit.throttled_ns, limit.cgroup))
    # Others of the same name may be in another group.
    ranks = numbers(facts.ranks, facts.collectives)
    made = [_verdict(facts, limit, by_name(whom[limit.cgroup]), ranks) for limit in worst]
    return [verdict for verdict in made if verdict.time >= facts.least_for_cores]


def _verdict(facts: Facts, limit: CpuLimit, groups: Sequence[Contention], ranks: Mapping[int, int]) -> Verdict:
    time = max(limit.throttled_ns, sum(group.runnable for group in groups))
    pids = frozenset(pid for group in groups for pid in group.pids)
    stopped = tuple(sorted({ranks[pid] for pid in pids})) if pids <= ranks.keys() else ()
    time *= _waiting_for(facts, pids)
    return Verdict(RULE, QUOTA, time, 1, pids, detail=Throttled(limit, tuple(groups), stopped))


def _waiting_for(facts: Facts, pids: frozenset[int]) -> int:
    """Number of ranks that stand still when one of these processes does: all of a communicator of which these are a
    part; 1 if they are of none."""
    members = ({each.pid for each in of.ranks} for of in facts.collectives if of.meetings)
    return max((len(each) // len(pids) for each in members if pids <= each), default=1)


def throttles(limit: CpuLimit, trace: int) -> bool:
    """Whether a quota matters in a trace of so many ns."""
    least = thresholds.THROTTLED
    periods = limit.throttled_periods > 0 and limit.throttled_periods >= least * limit.periods
    return periods or limit.throttled_ns > least * trace > 0
