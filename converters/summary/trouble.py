"""Sentences about problems with threads and cores: too many threads, small quotas, recreated pools."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ..base.units import duration, share
from ..facts.contention import SECOND, Contention, together
from ..facts.thread_names import thread_pattern
from ..model import Profile, ThreadTimes
from ..model.processes import OTHER_NAMES, THREAD_VARIABLES, CpuLimit
from .people import by_name

_MOST = 2
"""Maximum of sentences per kind."""
_CROWDED, _WAITING, _CORE = 1.2, 0.2, 0.05
"""Threads outnumber cores from these values on: threads that want a core, per core; their waits for one as a share of
the time in which they could run, and of one core's time."""
_MATTERS = 0.02
"""A problem is told from this share of the time on that all traced threads ran or waited for a core."""
_POOL = 1.5
"""Variables that set the number of threads are a hint if a process wants more cores than this on average."""
_WITH_POOLS = re.compile(r"lib(gomp|iomp|omp|mkl|openblas|cblas|blas|blis|numexpr|torch|tbb)|.*(numexpr|rayon)")
"""Names of files that read these variables."""
_HAVE = 0.6
"""Threads that get less than this share of their cores are crowded out by others."""
_THROTTLED = 0.02
"""A quota matters from this share of its periods used up, or this share of the trace spent throttled."""
_ANEW, _AT_LEAST, _GENERATIONS = 50, 20, 5
"""A pool is recreated from this many threads created and ended a second, and this many in all, if one lives for at most
1/this of the trace."""
_ALWAYS_NAMED = 4
"""This many of the first `THREAD_VARIABLES` are named even if unset."""


_Pids = Callable[[], Collection[int]]


class Trouble(NamedTuple):
    """Names in it are unescaped (hostile)."""

    sentence: str
    time: int
    """ns lost or spent because of it: the larger, the more important."""
    pids: frozenset[int]
    cost: int
    """The part of ``time`` in which threads ran, waited for a core, or were stopped."""


def trouble(
    processes: Sequence[Contention], threads: Sequence[ThreadTimes], pools: _Pids | None = None
) -> tuple[Trouble, ...]:
    """The problems found, possibly none. ``pools``: finds the processes in which `pools_of_libraries` are, which takes
    long; None: not known."""
    groups = by_name(processes)
    quotas = _quotas(groups)
    throttled = {pid for quota in quotas for pid in quota.pids}
    # Throttled threads wait for cores anyway: that they outnumber the cores adds nothing.
    crowds = [crowd for crowd in _crowds(groups, pools) if not crowd.pids <= throttled]
    # Of a whole host, a small process with a problem is none of the host's.
    enough = _MATTERS * sum(process.on_cpu + process.runnable for process in processes)
    return tuple(each for each in (*quotas, *crowds, *_pools(processes, threads)) if each.cost >= enough)


def _quotas(groups: Sequence[Contention]) -> list[Trouble]:
    found: dict[str, CpuLimit] = {}
    whom: dict[str, list[Contention]] = defaultdict(list)
    for group in groups:
        for limit in group.limits:
            if throttles(limit, group.duration):
                found[limit.cgroup] = limit
                whom[limit.cgroup].append(group)
    worst = sorted(found.values(), key=lambda limit: (-limit.throttled_ns, limit.cgroup))[:_MOST]
    return [_throttled(limit, whom[limit.cgroup]) for limit in worst]


def _throttled(limit: CpuLimit, groups: Sequence[Contention]) -> Trouble:
    time = max(limit.throttled_ns, sum(group.runnable for group in groups))
    return Trouble(_quota_sentence(limit, groups), time, frozenset(pid for group in groups for pid in group.pids), time)


def throttles(limit: CpuLimit, trace: int) -> bool:
    """Whether a quota matters in a trace of so many ns."""
    periods = limit.throttled_periods > 0 and limit.throttled_periods >= _THROTTLED * limit.periods
    return periods or limit.throttled_ns > _THROTTLED * trace > 0


def _quota_sentence(limit: CpuLimit, groups: Sequence[Contention]) -> str:
    names = ", ".join(_name(group) for group in groups[:3]) + (" and others" if len(groups) > 3 else "")
    trace = groups[0].duration
    used_up = share(limit.throttled_periods, limit.periods)
    text = f"A quota throttles {names}: control group {limit.cgroup} may use {_cores(limit.cores)}"
    text += f", and used that up in {used_up} of its periods of {duration(limit.period_us * 1000)}"
    text += f"; it was stopped for {duration(limit.throttled_ns)}"
    return f"{text} of the {duration(trace)} traced (all cores added up)." if trace else f"{text}."


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
                path = frame.module.path if frame.module else ""
                made = known[id(frame)] = bool(_WITH_POOLS.match(path.rpartition("/")[2]))
            if made:
                found.add(pid)
                break
    return frozenset(found)


def _crowds(groups: Sequence[Contention], pools: _Pids | None) -> list[Trouble]:
    crowds = [(group, _name(group)) for group in groups if _is_crowd(group)]
    # Different programs may share the same cores.
    clusters: dict[frozenset[int], list[Contention]] = defaultdict(list)
    for group in groups:
        if not _is_crowd(group):
            clusters[group.cpus].append(group)
    crowds += [crowd for cluster in clusters.values() if (crowd := _crowd_of(cluster))]
    crowds.sort(key=lambda crowd: -crowd[0].runnable)
    return [
        Trouble(_crowd_sentence(group, whom, pools), group.runnable, frozenset(group.pids), group.runnable)
        for group, whom in crowds[:_MOST]
    ]


def _crowd_of(cluster: Sequence[Contention]) -> tuple[Contention, str] | None:
    """The members that want much of the shared cores, and their names; None if they are no crowd."""
    total = sum(group.on_cpu + group.runnable for group in cluster)
    members = sorted(
        (group for group in cluster if group.on_cpu + group.runnable >= _CORE * total),
        key=lambda group: -group.on_cpu - group.runnable,
    )
    if len(members) < 2:
        return None
    names = [_name(group) for group in members[:3]] + (["others"] if len(members) > 3 else [])
    crowd = together(members, "")
    return (crowd, f"{', '.join(names[:-1])} and {names[-1]}") if _is_crowd(crowd) else None


def _is_crowd(group: Contention) -> bool:
    wanted = group.wanted
    if wanted is None or group.allowed is None or group.threads <= group.allowed or group.threads < 2:
        return False
    busy = group.on_cpu + group.runnable
    return (
        wanted >= _CROWDED * group.allowed
        and group.runnable >= _WAITING * busy
        and group.runnable >= _CORE * group.span
    )


def _crowd_sentence(group: Contention, whom: str, pools: _Pids | None) -> str:
    assert group.wanted is not None and group.allowed is not None
    quota = "" if group.allowed >= len(group.cpus) else " by quota"
    used = group.on_cpu / group.span
    if not quota and used < _HAVE * group.allowed:
        return (
            f"Others have most of the cores: the threads of {whom} want {group.wanted:.1f} on average, and get "
            f"{used:.1f} of the {_cores(group.allowed)} that they may use; "
            f"{share(group.runnable, group.wall)} of their time they wait for one."
        )
    return (
        f"The threads of {whom} outnumber the cores: {group.wanted:.1f} want one on average, "
        f"{_cores(group.allowed)} may be used{quota}; {share(group.runnable, group.wall)} of their time they wait for "
        f"one.{_hint(group, pools)}"
    )


def _hint(group: Contention, pools: _Pids | None) -> str:
    """On variables that set numbers of threads: on those that are not set, only where a library would read them."""
    if group.wanted is None or group.wanted < _POOL * group.processes:
        return ""
    if not any(group.environments) and pools is not None and not set(group.pids) & set(pools()):
        return ""
    return f" {_environment(group)}"


def _environment(group: Contention) -> str:
    """The processes' variables for numbers of threads."""
    known = [each for each in group.environments if each is not None]
    if not known:
        return f"Environment: {THREAD_VARIABLES[0]} and its like could not be read."
    if not any(known):
        return f"Environment: {THREAD_VARIABLES[0]} and its like are not set."
    told, missing = [], []
    for i, name in enumerate(THREAD_VARIABLES):
        values = sorted({each[name] for each in known if name in each})
        if values:
            some = [f"{name}={value}" for value in values[:3]] + (["others"] if len(values) > 3 else [])
            everywhere = all(name in each for each in known)
            told.append(" or ".join(some if everywhere else [*some, "not set"]))
        elif i < _ALWAYS_NAMED:
            missing.append(name)
    unset = [f"{', '.join(missing)} not set"] if missing else []
    return f"Environment: {'; '.join([*told, *unset])}."


@dataclass(slots=True)
class _Pool:
    """Threads of one name, in processes of one name, that were created and have ended during the trace."""

    threads: int = 0
    wall: int = 0
    busy: int = 0
    creators: set[str] = field(default_factory=set)
    pids: set[int] = field(default_factory=set)


def _pools(processes: Sequence[Contention], threads: Sequence[ThreadTimes]) -> list[Trouble]:
    trace = next((process.duration for process in processes), 0)
    names = {(times.pid, times.tid): thread_pattern(times.thread, times.pid == times.tid) for times in threads}
    pools: dict[tuple[str, str], _Pool] = defaultdict(_Pool)
    for times in threads:
        if times.creator and times.exited and times.tid != times.pid and times.thread != OTHER_NAMES:
            key = thread_pattern(times.process, main=False), thread_pattern(times.thread, main=False)
            pool = pools[key]
            pool.threads += times.count
            pool.wall += times.wall
            pool.busy += times.on_cpu + times.runnable
            pool.pids.add(times.pid)
            pool.creators.add(names.get((times.pid, times.creator), ""))
    most = sorted(pools.items(), key=lambda entry: (-entry[1].threads, entry[0]))
    anew = [(name, pool) for name, pool in most if _is_made_anew(pool, trace)][:_MOST]
    return [
        Trouble(_pool_sentence(*name, pool, trace), pool.wall, frozenset(pool.pids), pool.busy) for name, pool in anew
    ]


def _is_made_anew(pool: _Pool, trace: int) -> bool:
    often = pool.threads * SECOND >= _ANEW * trace > 0
    return often and pool.threads >= _AT_LEAST and pool.wall * _GENERATIONS <= trace * pool.threads


def _pool_sentence(process: str, thread: str, pool: _Pool, trace: int) -> str:
    by = f" by {_creator(next(iter(pool.creators)))}" if len(pool.creators) == 1 and "" not in pool.creators else ""
    return (
        f"{process} makes its threads anew all the time: {pool.threads * SECOND / trace:,.0f} threads named {thread} "
        f"a second are created{by} and end after {duration(pool.wall // pool.threads)} on average. "
        "A pool that is made once and kept saves that."
    )


def _creator(pattern: str) -> str:
    return "the main thread" if pattern == "main" else pattern


def _name(group: Contention) -> str:
    """``8 × demo``."""
    return f"{group.processes:,} × {group.process}" if group.processes > 1 else group.process


def _cores(number: float) -> str:
    text = f"{number:.2f}".rstrip("0").rstrip(".")
    return "1 core" if text == "1" else f"{text} cores"
