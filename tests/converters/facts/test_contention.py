from __future__ import annotations

import json

import pytest
from processes import HALF, MS, SECOND, crowd, latencies, pools, process, profile, threads
from stallscope.converters.facts.contention import Contention, contention_of, together
from stallscope.converters.model import Profile, ThreadTimes
from stallscope.converters.model.processes import CpuLimit


def one(made: Profile) -> Contention:
    (found,) = contention_of(made)
    return found


def test_sums_of_a_process() -> None:
    made = profile()
    process(made, 7, "train", waits=latencies(us_5=98, ms_3=2))
    threads(made, 7, "train", "train", on_cpu=SECOND, runnable=2 * SECOND, switches=50)
    threads(made, 7, "train", "w", 3, wall=5 * SECOND, on_cpu=SECOND, switches=10, creator=7, exited=True)
    threads(made, 7, "train", "w", wall=5 * SECOND, creator=7)
    found = one(made)
    assert (found.threads, found.created, found.ended, found.switches) == (5, 4, 3, 80)
    assert (found.on_cpu, found.runnable, found.wall) == (4 * SECOND, 2 * SECOND, 30 * SECOND)
    assert (found.used, found.wanted, found.allowed) == (0.4, 0.6, 4)
    assert found.per_second(found.created) == 0.4
    assert found.mean_latency == 2 * SECOND // 100
    assert json.loads(json.dumps(found.to_json())) == {
        "process": "train",
        "pids": [7],
        "threads": 5,
        "created": 4,
        "created_per_second": 0.4,
        "ended": 3,
        "ended_per_second": 0.3,
        "switches": 80,
        "switches_per_second": 8.0,
        "wall_ns": 30 * SECOND,
        "on_cpu_ns": 4 * SECOND,
        "runnable_ns": 2 * SECOND,
        "runnable_share": 0.066667,
        "core_waits": 100,
        "core_wait_mean_ns": 20 * MS,
        "core_wait_p99_below_ns": 1 << 22,
        "cores_used": 0.4,
        "cores_allowed": 4,
        "cpus": [0, 1, 2, 3],
        "limits": [],
        "environment": [None],
    }


def test_a_process_that_lived_for_a_part_wants_cores_in_that_part() -> None:
    made = profile()
    process(made, 7, "brief")
    threads(made, 7, "brief", "brief", 4, wall=SECOND, on_cpu=SECOND // 2, runnable=SECOND // 2)
    assert (one(made).wanted, one(made).used) == (4, 0.2)


@pytest.mark.parametrize(("executed", "number"), [(True, 1), (False, 10)])
def test_a_process_that_executes_one_program_after_the_other_wants_cores_all_the_time(
    executed: bool, number: int
) -> None:
    """Accounts of one main thread, or else of ten threads that lived at the same time."""
    made = profile()
    process(made, 7, "exe")
    threads(made, 7, "exe", "exe", 10, wall=SECOND, on_cpu=SECOND // 2, runnable=SECOND // 4)
    threads(made, 7, "exe", "worker", 20, wall=SECOND, runnable=SECOND // 8)
    for times in made.threads[1:10] if executed else ():
        times.tid = 7
    found = one(made)
    assert (found.span, found.wanted, found.processes) == (SECOND * 10 // number, number, 1)
    assert found.threads == 30


def test_processes_that_are_added_up_want_cores_over_the_whole_trace() -> None:
    """Nobody knows which of 1,000 processes of 20 ms lived at the same time."""
    made = profile()
    process(made, 1 << 32, "storm")
    made.threads.append(
        ThreadTimes(
            1 << 32, "storm", 1 << 56, "storm", 20 * SECOND, 15 * SECOND, 5 * SECOND, {}, exited=True, count=1000
        )
    )
    found = one(made)
    assert (found.wanted, found.used, found.processes) == (2, 1.5, 1000)
    assert together([found, found], "storm").processes == 2000


def test_those_who_want_most_come_first_and_those_without_threads_not_at_all() -> None:
    made = profile()
    for pid, on_cpu in ((1, 0), (100, 5), (200, 9)):
        process(made, pid, f"p{pid}")
        threads(made, pid, f"p{pid}", "x", on_cpu=on_cpu)
    process(made, 300, "never seen")
    assert [found.pids for found in contention_of(made)] == [(200,), (100,), (1,)]


def test_ranks_together() -> None:
    found = together(contention_of(crowd(2)), "train")
    assert (found.pids, found.threads, found.allowed) == ((1000, 2000), 34, 4)
    assert (found.used, found.wanted) == (3.2, 28.8)
    assert sum(found.latencies) == 2000
    assert found.environments == (None, None)


@pytest.mark.parametrize("seconds", [0, -1])
def test_a_trace_without_a_length(seconds: int) -> None:
    made = pools(seconds)
    made.threads = made.threads[1:]
    for times in made.threads:
        times.wall = times.on_cpu = 0
    found = one(made)
    assert (found.used, found.wanted, found.per_second(1)) == (None, None, None)
    told = found.to_json()
    assert told["created_per_second"] is told["runnable_share"] is told["cores_used"] is None
    assert json.dumps(told)


def test_nothing_that_waited() -> None:
    made = profile()
    process(made, 7, "x")
    threads(made, 7, "x", "x")
    assert (one(made).mean_latency, one(made).p99_bucket) == (None, None)
    assert together([one(made)], "x") == one(made)


# Cores that are allowed.

WIDE, PARENT = CpuLimit("/wide", 800_000, 100_000), CpuLimit("/parent", 150_000, 100_000)


@pytest.mark.parametrize(
    ("members", "allowed"),
    [
        ([("0-3", ())], 4),
        ([("", ())], None),
        ([("0-3", ()), ("", ())], None),
        ([("0-3", (HALF,))], 0.5),
        ([("0-3", (WIDE,))], 4),
        ([("0-3", (WIDE, PARENT))], 1.5),
        ([("0-1", ()), ("2-3", ())], 4),
        ([("0-3", ()), ("2-5", ())], 6),
        ([("0-3", (HALF,)), ("0-3", (HALF,))], 0.5),
        ([("0-3", (HALF,)), ("0-3", (WIDE,))], 4),
        ([("0-3", (HALF,)), ("0-3", ())], 4),
        ([("0-3", (WIDE, PARENT)), ("0-3", (PARENT,))], 1.5),
        ([("0-3", (CpuLimit("/a", 1, 1), PARENT)), ("0-3", (CpuLimit("/b", 1, 1), PARENT))], 1.5),
        ([("0-3", (CpuLimit("/a", 1, 2),)), ("0-3", (CpuLimit("/b", 1, 1),))], 1.5),
    ],
)
def test_cores_that_are_allowed(members: list[tuple[str, tuple[CpuLimit, ...]]], allowed: float | None) -> None:
    made = profile()
    for i, (cpus, limits) in enumerate(members):
        process(made, i * 10 + 1, "x", cpus=cpus, limits=limits)
        threads(made, i * 10 + 1, "x", "x")
    assert together(contention_of(made), "x").allowed == allowed


def test_hostile_names_in_json() -> None:
    made = profile()
    limit = CpuLimit("/\udcff\x1b", 1, 1)
    process(made, 7, "a\udcff", limits=(limit,), environment={"OMP_NUM_THREADS": "\udcfe\n"})
    threads(made, 7, "a\udcff", "x")
    told = one(made).to_json()
    assert (told["process"], told["limits"][0]["cgroup"]) == ("a\\xff", "/\\xff\x1b")
    assert told["environment"] == [{"OMP_NUM_THREADS": "\\xfe\n"}]
