from __future__ import annotations

import pytest
from nccl_profiles import NCCL, PROGRESS, beside_a_wait
from stallscope.converters.model import Frame, Module, Profile, Sample, Stack, ThreadTimes, ValueType
from stallscope.converters.phrases.sentences import Sentences
from stallscope.converters.rules.polling import Polling, find
from stallscope.converters.summary.summarize import summarize
from summary_profiles import EXE, LIBC, MS, SECOND, SLEEP, Tracee, empty, facts_of, kernel, user
from verdict_profiles import COMPUTE, YIELD, yielding

CUDART = Module("/usr/local/cuda/lib64/libcudart-9335f6a2.so.12")
SYNC = (*user(EXE, "main", "step"), *user(CUDART, "cudaStreamSynchronize", "[libcuda.so.1]"))


def test_a_thread_that_yields_its_core_again_and_again() -> None:
    facts = facts_of(yielding(80, 20))
    (verdict,) = find(facts)
    assert (verdict.rule, verdict.kind, verdict.pids, verdict.time) == ("polling", "polling", {1}, 9_100 * MS)
    assert verdict.finding and verdict.finding.threads == ((1, 1),)
    assert (verdict.confidence, verdict.cause, verdict.effect) == (1, None, None)
    assert verdict.detail == Polling(("main", "wait_for_flag", "sched_yield"), "sched_yield", 0.8)
    assert Sentences(facts).of(verdict) == (
        "100.0 % of the time of the main thread of app is spent polling in main → wait_for_flag → sched_yield: it uses "
        "a core while it waits."
    )
    assert summarize(yielding(80, 20)).answer[0] == Sentences(facts).of(verdict)


@pytest.mark.parametrize(("asks", "works"), [(49, 51), (9, 0), (0, 100)])
def test_one_that_mostly_works_or_of_which_little_is_seen(asks: int, works: int) -> None:
    assert find(facts_of(yielding(asks, works))) == []


def test_one_that_mostly_sleeps_does_not_poll() -> None:
    profile = empty()
    tracee = Tracee(profile, 1, "app", 1, "app").run(4 * SECOND).wait(SLEEP, "interruptible", 5 * SECOND, 90)
    tracee.wait(YIELD, "runnable-preempted", 100 * MS, 90)
    assert find(facts_of(profile)) == []


def test_what_the_others_do_meanwhile() -> None:
    """Ranks of one program: one sleeps, the others poll."""
    profile = yielding(80, 0)
    Tracee(profile, 2, "app", 2, "app").run(SECOND).wait(SLEEP, "interruptible", 9 * SECOND, 90)
    (verdict,) = find(facts_of(profile))
    assert verdict.cause
    assert (verdict.cause.kind, verdict.cause.threads) == ("sleep", ((2, 2),))
    assert (
        "; meanwhile the main thread of app (pid 2) sleeps for 90.0 % of its time in main → nap → clock_nanosleep."
        in (summarize(profile).answer[0])
    )


def sampled(*stacks: Stack) -> Profile:
    columns = [ValueType("wall", "nanoseconds"), ValueType("count", "count"), ValueType("min", "nanoseconds", "min")]
    columns += [ValueType("max", "nanoseconds", "max"), ValueType("samples", "count")]
    profile = Profile(columns, duration_ns=10 * SECOND)
    labels = ("pid", 7), ("process", "train"), ("state", "running"), ("thread", "train"), ("tid", 7)
    profile.samples = [Sample(stack, (SECOND, 0, 0, 0, 100), labels) for stack in stacks]
    time = len(stacks) * SECOND
    profile.threads = [ThreadTimes(7, "train", 7, "train", time, time, 0, {})]
    return profile


def test_waiting_for_a_gpu_with_a_core() -> None:
    (first, *_) = summarize(sampled(SYNC, COMPUTE[:2])).answer
    assert first.startswith(
        "100.0 % of the time of the main thread of train is spent waiting for the GPU in main → step"
    )


def test_a_function_of_the_program_with_such_a_name() -> None:
    own = user(EXE, "main", "cudaStreamSynchronize")
    assert not any("GPU" in sentence for sentence in summarize(sampled(own, (Frame("x"),))).answer)


@pytest.mark.parametrize("inner", [("progressOps",), ("ncclNetSocketTest", "poll"), ("sched_yield",), ()])
def test_a_thread_of_nccl_that_looks_for_progress(inner: tuple[str, ...]) -> None:
    profile = beside_a_wait(user(NCCL, PROGRESS, *inner))
    (verdict,) = find(facts_of(profile))
    assert verdict.finding and verdict.finding.threads == ((7, 8),)
    first, second, *_ = summarize(profile).answer
    assert "is spent waiting for the GPU in main → step → cudaStreamSynchronize" in first
    assert second.startswith("100.0 % of the time of the NCCL Progress * thread of train is spent polling in nccl")


@pytest.mark.parametrize(
    "stack",
    [
        user(EXE, "main", "ncclProxyProgress", "work"),  # the program's own function
        user(NCCL, "ncclOtherThread", "work"),
        (*user(NCCL, PROGRESS), *user(LIBC, "send"), *kernel("__x64_sys_sendto", "tcp_sendmsg")),  # it moves data
    ],
)
def test_a_thread_that_works(stack: Stack) -> None:
    assert find(facts_of(beside_a_wait(stack))) == []
