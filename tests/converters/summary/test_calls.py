"""Sentences on calls, and calls in --json."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest
from next_steps import whom
from stallscope.converters.model import Frame, Profile, Sample, ThreadTimes, ValueType
from stallscope.converters.model.calls import BUCKETS, LEFT, WITHOUT_PROBE, CallTimes
from stallscope.converters.model.display import CallsView
from stallscope.converters.summary.calls import add_up_calls, answer_of_calls
from stallscope.converters.summary.render import render
from stallscope.converters.summary.summarize import summarize

MS = 1_000_000
KERNEL = tuple(Frame(name, "kernel") for name in ("entry_SYSCALL_64", "__x64_sys_ioctl", "down_read", "schedule"))


def call(name: str, pid: int, count: int, total: int, **more: int) -> CallTimes:
    latencies = (0,) * (BUCKETS - 1) + (count,)
    return CallTimes(name, "/dev/x", pid, "train", count, total, 1, 9 * MS, latencies=latencies, **more)


def profile(*calls: CallTimes) -> Profile:
    stack = (Frame("main"), Frame("A /dev/x", "api"), *KERNEL)
    samples = [
        Sample(stack, (5 * MS, 0), (("state", "uninterruptible"),)),
        Sample((*stack[:2],), (5 * MS, 3), (("state", "running"),)),
    ]
    values = [ValueType("ioctl", "nanoseconds"), ValueType("calls", "count")]
    return Profile(values, samples, calls=list(calls))


def test_calls_with_little_of_the_time_are_not_what_threads_wait_for() -> None:
    made = profile(call("A", 1, 3, 9 * MS, blocked=6 * MS))
    made.duration_ns = 100 * MS
    made.threads = [ThreadTimes(1, "train", 1, "train", 100 * MS, 100 * MS, 0, {})]
    summary = summarize(made)
    assert summary.answer[0] == "9.0 % of the threads' time is in calls."
    assert summary.next_step and summary.next_step.command == "trace-offcpu -p 1 -d 5"
    chosen = summarize(made, whom("-n train --children")).next_step
    assert chosen and chosen.command == "trace-offcpu -n train --children -d 5"
    made.threads = [ThreadTimes(1, "train", 1, "train", 50 * MS, 50 * MS, 0, {})]
    assert summarize(made).answer[0].startswith("100.0 % of the time in all calls")
    assert summarize(made).next_step is None


def test_processes_are_put_together_by_name_and_device() -> None:
    first, second = add_up_calls(profile(call("B", 1, 1, MS), call("A", 1, 2, MS), call("A", 2, 3, 3 * MS)))
    assert (first.total.name, first.total.count, [each.pid for each in first.each]) == ("A", 5, [2, 1])
    assert (first.blocked_in, first.blocked_there) == ("down_read", 5 * MS)
    assert (second.total.name, second.blocked_in) == ("B", "")


def test_the_answer_names_the_call_that_costs_most() -> None:
    summary = summarize(profile(call("B", 1, 1, MS), call("A", 1, 3, 9 * MS, blocked=6 * MS, runnable=MS)))
    assert summary.answer == (
        "90.0 % of the time in all calls is in A on /dev/x: 3 calls by 1 process, mean 3.00 ms, max 9.00 ms; "
        "22.2 % on a core, 66.7 % blocked (mostly in down_read), 11.1 % waiting for a core.",
    )


def test_calls_that_have_not_ended_count() -> None:
    made = add_up_calls(profile(CallTimes("A", "/dev/x", 1, "train", open_count=2, open_time=8 * MS)))
    (told,) = answer_of_calls(made)
    assert told.startswith("100")
    assert told.endswith("is in A on /dev/x: 2 calls by 1 process had not ended, 8.00 ms so far.")


def test_calls_that_mostly_fail_are_told() -> None:
    failing = call("A", 1, 200, 9 * MS)
    failing.errors.update({"EIO": 150, "EPERM": 5})
    assert answer_of_calls(add_up_calls(profile(failing)))[1:] == (
        "155 of 200 calls of A on /dev/x failed, mostly with EIO.",
    )
    failing.errors.update({"EIO": 50})
    assert len(answer_of_calls(add_up_calls(profile(failing)))) == 1


def test_no_more_calls_fail_than_there_were() -> None:
    jumped = call("A", 1, 1, 9 * MS)
    jumped.errors.update({LEFT: 500})  # not counted, and nobody knows whether they failed
    assert len(answer_of_calls(add_up_calls(profile(jumped)))) == 1
    jumped.errors.update({"EIO": 150})  # there was no room for the calls
    assert answer_of_calls(add_up_calls(profile(jumped)))[1:] == ("150 calls of A on /dev/x failed, mostly with EIO.",)


def test_without_calls() -> None:
    assert summarize(Profile([ValueType("ioctl", "nanoseconds"), ValueType("calls", "count")])).answer == (
        "No call was seen.",
    )


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (0, "No call was seen."),
        (1, "No call was seen; 1 function has no probe, so that its calls cannot be seen."),
        (3, "No call was seen; 3 functions have no probe, so that their calls cannot be seen."),
    ],
)
def test_that_no_call_could_be_seen_is_told(number: int, told: str) -> None:
    columns = [ValueType("ioctl", "nanoseconds"), ValueType("calls", "count")]
    assert summarize(Profile(columns, lost={WITHOUT_PROBE: number})).answer == (told,)


def test_json_has_an_entry_per_process() -> None:
    hostile = CallTimes("0x1", "/dev/\udcff", 7, "a\x1b[31m", 1, 10, 10, 10, 4, 1, (0,) * BUCKETS, {"EIO": 1})
    hostile.threads = [replace(hostile, tid=9, thread="\udcfe")]
    data = json.loads(json.dumps(summarize(profile(hostile, call("A", 2, 1, MS))).to_json()["calls"]))
    assert [entry["pid"] for entry in data] == [2, 7]
    figures = {
        "count": 1, "errors": {"EIO": 1}, "total_ns": 10, "self_ns": 10, "min_ns": 10, "mean_ns": 10, "p50_ns": None,
        "p99_ns": None, "max_ns": 10, "on_cpu_ns": 5, "blocked_ns": 4, "runnable_ns": 1, "open_count": 0, "open_ns": 0,
        "earlier_ns": 0,
    }  # fmt: skip
    threads = [{"thread": "\\xfe", "tid": 9, "tid_life": 1, **figures}]
    whose = {"name": "0x1", "device": "/dev/\\xff", "process": "a\x1b[31m", "pid": 7, "pid_life": 1}
    assert data[1] == {**whose, **figures, "locks": "", "threads": threads}


def test_processes_of_one_pid_are_told_apart() -> None:
    again = replace(call("A", 7, 1, 4 * MS), process="again", pid_life=2)
    ended = replace(call("A", 0, 9, 2 * MS), process="[ended]", pid_life=3)
    made = profile(call("A", 7, 3, MS), again, ended)
    made.threads = [ThreadTimes(0, "[ended]", 0, "x", MS, MS, 0, {}, pid_life=3, tid_life=3, count=5)]
    summary = summarize(made)
    assert "13 calls by up to 7 processes" in summary.answer[0]
    ids = [(each["process"], each["pid"], each["pid_life"]) for each in summary.to_json()["calls"]]
    assert ids == [("again", 7, 2), ("[ended]", None, 1), ("train", 7, 1)]
    text = io.StringIO()
    render(summary, text)
    assert "again (7 (second)), train (7), up to 5 more processes" in text.getvalue()


@pytest.mark.parametrize("number", [0, 1])
def test_a_call_of_no_time_is_no_division_by_zero(number: int) -> None:
    assert answer_of_calls(add_up_calls(profile(call("A", 1, number, 0, open_count=1 - number))))


def test_where_calls_come_from_is_shown_if_it_is_asked_for() -> None:
    work, step = Frame("work", "api"), tuple(map(Frame, ("a", "b", "c", "d", "st\x1bep")))
    found = CallTimes("work", "", 1, "train", 5, 5 * MS, library="libx.so")
    samples = [
        Sample((*step, work), (4 * MS, 4), (("state", "running"),)),
        Sample((step[0], work), (MS, 1), (("state", "running"),)),
        Sample((step[1], work, *KERNEL), (9 * MS, 0), (("state", "interruptible"),)),
    ]
    values = [ValueType("calls", "nanoseconds"), ValueType("calls", "count")]
    summary = summarize(Profile(values, samples, calls=[found]))
    assert summary.calls[0].places == ((("b", "c", "d", "st\x1bep"), 4), (("a",), 1))
    for places in (True, False):
        out = io.StringIO()
        render(replace(summary, view=CallsView(places=places)), out, width=200)
        assert ("4 of 5 from b → c → d → st\\x1bep\n" in out.getvalue()) is places
        assert ("1 of 5 from a\n" in out.getvalue()) is places


def test_as_many_histograms_as_are_asked_for() -> None:
    made = [replace(call(name, 1, 3, 9 * MS), device="", library="libx.so") for name in "abcd"]
    summary = summarize(Profile([ValueType("calls", "nanoseconds"), ValueType("calls", "count")], [], calls=made))
    for number, shown in ((None, 2), (0, 0), (3, 3), (9, 4)):
        out = io.StringIO()
        render(replace(summary, view=CallsView(histograms=number)), out)
        assert out.getvalue().count("distribution") == shown
