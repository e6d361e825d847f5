"""Findings of rules on threads and cores in profiles made by hand, by the quantity that a threshold is compared
with."""

from __future__ import annotations

from pool_profiles import add_pool, no_pools
from processes import pools
from processes import process as add_process
from processes import profile as no_waits
from processes import threads as add_threads
from stallscope.converters.facts.pools import pools_of
from stallscope.converters.facts.teams import teams_of
from stallscope.converters.model.neighbours import Neighbour
from stallscope.converters.model.processes import CpuLimit
from stallscope.converters.model.wait_objects import LABEL, TCP, ObjectEnd, WaitObject
from stallscope.converters.phrases.sentences import Sentences
from stallscope.converters.rules import crowd as crowds
from stallscope.converters.rules import pool_anew, quota
from stallscope.converters.rules.ranking import judge
from summary_profiles import READ, SECOND, facts_of, waiting
from team_profiles import with_teams
from verdict_profiles import with_quota

TEN = 10 * SECOND


def found_crowd(
    threads: int, *, cores: float, waits: float, cpus: str = "0-3", processes: int = 1, others: float = 0
) -> crowds.Crowd | None:
    """Processes that use so many cores, and wait for so many, over all; cores below 1 are a quota. ``others``: cores
    that a process used that was not traced; 0: it is not known."""
    made = no_waits()
    made.neighbours += [Neighbour("gzip", 99, round(others * TEN), cpus)] if others else []
    limits = (CpuLimit("/small", 10_000, 100_000),) if cores + waits < 1 else ()
    for pid in range(1000, 1000 + 100 * processes, 100):
        add_process(made, pid, "train", cpus=cpus, limits=limits)
        number = threads * processes
        add_threads(
            made, pid, "train", "w", threads, on_cpu=round(cores * TEN / number), runnable=round(waits * TEN / number)
        )
    found = crowds.find(facts_of(made))
    if not found:
        return None
    detail = found[0].detail
    assert isinstance(detail, crowds.Crowd)
    return detail


def is_crowd(threads: int, *, cores: float, waits: float) -> bool:
    return found_crowd(threads, cores=cores, waits=waits) is not None


def members(x: float) -> tuple[str, ...]:
    made = no_waits()
    for pid, name, share in ((10, "a", 1), (20, "b", 1), (30, "little", 2 * x / (1 - x))):
        add_process(made, pid, name, cpus="0")
        add_threads(made, pid, name, name, on_cpu=round(share * TEN / 2), runnable=round(share * TEN / 2))
    (found,) = crowds.find(facts_of(made))
    assert isinstance(found.detail, crowds.Crowd)
    return found.detail.names


def matters_for_host(x: float) -> bool:
    profile = with_quota(no_waits(), round(x * TEN))
    add_process(profile, 7, "other")
    add_threads(profile, 7, "other", "other", on_cpu=TEN)
    return bool(quota.find(facts_of(profile)))


def is_hint(x: float) -> bool:
    """Whether the variables are one for eight processes of which each wants so many cores."""
    found = found_crowd(2, cores=4, waits=8 * x - 4, processes=8)
    return found is not None and found.has_variables


def others_have_cores(x: float) -> bool:
    found = found_crowd(8, cores=4 * x, waits=4)
    return found is not None and found.others_have_cores


def others_used(x: float) -> bool:
    """Whether others have the cores of a program that gets two of four, if they used such a share of the other two."""
    found = found_crowd(8, cores=2, waits=4, others=2 * x)
    return found is not None and found.others_have_cores


def throttled(periods: int, ns: float) -> bool:
    return quota.throttles(CpuLimit("/x", 50_000, 100_000, 1_000, periods, round(ns)), TEN)


def made_anew(**given: int) -> bool:
    return bool(pool_anew.find(facts_of(pools(**given))))


def few_anew(x: float) -> bool:
    """Whether pools are found in a trace that is short enough for these threads to be many a second."""
    made = pools(1, round(x))
    made.duration_ns, made.threads[0].on_cpu = SECOND // 5, 0
    return bool(pool_anew.find(facts_of(made)))


def takers(x: float) -> int:
    """Number of takers where others have four cores, and one that was not traced uses so many for each."""
    made = no_waits()
    add_process(made, 7, "train")
    add_threads(made, 7, "train", "w", 6, on_cpu=SECOND, runnable=8 * SECOND)
    made.neighbours += [Neighbour("gzip", 9, round(x * 4 * TEN)), Neighbour("tar", 8, 3 * TEN)]
    (found,) = crowds.find(facts_of(made))
    assert isinstance(found.detail, crowds.Crowd)
    return len(found.detail.takers)


def peer_that_uses(cores: float) -> str:
    """Sentence on waits for a process that was not traced, and uses so many cores."""
    profile = waiting(READ)
    profile.objects = [WaitObject(1, TCP, remote="10.0.0.1:5432", ends=[ObjectEnd("postgres", 99)])]
    profile.samples = [
        each._replace(labels=tuple(sorted({**dict(each.labels), LABEL: 1}.items()))) for each in profile.samples
    ]
    profile.neighbours = [Neighbour("postgres", 99, round(cores * TEN))]
    facts = facts_of(profile)
    first = judge(facts).first
    assert first
    return Sentences(facts).of(first)


def is_team(x: float) -> bool:
    """Whether so many threads that run one function for a library are a team."""
    return bool(teams_of(facts_of(with_teams({"f._omp_fn.0": round(x)}))))


def fed_apart(x: float) -> bool:
    """Whether two pools from before the trace are told apart, of whose waits for work one place ends this share."""
    made = no_pools()
    for most, less in (("read", "write"), ("write", "read")):
        add_pool(made, 2, creator=0, fed={most: x, less: 1 - x})
    return len(pools_of(facts_of(made))) == 2


def is_fed(x: float) -> bool:
    """Whether it is told who feeds a pool, of whose waits for work he has ended so many of each thread."""
    made = no_pools()
    add_pool(made, 2, made_in=("main",), fed={"feed": 1}, waits=round(x))
    (pool,) = pools_of(facts_of(made))
    return bool(pool.fed_in)


def is_pool_member(x: float) -> bool:
    """Whether a pool is named that has this share of a crowd's time."""
    made = no_pools()
    wants = (8, 8, 16 * x / (1 - x))
    for number, each in enumerate(wants):
        add_pool(made, 2, name=f"p{number}x-{{}}", wants=each / 1.1)
    (found,) = crowds.find(facts_of(made))
    assert isinstance(found.detail, crowds.Crowd)
    return len(found.detail.pools) == 3


def made_in(x: float) -> tuple[str, ...]:
    """The place where threads that are made anew are created, if this share of them is created in one."""
    made = pools(number=1000)
    for i, times in enumerate(made.threads[1:]):
        times.made_in = ("main", "call") if i < 1000 * x else ("main", "other")
    (found,) = pool_anew.find(facts_of(made))
    assert isinstance(found.detail, pool_anew.Pool)
    return found.detail.made_in
