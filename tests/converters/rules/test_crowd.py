from __future__ import annotations

from dataclasses import replace

import pytest
from pool_profiles import PID, READERS, WRITERS, add_pool, no_pools, two_pools
from processes import crowd, process, profile, threads
from stallscope.converters.facts.contention import contention_of
from stallscope.converters.model import Frame, Module, Profile, Sample, ValueType
from stallscope.converters.model.processes import CpuLimit
from stallscope.converters.phrases.sentences import Sentences
from stallscope.converters.rules.crowd import Crowd, find, pools_of_libraries, shown
from summary_profiles import MS, SECOND, empty, facts_of
from team_profiles import with_teams


def details(made: Profile) -> list[Crowd]:
    return [each.detail for each in find(facts_of(made)) if isinstance(each.detail, Crowd)]


def sharing(*names: str) -> Profile:
    """Programs of one thread each that share a core, and one that hardly uses it."""
    made = profile()
    for pid, name in enumerate((*names, "calm"), 10):
        process(made, pid, name, cpus="0")
        busy = SECOND // 20 if name == "calm" else 5 * SECOND
        threads(made, pid, name, name, on_cpu=busy, runnable=busy)
    return made


def test_threads_that_outnumber_the_cores() -> None:
    (verdict,) = find(facts_of(crowd()))
    assert (verdict.rule, verdict.kind, verdict.confidence) == ("crowd", "cores", 1)
    assert (verdict.time, verdict.pids, verdict.finding) == (2 * 16 * 8 * SECOND, {1000, 2000}, None)
    assert isinstance(verdict.detail, Crowd)
    assert (verdict.detail.names, verdict.detail.more) == (("2 × train",), False)
    assert (verdict.detail.others_have_cores, verdict.detail.has_variables) == (False, True)


def test_programs_that_share_cores() -> None:
    (found,) = details(sharing("a", "b"))
    assert (found.names, found.more, found.group.pids) == (("a", "b"), False, (10, 11))
    (found,) = details(sharing("a", "b", "c", "d"))
    assert (found.names, found.more) == (("a", "b", "c"), True)
    assert details(sharing("a")) == []


def test_others_have_the_cores() -> None:
    made = profile()
    process(made, 7, "train")
    threads(made, 7, "train", "train", 6, on_cpu=SECOND, runnable=8 * SECOND)
    (found,) = details(made)
    assert (found.others_have_cores, found.has_variables) == (True, False)
    made.processes[0].limits = (CpuLimit("/x", 300_000, 100_000),)
    (by_quota,) = details(made)
    assert by_quota.others_have_cores is False


@pytest.mark.parametrize(
    ("cpus", "takers"), [("0-1", (("loader", 0.8),)), ("0-3", (("loader", 0.4),)), ("1-60", ()), ("60", ())]
)
def test_others_that_were_traced_are_named(cpus: str, takers: tuple[tuple[str, float], ...]) -> None:
    """Programs with other cores have none of these; those with more cores are taken for evenly on all."""
    made = profile()
    process(made, 7, "train", cpus="0-1")
    threads(made, 7, "train", "train", 6, on_cpu=SECOND, runnable=8 * SECOND)
    process(made, 8, "loader", cpus=cpus)
    threads(made, 8, "loader", "loader", on_cpu=8 * SECOND, runnable=SECOND // 10)
    found = next(each for each in details(made) if each.names == ("train",))
    assert found.takers == takers


def one_program(number: int, **each: int) -> Profile:
    made = profile()
    process(made, 7, "x")
    threads(made, 7, "x", "x", number, **each)
    return made


@pytest.mark.parametrize(
    "made",
    [
        one_program(4, on_cpu=SECOND, runnable=9 * SECOND),  # no more than there are cores
        one_program(8, on_cpu=4 * SECOND, runnable=1_900 * MS),  # 4.7 want one
        one_program(8, on_cpu=8_100 * MS, runnable=1_900 * MS),  # they seldom wait for one
        crowd(1, "0-15"),
        crowd(1, ""),
        empty(),
    ],
)
def test_no_crowd(made: Profile) -> None:
    assert find(facts_of(made)) == []


def test_a_crowd_that_is_nothing_beside_others() -> None:
    made = one_program(8, on_cpu=3 * SECOND, runnable=5 * SECOND)
    assert len(find(facts_of(made))) == 1
    process(made, 500, "busy", cpus="8-255")
    threads(made, 500, "busy", "busy", 247, on_cpu=10 * SECOND)
    assert find(facts_of(made)) == []


def test_a_crowd_is_told_by_its_number() -> None:
    (train, _) = contention_of(crowd())
    assert shown(train) == "train"
    assert shown(replace(train, processes=1200)) == "1,200 × train"


def pools_told(made: Profile) -> list[tuple[tuple[str, ...], int]]:
    (detail,) = details(made)
    return [(pool.made_in, pool.threads) for pool in detail.pools]


def test_several_pools_of_one_process_are_told_apart() -> None:
    assert pools_told(two_pools()) == [(READERS, 3), (WRITERS, 2)]
    told = Sentences(facts_of(two_pools())).of(find(facts_of(two_pools()))[0])
    said = "They are in pools: 3 threads made in start_readers → start_pool, 2 made in start_writers → start_pool."
    assert said in told


def test_pools_of_ranks_that_are_alike_are_one() -> None:
    made = two_pools()
    made.processes.append(replace(made.processes[0], pid=PID + 500))
    add_pool(made, 3, made_in=READERS, fed={"feed_readers": 1}, wants=8, pid=PID + 500)
    add_pool(made, 2, made_in=WRITERS, fed={"feed_writers": 1}, wants=8, pid=PID + 500)
    assert pools_told(made) == [(READERS, 6), (WRITERS, 4)]


def test_one_pool_of_each_process_tells_nothing() -> None:
    made = no_pools()
    add_pool(made, 8, made_in=READERS, wants=8)
    assert pools_told(made) == []
    made.processes.append(replace(made.processes[0], pid=PID + 500))
    add_pool(made, 8, made_in=WRITERS, wants=8, pid=PID + 500)
    assert pools_told(made) == []


def test_threads_of_teams_are_in_no_other_pool() -> None:
    made = with_teams({"conv2d._omp_fn.0": 8, "resize._omp_fn.0": 8})
    (detail,) = details(made)
    assert (len(detail.teams), detail.pools) == (2, ())


def test_libraries_with_pools() -> None:
    def sample(pid: int, path: str) -> Sample:
        return Sample((Frame("main"), Frame("f", "native", Module(path))), (1,), (("pid", pid),))

    paths = [
        "/usr/lib/libgomp.so.1",
        "/opt/libopenblas.so.0",
        "/x/libtorch_cpu.so",
        "/usr/lib/libnode.so",
        "/a/libm.so.6",
    ]
    made = Profile([ValueType("off-cpu", "nanoseconds")], [sample(pid, path) for pid, path in enumerate(paths)])
    assert pools_of_libraries(made) == {0, 1, 2}
