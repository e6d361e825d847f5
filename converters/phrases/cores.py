"""Verdicts on cores in words: quotas, crowds, pools made anew. Names are unescaped (hostile)."""

from __future__ import annotations

from ..base.units import count, duration, share
from ..facts import thresholds
from ..facts.contention import SECOND, Contention
from ..facts.ranks import in_words
from ..model.processes import THREAD_VARIABLES
from ..rules.calm import Calm
from ..rules.crowd import Crowd, shown
from ..rules.pool_anew import Pool
from ..rules.processes_anew import Started
from ..rules.quota import Throttled
from .pools import made_in, pools
from .teams import teams
from .words import listed


def quota(throttled: Throttled) -> str:
    """``A quota throttles train: control group … may use 2 cores, and used that up in 40.0 % of its periods …``"""
    limit, groups, ranks = throttled
    most = thresholds.PROCESSES_NAMED
    names = ", ".join(map(shown, groups[:most])) + (" and others" if len(groups) > most else "")
    names = f"{in_words(ranks)} of {groups[0].process}" if ranks and len(groups) == 1 else names
    trace = groups[0].duration
    used_up = share(limit.throttled_periods, limit.periods)
    text = f"A quota throttles {names}: control group {limit.cgroup} may use {_cores(limit.cores)}"
    text += f", and used that up in {used_up} of its periods of {duration(limit.period_us * 1000)}"
    text += f"; it was stopped for {duration(limit.throttled_ns)}"
    return f"{text} of the {duration(trace)} traced (all cores added up)." if trace else f"{text}."


def crowd(found: Crowd) -> str:
    """``The threads of 2 × train outnumber the cores: …``"""
    group = found.group
    assert group.wanted is not None and group.allowed is not None
    names = [*found.names, *(["others"] if found.more else [])]
    whom = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
    told = "".join(f" {each}" for each in (teams(found.teams), pools(found.pools, bool(found.teams))) if each)
    if found.others_have_cores:
        takers = ", ".join(f"{name} {used:.1f}" for name, used in found.takers)
        others = f"Others have most of the cores{f' ({takers})' if takers else ''}"
        return (
            f"{others}: the threads of {whom} want {group.wanted:.1f} on average, and get "
            f"{group.on_cpu / group.span:.1f} of the {_cores(group.allowed)} that they may use; "
            f"{share(group.runnable, group.wall)} of their time they wait for one.{told}"
        )
    by_quota = "" if group.allowed >= len(group.cpus) else " by quota"
    hint = f" {_environment(group)}" if found.has_variables else ""
    return (
        f"The threads of {whom} outnumber the cores: {group.wanted:.1f} want one on average, "
        f"{_cores(group.allowed)} may be used{by_quota}; {share(group.runnable, group.wall)} of their time they wait "
        f"for one.{told}{hint}"
    )


def _environment(group: Contention) -> str:
    """The processes' variables for numbers of threads."""
    known = [each for each in group.environments if each is not None]
    if not known:
        return f"Environment: {THREAD_VARIABLES[0]} and its like could not be read."
    if not any(known):
        return f"Environment: {THREAD_VARIABLES[0]} and its like are not set."
    told, missing, most = [], [], thresholds.VALUES_NAMED
    for i, name in enumerate(THREAD_VARIABLES):
        values = sorted({each[name] for each in known if name in each})
        if values:
            some = [f"{name}={value}" for value in values[:most]] + (["others"] if len(values) > most else [])
            everywhere = all(name in each for each in known)
            told.append(" or ".join(some if everywhere else [*some, "not set"]))
        elif i < thresholds.VARIABLES_NAMED:
            missing.append(name)
    unset = [f"{', '.join(missing)} not set"] if missing else []
    return f"Environment: {'; '.join([*told, *unset])}."


def pool_anew(pool: Pool) -> str:
    """``train makes its threads anew all the time: …``"""
    creators = pool.creators
    by = f" by {_creator(next(iter(creators)))}" if len(creators) == 1 and "" not in creators else ""
    by += made_in(pool.made_in)
    others = f" and {count(pool.more_names)} other name{'s' if pool.more_names > 1 else ''}" if pool.more_names else ""
    return (
        f"{pool.process} makes its threads anew all the time: {pool.threads * SECOND / pool.trace:,.0f} threads named "
        f"{pool.thread}{others} a second are created{by} and end after {duration(pool.wall // pool.threads)} on "
        "average. A pool that is made once and kept saves that."
    )


def processes_anew(found: Started) -> str:
    """``bash import.sh starts 523 processes a second (cut, tr, sed), which end after 4.3 ms on average, …``"""
    starter = found.starter or "A process that was not traced"
    names = listed([name for name, _ in found.names.most_common()])
    return (
        f"{starter} starts {found.processes * SECOND / found.trace:,.0f} processes a second ({names}), which end after "
        f"{duration(found.wall // found.processes)} on average, and use or want {_cores(found.busy / found.trace)} "
        "together. To do the same in one process saves most of that."
    )


def calm(found: Calm, trace: int) -> str:
    """``Nothing is held up: the 45 processes use 0.02 cores together, and wait for work.``"""
    used = f"{found.used / trace:.2f} cores" if trace else "hardly a core"
    if found.processes == 1:
        return f"Nothing is held up: the process uses {used}, and waits for work."
    whom = f"the {found.processes:,} processes use {used} together, and wait"
    return f"Nothing is held up: {whom} for work."


def _creator(pattern: str) -> str:
    return "the main thread" if pattern == "main" else pattern


def _cores(number: float) -> str:
    text = f"{number:.2f}".rstrip("0").rstrip(".")
    return "1 core" if text == "1" else f"{text} cores"
