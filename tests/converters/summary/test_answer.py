from __future__ import annotations

import pytest
from stallscope.converters.model import Profile
from stallscope.converters.summary.answer import answer, people
from stallscope.converters.summary.figures import Who
from stallscope.converters.summary.summarize import summarize
from summary_profiles import (
    EXE,
    MS,
    POOL,
    SECOND,
    SPIN,
    TOPK,
    Tracee,
    empty,
    idle_pool,
    kernel,
    model_case,
    two_spinners_on_one_core,
    user,
)

SLEEP = (*user(EXE, "main", "nap"), *kernel("__x64_sys_clock_nanosleep", "do_nanosleep"))
TOPK_SENTENCE = (
    "84.2 % of the time of the 8 worker threads of demo is blocked in topk → cudaGetDeviceProperties → ioctl, "
    "waiting in __mutex_lock (8 processes, 31,200 waits, mean 2.16 ms, max 17.9 ms)."
)


def sentences(profile: Profile) -> tuple[str, ...]:
    return answer(summarize(profile))


def test_the_lock_comes_before_the_longer_wait_for_the_worker() -> None:
    assert sentences(model_case()) == (
        TOPK_SENTENCE,
        "97.0 % of the time of the 8 main threads of demo is blocked in main → wait_for_worker → pthread_cond_wait, "
        "waiting in futex_wait (8 processes, 31,208 waits, mean 2.49 ms, max 18.0 ms).",
    )


def test_main_threads_that_do_nothing_else_are_idle_or_wait_for_others() -> None:
    first, second = sentences(model_case(main_runs=50 * MS))
    assert first == TOPK_SENTENCE
    assert second.startswith("99.5 % of the time of the 8 main threads of demo is blocked in main → wait_for_worker")
    assert second.endswith("max 18.0 ms): idle, or waiting for others.")


def test_idle_pool_does_not_hide_the_lock() -> None:
    profile = idle_pool()
    profile.threads[-2].on_cpu = 1 * SECOND
    profile.threads[-1].on_cpu = 4 * SECOND
    assert sentences(profile) == (
        "60.0 % of the time of the main thread of srv is blocked in topk → cudaGetDeviceProperties → ioctl, "
        "waiting in __mutex_lock (1,000 waits, mean 6.00 ms, max 6.00 s).",
        "100.0 % of the time of 64 of the 65 pool-* threads of srv is blocked in pool_main → "
        "std::condition_variable::wait, waiting in futex_wait (64 waits, mean 10.0 s, max 10.0 s): "
        "idle, or waiting for others.",
    )


def test_busy_threads_are_measured_without_the_idle_ones() -> None:
    first, second = sentences(idle_pool())
    assert first == (
        "50.0 % of the wall time of the threads that are not idle (2 of 66) is on-CPU, 0.0 % is waiting for a core."
    )
    assert second.startswith("60.0 % of the time of the main thread of srv is blocked in topk")


def test_crowded_core() -> None:
    assert sentences(two_spinners_on_one_core()) == (
        "50.0 % of the wall time of all 2 threads is on-CPU, 50.0 % is waiting for a core.",
    )


def test_sleeper_sleeps_though_it_computes_a_little() -> None:
    profile = empty()
    Tracee(profile, 1, "p", 1, "p").run(SECOND).wait(SLEEP, "interruptible", 9 * SECOND, 90)
    assert sentences(profile)[0].startswith("90.0 % of the time of the main thread of p is blocked in main → nap")


def test_small_lock_in_a_large_wait_is_no_headline() -> None:
    profile = empty()
    for tid in range(1, 100):
        tracee = Tracee(profile, 1, "p", tid, "t").run(SECOND)
        tracee.wait(SLEEP, "interruptible", 8_900 * MS).wait(POOL, "interruptible", 100 * MS)
    Tracee(profile, 1, "p", 100, "t").run(SECOND).wait(TOPK, "uninterruptible", 9 * SECOND)
    first = sentences(profile)[0]
    assert "topk" not in first
    assert first.startswith("89.0 % of the time of 99 threads of p (main, t) is blocked in main → nap")


def test_only_some_threads_of_a_name_wait() -> None:
    profile = empty()
    for tid in range(10, 22):
        tracee = Tracee(profile, 1, "p", tid, "worker").run(SECOND)
        if tid < 18:
            tracee.wait(TOPK, "uninterruptible", 9 * SECOND)
        else:
            tracee.run(9 * SECOND)
    first = sentences(profile)[0]
    assert first.startswith("90.0 % of the time of 8 of the 12 worker threads of p is blocked in topk")


def test_kernel_thread_has_no_frames() -> None:
    profile = empty()
    stack = kernel("ret_from_fork", "kthread", "jbd2_journal_commit_transaction")
    Tracee(profile, 9, "jbd2", 9, "jbd2").run(SECOND).wait(stack, "uninterruptible", 9 * SECOND, 3)
    assert sentences(profile) == (
        "90.0 % of the time of the main thread of jbd2 is blocked, waiting in jbd2_journal_commit_transaction "
        "(3 waits, mean 3.00 s, max 9.00 s).",
    )


def test_without_thread_times_no_share_is_claimed() -> None:
    profile = model_case()
    profile.threads.clear()
    first, _ = sentences(profile)
    assert first.startswith("1 min 07 s of the time of the 8 worker threads of demo is blocked in topk")


def test_nothing() -> None:
    assert sentences(empty()) == ("No thread was seen.",)
    profile = empty()
    Tracee(profile, 1, "p", 1, "p")
    assert sentences(profile) == ("No wait was recorded.",)
    Tracee(profile, 1, "p", 2, "p").run(SECOND).wait(SPIN, "runnable-preempted", 1)
    assert sentences(profile) == (">99.9 % of the wall time of all 2 threads is on-CPU, <0.1 % is waiting for a core.",)


@pytest.mark.parametrize(
    ("who", "expected"),
    [
        ([Who("demo", "worker", False, 8, 8)], "8 × demo/worker"),
        ([Who("demo", "demo", True, 1, 1)], "demo (main)"),
        ([Who("srv", f"pool-{i}", False, 1, 1) for i in range(3)] + [Who("srv", "srv", True, 1, 1)],
         "3 × srv/pool-*, srv (main)"),
        ([Who(name, name, True, 1, 1) for name in "abcde"], "a (main), b (main), c (main) and 2 more names"),
        ([Who(name, name, True, 1, 1) for name in "abcd"], "a (main), b (main), c (main), d (main)"),
    ],
)  # fmt: skip
def test_people(who: list[Who], expected: str) -> None:
    assert people(who) == expected
