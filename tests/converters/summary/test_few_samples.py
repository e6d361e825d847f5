"""Texts that are told if few samples show where the time goes."""

from __future__ import annotations

import pytest
from stallscope.converters.model import Frame, Profile, Sample, ThreadTimes, ValueType
from stallscope.converters.model.remarks import KernelHidden, SamplesLeftOut, WaitsHidden
from stallscope.converters.summary.summarize import summarize
from summary_profiles import EXE, MS, SECOND, user

NAP, LOOK = user(EXE, "main", "nap"), user(EXE, "main", "look")
HIDDEN = (Frame("[not sampled]", "other"),)
COLUMNS = "wall", "count", "min", "max", "samples"


def sampled(samples: int, *, counted: int = 0) -> Profile:
    """A thread of 10 s that naps for 8 s of them, by this number of samples, or by waits that were counted."""
    units = {"count": "count", "samples": "count"}
    profile = Profile([ValueType(name, units.get(name, "nanoseconds")) for name in COLUMNS], duration_ns=10 * SECOND)
    for stack, time, number in ((NAP, 8 * SECOND, samples), (LOOK, SECOND, samples // 4)):
        labels = ("pid", 7), ("process", "p"), ("state", "interruptible"), ("thread", "p"), ("tid", 7)
        profile.samples.append(Sample(stack, (time, counted, counted and MS, counted and SECOND, number), labels))
    profile.threads.append(ThreadTimes(7, "p", 7, "p", 10 * SECOND, SECOND, 0, {"interruptible": 9 * SECOND}))
    return profile


def test_waits_that_few_samples_show() -> None:
    few, nap, *_ = summarize(sampled(4)).answer
    assert few == (
        "There are only some 5 samples of each thread, so that shares of places are rough: trace for longer (-d) or "
        "sample more often (-F)."
    )
    assert nap == "About 80 % of the time of the main thread of p is blocked in main → nap (4 samples)."


def test_waits_that_many_samples_show() -> None:
    assert summarize(sampled(40)).answer[0].startswith("About 80 % of the time of the main thread of p is blocked")
    told = "80.0 % of the time of the main thread of p is blocked in main → nap."
    assert summarize(sampled(4000)).answer[0] == told


def test_waits_that_were_counted() -> None:
    """libbpf's and perf's: each wait is known, however few there are."""
    (told, *_) = summarize(sampled(0, counted=2)).answer
    assert (
        told
        == "80.0 % of the time of the main thread of p is blocked in main → nap (2 waits, mean 4.00 s, max 1.00 s)."
    )


def test_most_threads_were_never_sampled() -> None:
    profile = sampled(4)
    profile.threads += [ThreadTimes(7, "p", tid, "w", 10 * SECOND, 0, 0, {"other": 10 * SECOND}) for tid in (8, 9)]
    assert summarize(profile).answer[0].startswith("There are hardly any samples of most threads, so that")


@pytest.mark.parametrize(
    ("pids", "too_slow", "told"),
    [
        ((7, 8), False, "trace fewer processes (-p), trace for longer (-d), or sample more often (-F)"),
        ((7, 8), True, "trace fewer processes (-p) or trace for longer (-d)"),
        ((7, 7), True, "trace one thread (-t TID) or trace for longer (-d)"),
        ((7,), True, "trace for longer (-d)"),
    ],
)
def test_what_gives_more_samples(pids: tuple[int, ...], too_slow: bool, told: str) -> None:
    profile = sampled(4)
    profile.threads += [ThreadTimes(pid, "p", 70 + i, "w", 1, 0, 0, {"other": 1}) for i, pid in enumerate(pids[1:])]
    if too_slow:
        profile.comments.append(SamplesLeftOut(9))
    assert summarize(profile).answer[0].endswith(f"are rough: {told}.")


def on_cores(samples: int, hidden: int) -> Profile:
    """A thread that is on a core for a second; of ``hidden`` ns of it nobody knows where."""
    profile = Profile(
        [ValueType("on-cpu", "nanoseconds"), ValueType("samples", "count")],
        duration_ns=10 * SECOND,
        comments=[KernelHidden(2)],
    )
    labels = ("pid", 7), ("process", "p"), ("state", "running"), ("thread", "p"), ("tid", 7)
    profile.samples.append(Sample(LOOK, (SECOND - hidden, samples), labels))
    if hidden:
        profile.samples.append(Sample(HIDDEN, (hidden, 0), labels))
    profile.threads.append(ThreadTimes(7, "p", 7, "p", 10 * SECOND, SECOND, 0, {"interruptible": 9 * SECOND}))
    return profile


def test_what_one_sample_shows_is_not_told() -> None:
    hidden, _ = summarize(on_cores(1, 720 * MS)).answer
    assert hidden == (
        "72.0 % of the time on cores was not sampled: mostly in the kernel, which perf_event_paranoid=2 hides; 1 shows "
        "it. There are too few samples to tell what runs (1): trace for longer (-d), or sample more often (-F)."
    )
    few, _ = summarize(on_cores(9, 0)).answer
    assert few.startswith("There are too few samples to tell what runs (9)")
    slow = on_cores(9, 0)
    slow.comments.append(SamplesLeftOut(9))
    assert summarize(slow).answer[0].endswith("what runs (9): trace for longer (-d).")


def test_the_engine_names_who_tells_the_rest() -> None:
    profile = on_cores(100, 0)
    *_, rest = summarize(profile).answer
    assert rest.endswith(": trace-wall or trace-offcpu tells where the rest goes.")
    profile.comments.append(WaitsHidden("trace-wall --engine eu-stack"))
    *_, rest = summarize(profile).answer
    how = "trace-wall --engine eu-stack tells where the rest goes"
    assert rest == f"10.0 % of the time of the thread is on a core: {how}."


def test_shares_of_what_runs_are_rough_if_samples_are_few() -> None:
    profile = on_cores(10, 0)
    labels = profile.samples[0].labels
    profile.samples[0] = Sample(LOOK, (592 * MS, 10), labels)
    profile.samples.append(Sample(NAP, (408 * MS, 7), labels))
    told, _ = summarize(profile).answer
    assert told == "About 59 % of the time on cores of the main thread of p is in main → look (10 samples)."


def test_what_enough_samples_show_comes_after_what_is_hidden() -> None:
    told, _ = summarize(on_cores(100, 720 * MS)).answer
    first, rest = told.split(". ", 1)
    assert first.startswith("72.0 % of the time on cores was not sampled")
    assert rest == "About 28 % of the time on cores of the main thread of p is in main → look (100 samples)."
    told, _ = summarize(on_cores(100, 0)).answer
    assert told.startswith("100.0 % of the time on cores")
