"""Pools of threads: who belongs together, who created them, who gives them work."""

from __future__ import annotations

import json

import pytest
from pool_profiles import PID, READERS, START, WRITERS, add_pool, no_pools, two_pools
from scans import HOSTILE
from stallscope.converters.facts.pools import Pool, alike_pools, first_function, pools_json, pools_of
from stallscope.converters.facts.restricted import of_processes
from stallscope.converters.model import Frame, Module, Profile, Stack
from summary_profiles import EXE, LIBC, SECOND, facts_of, kernel, user

PYTHON = Module("/usr/bin/python3.11")
BOOT = tuple(
    Frame(name, "python", file="/usr/lib/python3.11/threading.py", line=7)
    for name in ("Thread._bootstrap", "Thread._bootstrap_inner", "Thread.run")
)
EVALUATOR = user(PYTHON, "pythread_wrapper", "thread_run")


def found(profile: Profile) -> list[tuple[str, tuple[str, ...], tuple[str, ...], int]]:
    return [(each.runs, each.made_in, each.fed_in, each.threads) for each in pools_of(facts_of(profile))]


def python(file: str, name: str) -> Stack:
    return (Frame(name, "python", file=file, line=3),)


@pytest.mark.parametrize(
    ("stack", "name"),
    [
        ((*START, *user(EXE, "run_tasks", "read_block"), *kernel("schedule")), "run_tasks"),
        ((*user(LIBC, "__clone"), *user(EXE, "run_tasks")), "run_tasks"),
        (
            (*START, *EVALUATOR, *BOOT, *python("/usr/lib/python3.11/concurrent/futures/thread.py", "_worker")),
            "_worker",
        ),
        ((*BOOT, *python("/home/me/train.py", "Loader.run")), "Loader.run"),
        # A function of the program in a file of that name, or of that name, is none of Python's.
        ((*START, *python("/home/me/threading.py", "work")), "work"),
        ((*START, *BOOT, *python("/home/me/x.py", "run")), "run"),
        ((*START, *BOOT), ""),
        (START, ""),
        (user(EXE, "run_tasks", "read_block"), ""),
        (user(EXE, "clone_all", "read_block"), ""),
        ((), ""),
    ],
)
def test_the_function_that_a_thread_runs_from_its_start_on(stack: Stack, name: str) -> None:
    assert first_function(stack) == name


def test_two_pools_with_threads_of_the_same_names() -> None:
    readers, writers = pools_of(facts_of(two_pools()))
    assert readers == Pool(
        PID, "app", "worker-*", "run_tasks", READERS, ("main", "feed_readers", "futex"), 3, readers.tids, 0,
        30 * SECOND, 24 * SECOND // 10, 24 * SECOND,
    )  # fmt: skip
    assert (writers.made_in, writers.fed_in[1], writers.threads) == (WRITERS, "feed_writers", 2)
    assert (len(readers.tids), len(writers.tids)) == (3, 2)
    assert not readers.tids & writers.tids


def test_one_pool_that_is_fed_by_two() -> None:
    made = no_pools()
    add_pool(made, 4, made_in=READERS, fed={"feed_readers": 1, "feed_writers": 1})
    assert found(made) == [("run_tasks", READERS, (), 4)]


def test_pools_from_before_the_trace_are_told_apart_by_who_feeds_them() -> None:
    made = no_pools()
    add_pool(made, 3, creator=0, fed={"feed_readers": 0.96, "feed_writers": 0.04})
    add_pool(made, 2, creator=0, fed={"feed_readers": 0.04, "feed_writers": 0.96})
    expected = [(("main", "feed_readers", "futex"), 3), (("main", "feed_writers", "futex"), 2)]
    assert [(each.fed_in, each.threads) for each in pools_of(facts_of(made))] == expected


def test_a_pool_from_before_the_trace_whose_threads_get_work_from_several_is_one() -> None:
    made = no_pools()
    add_pool(made, 3, creator=0, fed={"feed_readers": 0.94, "feed_writers": 0.06})
    add_pool(made, 2, creator=0, fed={"feed_readers": 0.06, "feed_writers": 0.94})
    assert found(made) == [("run_tasks", (), ("main", "feed_readers", "futex"), 5)]


def test_waits_for_a_lock_are_no_waits_for_work() -> None:
    made = no_pools()
    add_pool(made, 2, made_in=READERS, fed={"unlock_table": 5}, call="pthread_mutex_lock")
    assert found(made) == [("run_tasks", READERS, (), 2)]


def test_names_and_functions_tell_pools_apart() -> None:
    made = no_pools()
    add_pool(made, 2, name="reader-{}", creator=0)
    add_pool(made, 2, name="writer-{}", creator=0)
    assert [each.thread for each in pools_of(facts_of(made))] == ["reader-*", "writer-*"]
    made = no_pools()
    add_pool(made, 2, runs="read_all", creator=0, fed={"give": 1})
    add_pool(made, 2, runs="write_all", creator=0, fed={"give": 1})
    assert sorted(each.runs for each in pools_of(facts_of(made))) == ["read_all", "write_all"]


def test_who_is_not_known_joins_the_only_pool_that_it_can_be_of() -> None:
    made = no_pools()
    add_pool(made, 3, made_in=READERS, fed={"give": 1})
    add_pool(made, 1, made_in=READERS, runs="", fed={"give": 1})  # its stack does not reach its start
    add_pool(made, 1, fed={"give": 1})  # the stack of who created it was lost
    assert found(made) == [("run_tasks", READERS, ("main", "give", "futex"), 5)]
    add_pool(made, 2, made_in=WRITERS, fed={"give": 1})
    assert [(each.made_in, each.threads) for each in pools_of(facts_of(made))] == [(READERS, 4), (WRITERS, 2)]


def test_who_was_there_before_the_trace_was_not_created_in_it() -> None:
    made = no_pools()
    add_pool(made, 3, made_in=READERS)
    add_pool(made, 2, creator=0)
    assert sorted((each.made_in, each.threads) for each in pools_of(facts_of(made))) == [((), 2), (READERS, 3)]


def test_one_thread_is_no_pool_nor_are_main_threads() -> None:
    made = no_pools()
    add_pool(made, 1, made_in=READERS)
    assert found(made) == []
    assert found(no_pools()) == []


def test_threads_that_are_added_up_count() -> None:
    made = no_pools()
    add_pool(made, 1, made_in=READERS, count=900)
    made.threads[-1].tid, made.threads[-1].tid_life, made.threads[-1].exited = 0, 2, True
    (pool,) = pools_of(facts_of(made))
    assert (pool.threads, pool.ended, pool.tids) == (900, 900, frozenset())


def test_pools_of_some_processes() -> None:
    facts = facts_of(two_pools())
    assert len(pools_of(of_processes(facts, (PID,)))) == 2
    assert pools_of(of_processes(facts, (1,))) == ()


def test_pools_of_processes_that_are_alike_are_one() -> None:
    made = no_pools()
    for pid in (PID, PID + 500):
        add_pool(made, 2, made_in=READERS, pid=pid, wants=1)
        add_pool(made, 3, made_in=WRITERS, pid=pid, wants=1)
    every = pools_of(facts_of(made))
    assert len(every) == 4
    assert [(each.made_in, each.threads, each.wanted) for each in alike_pools(every)] == [
        (WRITERS, 6, 66 * SECOND // 10),
        (READERS, 4, 44 * SECOND // 10),
    ]


def test_as_json_with_hostile_names() -> None:
    pool = Pool(7, HOSTILE, HOSTILE, HOSTILE, (HOSTILE,), (HOSTILE,), 2, frozenset((9, 8)), 1, 30, 20, 10)
    (told,) = json.loads(json.dumps(pools_json([pool])))
    assert (told["pid"], told["tids"], told["threads"], told["ended"]) == (7, [8, 9], 2, 1)
    assert (told["wall_ns"], told["on_cpu_ns"], told["runnable_ns"]) == (30, 20, 10)
    assert "\udcff" not in "".join([told["process"], told["thread"], told["runs"], *told["made_in"], *told["fed_in"]])
