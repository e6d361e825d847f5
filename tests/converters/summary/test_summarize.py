from __future__ import annotations

from dataclasses import replace

import pytest
from idle_hosts import CLIENT, LOOP, Host
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import Frame, Profile, Sample, ThreadTimes, ValueType
from stallscope.converters.summary.figures import Process, Wait, Who
from stallscope.converters.summary.judging import read
from stallscope.converters.summary.summarize import summarize
from summary_profiles import (
    MS,
    POOL,
    SECOND,
    TOPK,
    Tracee,
    empty,
    idle_pool,
    kernel,
    model_case,
)


def by_kernel(profile: Profile) -> dict[str, Wait]:
    return {wait.kernel: wait for wait in summarize(profile).waits}


def test_equal_waits_of_all_processes_are_one() -> None:
    summary = summarize(model_case())
    assert [(wait.state, wait.frames[-2], wait.kernel) for wait in summary.waits] == [
        ("interruptible", "wait_for_worker", "futex_wait"),
        ("uninterruptible", "cudaGetDeviceProperties", "__mutex_lock"),
        ("runnable", "cudaGetDeviceProperties", ""),
    ]
    topk = summary.waits[1]
    assert (topk.time, topk.count, topk.min, topk.max) == (8 * 8_420 * MS, 31_200, 20_000, 17_900_000)
    assert (topk.processes, topk.threads, topk.threads_wall, topk.threads_alike) == (8, 8, 80 * SECOND, 8)
    assert topk.mean == 2_158_974
    assert topk.who == (Who("demo", "worker", False, 8, 8, (5711, 5712, 5713, 5714)),)
    assert not topk.told_by_others
    assert summary.waits[2].runnable


def test_open_intervals_count_and_are_marked() -> None:
    main = by_kernel(model_case())["futex_wait"]
    assert (main.time, main.count) == (8 * 9_700 * MS, 8 * 3901)
    assert (main.open_time, main.open_count) == (80 * MS, 8)
    assert main.min == 1
    assert main.who == (Who("demo", "demo", True, 8, 8, (4711, 4712, 4713, 4714)),)


def test_totals_are_those_of_the_scheduler() -> None:
    times = summarize(model_case()).times
    assert (times.threads, times.wall) == (16, 160 * SECOND)
    assert (times.on_cpu, times.runnable) == (14_400 * MS, 640 * MS)
    assert times.blocked["interruptible"] == 77_600 * MS
    assert times.blocked["stopped"] == 0
    assert list(times.blocked)[:2] == ["interruptible", "uninterruptible"]
    assert times.unaccounted == 0
    assert times.off_cpu == 640 * MS + 77_600 * MS + 67_360 * MS


def test_processes_by_number_then_pid() -> None:
    profile = empty()
    for pid, process in ((30, "b"), (20, "a"), (40, "b"), (10, "c")):
        Tracee(profile, pid, process, pid, process).run(1)
        # A thread with another idea of the process's name (it was there before exec) does not rename it.
        Tracee(profile, pid, "sh", pid + 1, "x").run(1)
    assert summarize(profile).processes == (Process("b", (30, 40)), Process("c", (10,)), Process("a", (20,)))


def test_lost_time_is_a_row_and_no_process() -> None:
    profile = model_case()
    before = summarize(profile)
    row = (SECOND, 12, 1, SECOND)
    labels = {"pid": 0, "process": "[lost]", "tid": 0, "thread": "[lost]", "state": "interruptible"}
    profile.samples.append(Sample((Frame("[lost]", "other"),), row, tuple(sorted(labels.items()))))
    summary = summarize(profile)
    assert summary.processes == before.processes
    assert summary.times.threads == before.times.threads
    assert summary.next_step == before.next_step
    assert sum(wait.time for wait in summary.waits) == sum(wait.time for wait in before.waits) + SECOND


def test_idle_threads_come_last_and_apart_from_busy_ones_in_the_same_place() -> None:
    summary = summarize(idle_pool())
    assert [(wait.idle, wait.threads, wait.time) for wait in summary.waits] == [
        (False, 1, 6 * SECOND),
        (False, 1, 4 * SECOND),
        (True, 64, 640 * SECOND),
    ]
    assert summary.waits[1].kernel == summary.waits[2].kernel == "futex_wait"
    assert (summary.active.threads, summary.active.wall) == (2, 20 * SECOND)
    assert summary.times.threads == 66


def test_a_main_thread_is_never_idle() -> None:
    profile = empty()
    Tracee(profile, 1, "p", 1, "p").wait(POOL, "interruptible", 10 * SECOND, 90)
    Tracee(profile, 1, "p", 2, "w").run(10 * SECOND)
    assert [wait.idle for wait in summarize(profile).waits] == [False]


def test_waiting_for_a_core_is_one_row_per_name_whatever_the_thread_was_at() -> None:
    profile = empty()
    frames = POOL[:-5]
    for tid in (8, 9):
        tracee = Tracee(profile, 1, "p", tid, f"w-{tid}")
        tracee.wait(POOL, "runnable-woken", SECOND, 2).wait(TOPK, "runnable-woken", SECOND, 3)
        tracee.wait(frames, "runnable-preempted", SECOND)
    Tracee(profile, 1, "p", 1, "p").wait(POOL, "runnable-woken", SECOND, 7)
    waits = summarize(profile).waits
    assert [(wait.state, wait.kind, wait.frames[:1], wait.count, wait.threads) for wait in waits] == [
        ("runnable", "core", (), 12, 2),
        ("runnable", "core", ("pool_main",), 7, 1),
    ]


def test_processes_that_did_not_move_have_rows_of_their_own() -> None:
    profile = empty()
    Tracee(profile, 1, "p", 1, "p").wait(POOL, "interruptible", 10 * SECOND, still=True)
    Tracee(profile, 2, "p", 2, "p").run(SECOND).wait(POOL, "interruptible", 9 * SECOND, 10)
    assert [(wait.still, wait.time) for wait in summarize(profile).waits] == [(False, 9 * SECOND), (True, 10 * SECOND)]


def test_threads_of_the_kernel_are_told_from_others() -> None:
    profile = empty()
    Tracee(profile, 1, "p", 1, "p").run(SECOND).wait(POOL, "interruptible", 9 * SECOND, 10)
    stack = kernel("ret_from_fork", "kthread", "kjournald2")
    Tracee(profile, 9, "jbd2", 9, "jbd2").run(1).wait(stack, "interruptible", 10 * SECOND)
    summary = summarize(profile)
    assert [(wait.in_kernel, wait.idle) for wait in summary.waits] == [(False, False), (True, True)]
    assert summary.processes == (Process("p", (1,)), Process("jbd2", (9,), True))
    assert summary.kernel_threads == 1


def test_thread_without_times_makes_its_share_unknown_not_wrong() -> None:
    profile = model_case()
    profile.threads = [times for times in profile.threads if times.tid != 4711 + 1000]
    summary = summarize(profile)
    topk = next(wait for wait in summary.waits if wait.kernel == "__mutex_lock")
    assert topk.threads == 8
    assert topk.threads_wall == 0
    assert topk.who[0].process == "demo"


def test_thread_id_that_was_used_twice_counts_once_with_both_times() -> None:
    profile = empty()
    first = Tracee(profile, 1, "p", 5, "t").run(SECOND).wait(POOL, "interruptible", SECOND)
    profile.threads.append(replace(first.times, blocked={"stopped": SECOND}))
    summary = summarize(profile)
    assert summary.times.threads == 1
    assert summary.times.wall == 4 * SECOND
    assert summary.times.blocked["stopped"] == summary.times.blocked["interruptible"] == SECOND
    assert summary.waits[0].threads_wall == 4 * SECOND


def test_samples_without_labels_are_kept() -> None:
    profile = empty()
    profile.samples.append(Sample(POOL, (5, 1, 5, 5)))
    (wait,) = summarize(profile).waits
    assert (wait.state, wait.time, wait.who) == ("other", 5, (Who("?", "?", True, 1, 1, (0,)),))


def test_minimum_ignores_samples_without_an_interval() -> None:
    profile = empty()
    tracee = Tracee(profile, 1, "p", 1, "p")
    tracee.wait(POOL, "interruptible", 0, 0, least=0).wait(POOL, "interruptible", 10, 1, least=10)
    assert summarize(profile).waits[0].min == 10


def test_unknown_states_are_reported() -> None:
    profile = empty()
    profile.threads.append(ThreadTimes(1, "p", 1, "p", 5, 0, 0, {"parked": 5}))
    assert summarize(profile).times.blocked["parked"] == 5
    assert summarize(profile).times.unaccounted == 0


def test_same_samples_in_another_order_give_the_same_summary() -> None:
    profile = idle_pool()
    forward = summarize(profile)
    profile.samples.reverse()
    backward = summarize(profile)
    assert backward == forward


def test_other_profiles_are_refused() -> None:
    with pytest.raises(StallscopeError, match="neither of off-CPU time nor of on-CPU samples") as caught:
        summarize(Profile([ValueType("cpu", "nanoseconds")]))
    assert caught.value.remedy


def test_facts_stay_as_they_were() -> None:
    """Rows of several threads have sums of their own: what is judged later is not counted twice."""
    host = Host().wait(7, 7, LOOP, 900, CLIENT, each=9).wait(8, 8, LOOP, 800, CLIENT, each=8)
    profile = host.made()
    known = read(profile)
    before = {thread: [dict(total.wakers) for total in sums.values()] for thread, sums in known.facts.sums.items()}
    summarize(profile, None, known)
    after = {thread: [dict(total.wakers) for total in sums.values()] for thread, sums in known.facts.sums.items()}
    assert after == before
    assert any(wakers for sums in before.values() for wakers in sums)
