from __future__ import annotations

from stallscope.converters.facts.runs import add_up_runs
from stallscope.converters.model import Profile, Sample, Stack, ThreadTimes, ValueType
from summary_profiles import EXE, LIBC, kernel, user

POLL = (*user(EXE, "main", "ask"), *user(LIBC, "poll"), *kernel("__x64_sys_poll")[:3])
COPY = (*user(EXE, "main", "load"), *user(LIBC, "memcpy"))


def labels(tid: int, state: str = "running") -> tuple[tuple[str, str | int], ...]:
    return ("pid", 7), ("process", "app"), ("state", state), ("thread", "w"), ("tid", tid)


def test_samples_of_a_thread_by_place() -> None:
    def sample(stack: Stack, weight: int, number: int, tid: int, state: str = "running") -> Sample:
        return Sample(stack, (weight, number), labels(tid, state))

    profile = Profile([ValueType("on-cpu", "nanoseconds"), ValueType("samples", "count")])
    profile.samples = [
        sample(POLL, 5, 2, 8),
        sample(POLL, 6, 1, 8),
        sample(COPY, 7, 3, 9),
        sample(COPY, 1, 0, 8, "idle"),
    ]
    threads: dict[tuple[int, int], ThreadTimes] = {}
    runs = add_up_runs(profile, threads)
    assert set(runs) == {(7, 8), (7, 9)} == set(threads)
    ((asks, total),) = runs[7, 8].items()
    assert (asks.call, asks.gpu, asks.site.in_kernel, total.weight, total.samples) == ("poll", "", True, 11, 3)
    ((copies, total),) = runs[7, 9].items()
    assert (copies.call, copies.site.in_kernel, total.weight) == ("memcpy", False, 7)
