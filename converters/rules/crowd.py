"""More threads want to run than there are cores for them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from ..facts import thresholds
from ..facts.contention import Contention, together
from ..facts.facts import Facts
from ..facts.groups import by_name, others_may_have, users_of_cores
from ..facts.pools import Pool, alike_pools, pools_of
from ..facts.teams import Team, teams_of
from ..facts.wait_kinds import PEER, THREAD
from ..model import Profile
from ..model.states import WOKEN
from .verdict import CORES, Verdict

RULE = "crowd"
_LIBRARIES = ("gomp", "iomp", "omp", "mkl", "openblas", "cblas", "blas", "blis", "numexpr", "torch", "tbb")
_ANYWHERE = ("numexpr", "rayon")
"""Names of files that read `THREAD_VARIABLES`: after ``lib`` at their beginning; anywhere."""


_Found = tuple[Contention, tuple[str, ...], bool]
"""All of them together, their names, and whether there are more."""


class Crowd(NamedTuple):
    """The detail of such a verdict. Names are unescaped (hostile)."""

    group: Contention
    """All of them together."""
    names: tuple[str, ...]
    more: bool
    """Whether there are more names."""
    others_have_cores: bool
    """Whether the threads get much less than the cores that they may use."""
    has_variables: bool
    """The variables that set numbers of threads are a hint."""
    takers: tuple[tuple[str, float], ...] = ()
    """Names of other processes that have the cores, and the number of cores that they used."""
    teams: tuple[Team, ...] = ()
    """Teams of a library for parallel work that they are in, if these have more threads than there are cores."""
    pools: tuple[Pool, ...] = ()
    """Pools beside these teams that want much of the cores, of processes that have several pools or teams. Those of
    several processes that are alike are one."""
    hands_on: bool = False
    """Whether most of this waiting comes right after short waits for each other: there is one for each thing that they
    hand on."""


def find(facts: Facts) -> list[Verdict]:
    """One for each program, or for those that share cores; those that wait for longest first."""
    groups = by_name(facts.contention)
    crowds: list[_Found] = [(group, (shown(group),), False) for group in groups if _is_crowd(group)]
    # Different programs may share the same cores.
    clusters: dict[frozenset[int], list[Contention]] = defaultdict(list)
    for group in groups:
        if not _is_crowd(group):
            clusters[group.cpus].append(group)
    crowds += [crowd for cluster in clusters.values() if (crowd := _crowd_of(cluster))]
    crowds.sort(key=lambda crowd: -crowd[0].runnable)
    return [_verdict(facts, *crowd) for crowd in crowds if crowd[0].runnable >= facts.least_for_cores]


def _verdict(facts: Facts, group: Contention, names: tuple[str, ...], more: bool) -> Verdict:
    assert group.allowed is not None
    by_quota = group.allowed < len(group.cpus)
    taken = not by_quota and group.on_cpu < thresholds.CORES_TAKEN * group.allowed * group.span
    if taken:
        missing = group.allowed - group.on_cpu / group.span
        taken = others_may_have(facts.neighbours, facts.duration, group.cpus, missing)
    hint = not taken and _has_hint(facts, group)
    takers = _takers(facts, group) if taken else []
    much = thresholds.CROWD_CORE * group.allowed
    named = tuple(each for each in takers[: thresholds.PROCESSES_NAMED] if each[1] >= much)
    teams = _teams(facts, group)
    # The threads of a team are woken together, and each has its part of the work.
    pools = _pools(facts, group, teams)
    detail = Crowd(group, names, more, taken, hint, named, teams, pools, not teams and _hands_on(facts, group))
    return Verdict(RULE, CORES, group.runnable, 1, frozenset(group.pids), detail=detail)


def _takers(facts: Facts, group: Contention) -> list[tuple[str, float]]:
    """See `Crowd.takers`; other programs that were traced, too."""
    others = [each for each in by_name(facts.contention) if each.span and not set(each.pids) & set(group.pids)]
    traced = [(shown(each), each.on_cpu / each.span * _part_of(each, group)) for each in others if each.cpus]
    found = [*users_of_cores(facts.neighbours, facts.duration, group.cpus), *traced]
    return sorted((each for each in found if each[1]), key=lambda each: (-each[1], each[0]))


def _part_of(other: Contention, group: Contention) -> float:
    """Part of the cores of other processes that the group may use, too: they are taken for evenly used."""
    return len(other.cpus & group.cpus) / len(other.cpus)


def _teams(facts: Facts, group: Contention) -> tuple[Team, ...]:
    """See `Crowd.teams`."""
    pids = set(group.pids)
    found = tuple(team for team in facts.once(teams_of) if team.pid in pids)
    assert group.allowed is not None
    return found if sum(len(team.threads) for team in found) > group.allowed else ()


def _pools(facts: Facts, group: Contention, teams: Sequence[Team]) -> tuple[Pool, ...]:
    """See `Crowd.pools`."""
    in_teams = {(team.pid, tid) for team in teams for tid in team.threads}
    least = thresholds.CROWD_MEMBER * (group.on_cpu + group.runnable) / group.processes
    pids = set(group.pids)
    found = [
        pool
        for pool in facts.once(pools_of)
        if pool.pid in pids and pool.wanted >= least and in_teams.isdisjoint((pool.pid, tid) for tid in pool.tids)
    ]
    number = Counter([*(pool.pid for pool in found), *(team.pid for team in teams)])
    return alike_pools(pool for pool in found if number[pool.pid] > 1)


def _hands_on(facts: Facts, group: Contention) -> bool:
    """See `Crowd.hands_on`."""
    if group.wanted is None or not group.allowed or group.wanted >= thresholds.HANDS_ON_WANTED * group.allowed:
        return False
    pids = set(group.pids)
    waits, after_waits = 0, 0
    for thread in facts.own:
        if thread[0] not in pids:
            continue
        places = facts.waits_of(thread)
        for_others = {place.site.frames for place in places if place.kind in (PEER, THREAD)}
        for place, total in places.items():
            if place.state == WOKEN and place.site.frames in for_others:
                after_waits += total.time
                waits += total.count
    is_short = group.on_cpu <= thresholds.HANDS_ON * waits
    return is_short and after_waits >= thresholds.MOSTLY * group.runnable


def _crowd_of(cluster: Sequence[Contention]) -> _Found | None:
    """The members that want much of the shared cores, and their names; None if they are no crowd."""
    total = sum(group.on_cpu + group.runnable for group in cluster)
    members = sorted(
        (group for group in cluster if group.on_cpu + group.runnable >= thresholds.CROWD_MEMBER * total),
        key=lambda group: -group.on_cpu - group.runnable,
    )
    if len(members) < 2:
        return None
    crowd = together(members, "")
    most = thresholds.PROCESSES_NAMED
    return (crowd, tuple(map(shown, members[:most])), len(members) > most) if _is_crowd(crowd) else None


def _is_crowd(group: Contention) -> bool:
    wanted = group.wanted
    if wanted is None or group.allowed is None or group.threads <= group.allowed or group.threads < 2:
        return False
    busy = group.on_cpu + group.runnable
    return (
        wanted >= thresholds.CROWDED * group.allowed
        and group.runnable >= thresholds.CROWD_WAITS * busy
        and group.runnable >= thresholds.CROWD_CORE * group.span
    )


def _has_hint(facts: Facts, group: Contention) -> bool:
    """Whether variables that set numbers of threads may help: those that are not set, only where a library would read
    them."""
    if group.wanted is None or group.wanted < thresholds.POOLS_WANT * group.processes:
        return False
    return any(group.environments) or facts.pools is None or bool(set(group.pids) & set(facts.pools()))


def pools_of_libraries(profile: Profile) -> frozenset[int]:
    """Processes with code of a library whose number of threads `THREAD_VARIABLES` set."""
    known: dict[int, bool] = {}
    found = set()
    for sample in profile.samples:
        pid = sample.label("pid")
        if not isinstance(pid, int) or pid in found:
            continue
        for frame in sample.stack:
            if (made := known.get(id(frame))) is None:
                made = known[id(frame)] = _reads_variables(frame.module.path if frame.module else "")
            if made:
                found.add(pid)
                break
    return frozenset(found)


def _reads_variables(path: str) -> bool:
    name = path.rpartition("/")[2]
    return name.startswith(tuple(f"lib{each}" for each in _LIBRARIES)) or any(each in name for each in _ANYWHERE)


def shown(group: Contention) -> str:
    """``8 × demo``."""
    return f"{group.processes:,} × {group.process}" if group.processes > 1 else group.process
