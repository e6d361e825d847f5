"""Steps of threads whose events are written down by hand. With real ones: tests/live/test_steps.py."""

from __future__ import annotations

import json

from scheduling_traces import rows
from stallscope.converters.model import Frame, Profile
from stallscope.converters.model.scheduling import CALL, OPEN, THREAD, CallName, Scheduling
from stallscope.converters.summary.steps import Steps, sentence, steps_of
from stallscope.converters.summary.summarize import summarize
from step_traces import BATCH, LOOP, STEP, recorded
from summary_profiles import VALUE_TYPES


def only(scheduling: Scheduling) -> Steps:
    (found,) = steps_of(scheduling)
    return found


def test_times_of_steps_and_of_what_is_between() -> None:
    found = only(recorded())
    assert (found.name, found.process, found.pid, found.thread, found.tid) == (STEP.name, "python3", 5, "worker", 7)
    steps, between = found.steps, found.between
    assert (steps.count, steps.wall, steps.mean) == (3, 320, 106)
    assert (steps.on_cpu, steps.blocked, steps.runnable) == (180, 110, 30)
    assert (between.count, between.wall, between.on_cpu, between.blocked, between.runnable) == (2, 80, 30, 40, 10)
    assert [(wait.site.frames[-2:], wait.time, wait.number) for wait in steps.waits] == [
        (("synchronise", "read"), 110, 3)
    ]
    assert [(wait.site.frames[-2:], wait.time, wait.number) for wait in between.waits] == [
        (("next_batch", "read"), 40, 2)
    ]
    assert (found.median, found.max, found.not_whole) == (100, 150, 0)
    assert found.per_second == 2e9 / 330


def test_the_slowest_first() -> None:
    second, first, third = only(recorded()).slowest
    assert (second.number, second.begin, second.before) == (2, 250, 50)
    assert (second.spent.wall, second.spent.on_cpu, second.spent.blocked) == (150, 90, 60)
    assert (first.number, first.before, first.spent.blocked, first.spent.runnable) == (1, None, 40, 10)
    assert third.number == 3


def test_a_call_inside_another_one_is_its_part() -> None:
    calls = rows(CALL, begin=[100, 120, 130, 250], end=[200, 190, 140, 400], tid=[7] * 4, level=[0, 1, 2, 0])
    found = only(recorded(calls=calls))
    assert (found.steps.count, found.steps.wall, found.between.wall) == (2, 250, 50)


def test_steps_that_are_not_whole_are_told() -> None:
    assert only(recorded([*LOOP, (550, OPEN)])).not_whole == 1
    assert only(recorded([*LOOP, (550, OPEN)])).steps.count == 3
    late = only(recorded(begin=150))
    assert (late.not_whole, late.steps.count, late.steps.wall) == (1, 2, 220)
    only_open = only(recorded([(550, OPEN)]))
    assert (only_open.steps.count, only_open.not_whole, only_open.per_second) == (0, 1, None)
    assert sentence([only_open]) == ""


def test_other_calls_are_no_steps() -> None:
    assert steps_of(recorded(call_names=[CallName("ioctl", "ioctl")])) == ()
    assert steps_of(recorded([])) == ()
    assert sentence(()) == ""


def test_threads_and_functions_apart() -> None:
    calls = rows(CALL, begin=[100, 250, 120], end=[200, 400, 130], tid=[7, 7, 9], name=[0, 1, 0])
    threads = rows(THREAD, tid=[7, 9], tgid=[5, 5], name=[1, 1])
    found = steps_of(recorded(calls=calls, threads=threads, call_names=[STEP, CallName("lib.so:other", "step")]))
    assert [(each.name, each.tid, each.steps.wall) for each in found] == [
        ("lib.so:other", 7, 150),
        (STEP.name, 7, 100),
        (STEP.name, 9, 10),
    ]


def test_json_and_the_sentence() -> None:
    found = only(recorded())
    told = found.to_json()
    json.dumps(told)
    assert told["steps"]["runnable_ns"] == 30
    assert told["between_share"] == 0.2
    assert told["slowest"][0]["number"] == 2
    assert sentence([found]) == (
        "3 steps of demo:train_step take 106 ns in the mean in thread 7 of python3: 56.2 % of it on a core, "
        "34.4 % blocked (34.4 % in train_step → synchronise → read); 40 ns are between two steps, "
        "20.0 % of the loop."
    )


def test_the_summary_has_them() -> None:
    summary = summarize(Profile(VALUE_TYPES, duration_ns=600, scheduling=recorded()))
    assert summary.answer[-1].startswith("3 steps of demo:train_step take 106 ns")
    (told,) = summary.to_json()["steps"]
    assert told["steps"]["count"] == 3
    assert "steps" not in summarize(Profile(VALUE_TYPES, duration_ns=600)).to_json()


def test_hostile_names_stay_data() -> None:
    hostile = "\x1b[2J\udcff"
    told = only(recorded(names=[hostile, hostile], stacks=[(Frame(hostile),), BATCH])).to_json()
    json.dumps(told, ensure_ascii=False).encode()
