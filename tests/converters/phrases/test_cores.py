from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

import pytest
from processes import HALF, MS, SECOND, crowd, latencies, pools, process, profile, threads
from stallscope.converters.facts.contention import contention_of
from stallscope.converters.facts.facts import Beside, Facts
from stallscope.converters.facts.thread_roles import roles_of
from stallscope.converters.facts.wait_sums import merged_threads
from stallscope.converters.model import Profile
from stallscope.converters.model.neighbours import Neighbour
from stallscope.converters.model.processes import CpuLimit
from stallscope.converters.phrases.sentences import all_of_cores
from stallscope.converters.rules.ranking import judge
from stallscope.converters.rules.verdict import Verdict
from stallscope.converters.summary.summarize import summarize


def verdicts(made: Profile, pools_in: Callable[[], Collection[int]] | None = None) -> list[Verdict]:
    beside = Beside(made.threads, contention_of(made), pools=pools_in)
    of = merged_threads(made.threads)
    facts = Facts({}, of, roles_of({}, of), made.duration_ns, beside)
    return [verdict for verdict in judge(facts).verdicts if verdict.rule in ("quota", "crowd", "pool-anew")]


def told(made: Profile) -> tuple[str, ...]:
    return all_of_cores(verdicts(made))


def test_nothing_to_say() -> None:
    made = profile()
    assert told(made) == ()
    process(made, 7, "calm", waits=latencies(us_5=10))
    threads(made, 7, "calm", "calm", 64, on_cpu=SECOND // 32, runnable=MS)
    assert told(made) == ()


# Threads outnumber the cores.


def test_threads_outnumber_the_cores() -> None:
    (sentence,) = told(crowd(2, environment={"OMP_NUM_THREADS": "16", "RAYON_NUM_THREADS": "4"}))
    assert sentence == (
        "The threads of 2 × train outnumber the cores: 28.8 want one on average, 4 cores may be used; 75.3 % of their "
        "time they wait for one. Environment: OMP_NUM_THREADS=16; RAYON_NUM_THREADS=4; "
        "MKL_NUM_THREADS, OPENBLAS_NUM_THREADS, NUMEXPR_NUM_THREADS not set."
    )


def test_others_have_the_cores() -> None:
    """Fewer threads would not help much."""
    made = profile()
    process(made, 7, "train", cpus="0-3")
    threads(made, 7, "train", "train", 6, on_cpu=SECOND, runnable=8 * SECOND)
    assert told(made) == (
        "Others have most of the cores: the threads of train want 5.4 on average, and get 0.6 of the 4 cores that they "
        "may use; 80.0 % of their time they wait for one.",
    )


def test_who_has_the_cores() -> None:
    made = profile()
    process(made, 7, "train", cpus="0-3")
    threads(made, 7, "train", "train", 6, on_cpu=SECOND, runnable=8 * SECOND)
    made.neighbours = [Neighbour("gzip", 9, 9 * SECOND), Neighbour("train", 8, 13 * SECOND)]
    made.neighbours += [Neighbour("train", 10, 12 * SECOND), Neighbour("sshd", 11, SECOND)]
    assert summarize(made).answer[0].startswith("Others have most of the cores (2 × train 2.5, gzip 0.9): the ")


def test_numbers_of_threads_are_no_hint_where_each_process_has_one() -> None:
    made = profile()
    for pid in range(10, 22):
        process(made, pid, "cc1", environment={})
        threads(made, pid, "cc1", "cc1", on_cpu=3 * SECOND, runnable=6 * SECOND)
    (sentence,) = told(made)
    assert sentence.endswith("60.0 % of their time they wait for one.")


def test_a_small_problem_is_none_of_a_whole_host() -> None:
    made = crowd(2)
    pools_of = pools()
    process(made, 7, "serve")
    made.threads += pools_of.threads
    assert len(told(made)) == 1, "the pool had 2 s of 290"
    process(made, 9, "little", limits=(replace(HALF, cgroup="/little", throttled_ns=SECOND),))
    threads(made, 9, "little", "little", on_cpu=SECOND)
    assert len(told(made)) == 1, "it was stopped for a second"
    made.threads = made.threads[34:]
    assert len(told(made)) == 2, "alone, both are worth a sentence"


@pytest.mark.parametrize(
    ("environments", "expected"),
    [
        ([None, None], "OMP_NUM_THREADS and its like could not be read."),
        ([{}, {}], "OMP_NUM_THREADS and its like are not set."),
        ([{"OMP_NUM_THREADS": "8"}, {"OMP_NUM_THREADS": "16"}], "OMP_NUM_THREADS=16 or OMP_NUM_THREADS=8; MKL_"),
        ([{"OMP_NUM_THREADS": "8"}, {}], "OMP_NUM_THREADS=8 or not set; MKL_"),
        ([{"OMP_NUM_THREADS": "8"}, None], "OMP_NUM_THREADS=8; MKL_"),
        ([{"OMP_NUM_THREADS": "\x1b[2J\udcff"}, None], "OMP_NUM_THREADS=\x1b[2J\udcff; MKL_"),
    ],
)
def test_what_the_environment_says(environments: list[dict[str, str] | None], expected: str) -> None:
    made = crowd(2)
    for each, environment in zip(made.processes, environments, strict=True):
        each.environment = environment
    (sentence,) = told(made)
    assert sentence.partition(" Environment: ")[2].startswith(expected)


def test_one_core_is_one() -> None:
    assert "14.4 want one on average, 1 core may be used;" in told(crowd(1, "3"))[0]


def test_a_quota_can_be_what_is_outnumbered() -> None:
    made = crowd(1, "0-63", limits=(CpuLimit("/pod", 400_000, 100_000),))
    assert "4 cores may be used by quota;" in told(made)[0]


@pytest.mark.parametrize("cpus", ["0-15", ""])
def test_enough_cores_or_nobody_knows(cpus: str) -> None:
    assert told(crowd(1, cpus)) == ()


def test_one_thread_that_others_keep_from_its_core_is_no_crowd() -> None:
    made = profile()
    process(made, 7, "x", cpus="0")
    threads(made, 7, "x", "x", on_cpu=SECOND, runnable=9 * SECOND)
    assert told(made) == ()


def test_many_threads_that_take_turns_are_no_crowd() -> None:
    made = profile()
    process(made, 7, "x", cpus="0-3")
    threads(made, 7, "x", "x", 64, on_cpu=SECOND // 2, runnable=SECOND // 20)
    assert told(made) == ()


def test_numbered_processes_are_one_crowd() -> None:
    made = profile()
    for rank in range(3):
        process(made, 10 * rank + 7, f"rank-{rank}", cpus="1")
        threads(made, 10 * rank + 7, f"rank-{rank}", "x", on_cpu=3 * SECOND, runnable=7 * SECOND)
    assert told(made)[0].startswith("The threads of 3 × rank-* outnumber the cores: 3.0 want one on average, 1 core")


def test_programs_of_several_names_on_the_same_cores() -> None:
    made = profile()
    for pid, name, cpus in ((10, "a", "0"), (20, "b", "0"), (30, "other", "1")):
        process(made, pid, name, cpus=cpus, environment={})
        threads(made, pid, name, name, on_cpu=5 * SECOND, runnable=5 * SECOND)
    process(made, 40, "idle", cpus="0")
    threads(made, 40, "idle", "idle", on_cpu=MS)
    (sentence,) = told(made)
    assert sentence.startswith(
        "The threads of a and b outnumber the cores: 2.0 want one on average, 1 core may be used;"
    )


def test_two_of_many_crowds_are_told() -> None:
    made = profile()
    for i in range(5):
        process(made, 100 * i + 1, "abcde"[i], cpus=str(i))
        threads(made, 100 * i + 1, "abcde"[i], "x", 8, on_cpu=SECOND, runnable=(i + 1) * SECOND)
    assert [sentence[:16] for sentence in told(made)] == ["The threads of e", "The threads of d"]


# Pools that are made anew.


def test_a_pool_that_is_made_anew() -> None:
    assert told(pools()) == (
        "serve makes its threads anew all the time: 400 threads named pool-* a second are created by the main thread "
        "and end after 2.00 ms on average. A pool that is made once and kept saves that.",
    )


def test_a_pool_whose_threads_have_several_names() -> None:
    made = pools()
    threads(made, 7, "serve", "task-7", 600, wall=MS, on_cpu=MS, creator=7, exited=True)
    assert ": 460 threads named pool-* and 1 other name a second are created by" in told(made)[0]
    assert len(told(made)) == 1


@pytest.mark.parametrize(
    "given",
    [
        {"number": 19, "seconds": 1},  # few in all
        {"number": 99},  # few a second
        {"number": 400, "life": 3 * SECOND},  # as many as there are at a time
        {"seconds": 0},
    ],
)
def test_threads_that_are_no_pool_made_anew(given: dict[str, int]) -> None:
    assert told(pools(**given)) == ()


@pytest.mark.parametrize("change", [{"creator": 0}, {"exited": False}, {"thread": "[other names]"}])
def test_threads_that_were_there_before_or_stay_or_have_no_name_are_no_pool_made_anew(change: dict[str, Any]) -> None:
    made = pools()
    made.threads = [made.threads[0], *(replace(times, **change) for times in made.threads[1:])]
    assert told(made) == ()


def test_processes_are_no_pool() -> None:
    made = profile()
    for pid in range(100, 2100):
        process(made, pid, "cc")
        threads(made, pid, "cc", "cc", wall=MS, creator=7, exited=True)
    assert told(made) == ()


def test_the_creator_is_named_where_it_is_one() -> None:
    made = pools()
    threads(made, 7, "serve", "loader-3")
    creator = made.threads[-1].tid
    for times in made.threads[1:-1]:
        times.creator = creator
    assert "are created by loader-* and end" in told(made)[0]
    made.threads[1].creator = 7
    assert "are created and end" in told(made)[0]
    for times in made.threads[1:]:
        times.creator = 4711  # of which nothing is known
    assert "are created and end" in told(made)[0]


def test_the_place_that_creates_them_is_named() -> None:
    made = pools()
    for times in made.threads[1:]:
        times.made_in = ("next_epoch", "start_thread")
    assert "are created by the main thread in next_epoch → start_thread and end after" in told(made)[0]


# Quotas.


def test_a_quota_that_throttles() -> None:
    made = profile()
    for pid in (10, 20):
        process(made, pid, "demo", limits=(HALF,))
        threads(made, pid, "demo", "demo", on_cpu=2 * SECOND)
    process(made, 30, "other", limits=(HALF,))
    threads(made, 30, "other", "other")
    assert told(made) == (
        "A quota throttles 2 × demo, other: control group /half may use 0.5 cores, and used that up in 98.0 % of its "
        "periods of 100 ms; it was stopped for 4.90 s of the 10.0 s traced (all cores added up).",
    )


@pytest.mark.parametrize(
    ("periods", "throttled", "ns", "says"),
    [(0, 0, 0, False), (100, 0, 0, False), (100, 1, MS, False), (100, 2, MS, True), (1000, 1, 201 * MS, True)],
)
def test_a_quota_matters_when_it_costs_something(periods: int, throttled: int, ns: int, says: bool) -> None:
    made = profile()
    process(made, 7, "x", limits=(CpuLimit("/x", 50_000, 100_000, periods, throttled, ns),))
    threads(made, 7, "x", "x")
    assert bool(told(made)) is says


def test_a_quota_in_a_trace_without_a_length() -> None:
    made = profile(0)
    process(made, 7, "x", limits=(HALF,))
    threads(made, 7, "x", "x", wall=0)
    assert told(made)[0].endswith("periods of 100 ms; it was stopped for 4.90 s.")


def test_a_crowd_that_a_quota_stops_is_told_once() -> None:
    made = crowd(1)
    made.processes[0].limits = (HALF,)
    (only,) = verdicts(made)
    assert all_of_cores([only])[0].startswith("A quota throttles train")
    assert only.pids == {1000}
    assert only.time == contention_of(made)[0].runnable


def test_variables_that_are_not_set_are_a_hint_only_for_libraries_that_read_them() -> None:
    made = crowd(2, environment={})
    pids = {each.pid for each in made.processes}
    (without,) = verdicts(made, tuple)
    assert "Environment" not in all_of_cores([without])[0]
    (some,) = verdicts(made, lambda: {min(pids)})
    assert all_of_cores([some])[0].endswith("are not set.")
    for each in made.processes:
        each.environment = {"OMP_NUM_THREADS": "8"}
    (told_anyway,) = verdicts(made, tuple)
    assert "OMP_NUM_THREADS=8" in all_of_cores([told_anyway])[0]
