"""On-CPU samples in the summary: added up, told and shown."""

from __future__ import annotations

import io
import json

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import Frame, Module, Profile, Sample, Stack, ThreadTimes, ValueType
from stallscope.converters.summary.render import render
from stallscope.converters.summary.summarize import summarize
from summary_profiles import EXE, LIBC, MS, SECOND, TOPK, user

PYTHON = Module("/usr/bin/python3.11")
SPIN, SORT = user(EXE, "main", "spin"), user(EXE, "main", "sort")
READ = (*user(EXE, "main"), *user(LIBC, "read"))


def labels(tid: int, state: str = "running") -> tuple[tuple[str, str | int], ...]:
    return ("pid", 7), ("process", "train"), ("state", state), ("thread", f"w-{tid}"), ("tid", tid)


def on_cpu(*samples: tuple[int, Stack, int, int], event: str = "on-cpu", unit: str = "nanoseconds") -> Profile:
    """(tid, stack, weight, samples); threads of 10 s."""
    profile = Profile([ValueType(event, unit), ValueType("samples", "count")], duration_ns=10 * SECOND)
    times: dict[int, int] = {}
    for tid, stack, weight, number in samples:
        profile.samples.append(Sample(stack, (weight, number), labels(tid)))
        times[tid] = times.get(tid, 0) + (weight if unit == "nanoseconds" else SECOND)
    for tid, time in times.items():
        rest = {"interruptible": 10 * SECOND - time}
        profile.threads.append(ThreadTimes(7, "train", tid, f"w-{tid}", 10 * SECOND, time, 0, rest))
    return profile


def shown(profile: Profile, width: int = 140) -> str:
    out = io.StringIO()
    render(summarize(profile), out, width=width, color=False)
    return out.getvalue()


def test_equal_work_of_all_threads_is_one() -> None:
    summary = summarize(on_cpu((8, SPIN, 3 * SECOND, 300), (9, SPIN, 2 * SECOND, 200), (8, SORT, SECOND, 100)))
    assert [(each.frames, each.weight, each.samples, each.threads) for each in summary.running] == [
        (("main", "spin"), 5 * SECOND, 500, 2),
        (("main", "sort"), SECOND, 100, 1),
    ]
    assert summary.running[0].threads_weight == 6 * SECOND
    assert summary.running[1].threads_weight == 4 * SECOND
    assert summary.answer == (
        "83.3 % of the time on cores of the 2 w-* threads of train is in main → spin (500 samples).",
        "30.0 % of the time of both threads is on a core: trace-wall or trace-offcpu tells where the rest goes.",
    )


def test_what_uses_its_core_is_not_sent_elsewhere() -> None:
    _, rest = summarize(on_cpu((8, SPIN, 9 * SECOND, 900))).answer
    assert rest == "90.0 % of the time of the thread is on a core, 0.0 % is waiting for one."


def test_shares_of_a_table_add_up() -> None:
    text = shown(on_cpu((8, SPIN, 3 * SECOND, 300), (9, SORT, 1 * SECOND, 100), (8, READ, 999 * MS, 99)))
    rows = [line.split() for line in text.splitlines() if line.startswith(("3.", "1.", "0."))]
    assert [row[:4] for row in rows] == [
        ["3.000", "s", "60.0", "%"],
        ["1.000", "s", "20.0", "%"],
        ["0.999", "s", "20.0", "%"],
    ]
    assert "What runs (Share: of all time on cores; after a name: on cores)" in text
    assert "train/w-* 8 75.0 %" in text


def test_one_or_two_samples_tell_no_share() -> None:
    text = shown(on_cpu((8, SPIN, 3 * SECOND, 300), (8, SORT, 20 * MS, 2), (8, READ, 10 * MS, 1)))
    assert "main → sort" not in text
    assert "2 more places" in text
    assert "main → sort" in shown(on_cpu((8, SORT, 20 * MS, 2)))


def test_other_events_are_counted() -> None:
    profile = on_cpu((8, SPIN, 123_456, 30), (8, SORT, 1_000, 2), event="cache-misses", unit="count")
    summary = summarize(profile)
    told = "About 99 % of the cache-misses of the w-* thread of train is in main → spin (30 samples)."
    assert summary.answer[0] == told
    text = shown(profile)
    assert "123,456" in text
    assert "Share: of all cache-misses" in text
    assert json.loads(json.dumps(summary.to_json()))["running_value"] == {"name": "cache-misses", "unit": "count"}


def test_waits_and_work_in_one_profile() -> None:
    columns = [ValueType("wall", "nanoseconds"), ValueType("count", "count"), ValueType("min", "nanoseconds", "min")]
    profile = Profile([*columns, ValueType("max", "nanoseconds", "max"), ValueType("samples", "count")])
    profile.samples = [
        Sample(TOPK, (6 * SECOND, 10, 1, SECOND, 0), labels(8, "uninterruptible")),
        Sample(SPIN, (4 * SECOND, 0, 0, 0, 400), labels(8)),
    ]
    times = ThreadTimes(7, "train", 8, "w-8", 10 * SECOND, 4 * SECOND, 0, {"uninterruptible": 6 * SECOND})
    profile.threads.append(times)
    summary = summarize(profile)
    assert [wait.time for wait in summary.waits] == [6 * SECOND]
    assert [work.weight for work in summary.running] == [4 * SECOND]
    assert summary.answer[0].startswith("60.0 % of the time of the w-* thread of train is blocked in topk")
    text = shown(profile)
    assert text.index("What runs") < text.index("Where (Share")
    # One base for both tables.
    assert "What runs (Share: of all threads' time; after a name: on cores)" in text
    assert "\n4.00 s  40.0 %" in text
    json_ = summary.to_json()
    assert json_["running"][0]["frames"] == ["main", "spin"]
    assert json_["running"][0]["who"] == json_["waits"][0]["who"]
    profile.samples[1] = Sample(SPIN, (4 * SECOND, 0, 0, 0, 400), labels(8))
    times.on_cpu, times.blocked = 9 * SECOND, {"uninterruptible": SECOND}
    profile.samples[0] = Sample(TOPK, (SECOND, 10, 1, SECOND, 0), labels(8, "uninterruptible"))
    busy, work = summarize(profile).answer
    assert busy == (
        "90.0 % of the time of the w-* thread of train is on a core, 0.0 % is waiting for one, most often in "
        "main → spin."
    )
    assert work == "100.0 % of the time on cores of the w-* thread of train is in main → spin (400 samples)."


def test_no_sample_at_all() -> None:
    assert summarize(on_cpu()).answer == ("No thread was seen.",)
    profile = on_cpu((8, SPIN, 0, 0))
    profile.samples.clear()
    assert summarize(profile).answer[0] == "No sample found a thread at work."


def test_what_was_not_sampled_is_not_work() -> None:
    profile = on_cpu((8, (), SECOND, 0))
    assert summarize(profile).answer[0] == "No sample found a thread at work."


def test_neither_of_both() -> None:
    with pytest.raises(StallscopeError, match="neither of off-CPU time nor of on-CPU samples") as caught:
        summarize(Profile([ValueType("cpu", "nanoseconds")]))
    assert "trace-wall" in caught.value.remedy


def test_the_sentence_adds_up_the_lines_of_a_python_function() -> None:
    def line(number: int) -> Stack:
        return Frame("load", "python", file="t.py", line=3), Frame("tokenise", "python", file="t.py", line=number)

    hashed = (*line(9), *user(PYTHON, "builtin_hash"))
    profile = on_cpu((8, line(8), 2 * SECOND, 200), (8, hashed, 6 * SECOND, 600), (8, SORT, 2 * SECOND, 200))
    told = summarize(profile).answer[0]
    assert told.endswith(" is in load → tokenise (800 samples; 75.0 % of it in builtin_hash).")
    assert told.startswith("80.0 % of the time on cores of ")
