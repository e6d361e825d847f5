"""Steps of threads whose events are written down by hand. With real ones: tests/live/test_steps.py."""

from __future__ import annotations

from dataclasses import replace

import pytest
from period_traces import BATCH as BATCHES
from period_traces import PUT, Recording, Run, Wait, loop, steady
from scheduling_traces import rows
from stallscope.converters.model import Profile, Stack
from stallscope.converters.model.scheduling import CALL, NO_STACK, OPEN, SAMPLE, THREAD, CallName, Scheduling
from stallscope.converters.model.steps import Steps
from stallscope.converters.summary.step_sentences import sentences
from stallscope.converters.summary.steps import steps_of
from stallscope.converters.summary.summarize import summarize
from step_traces import BATCH, LOOP, STEP, SYNC, recorded
from summary_profiles import EXE, MS, VALUE_TYPES, kernel, user


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


def test_what_runs_is_known_from_samples() -> None:
    """Samples in and between steps, of this thread, count; the others do not."""
    run: Stack = user(EXE, "main", "train_step", "multiply")
    call: Stack = (*run, *kernel("do_syscall_64", "__x64_sys_read", "copy_page"))
    times, tids = [99, 100, 199, 200, 240, 250, 260, 420, 430, 450], [7, 7, 7, 7, 7, 7, 8, 7, 7, 7]
    samples = rows(SAMPLE, time=times, tid=tids, stack=[2, 2, 2, 3, 3, 3, 2, 2, NO_STACK, 2])
    found = only(recorded(stacks=[SYNC, BATCH, run, call], samples=samples))
    assert found.steps.samples == 5
    assert [(each.frames[-1:], each.samples) for each in found.steps.ran] == [
        (("multiply",), 3),
        ((), 1),
        (("read",), 1),
    ]
    assert found.steps.estimated(3) == 180 * 3 // 5
    assert (found.between.samples, [each.samples for each in found.between.ran]) == (3, [2, 1])
    assert (only(recorded()).steps.samples, only(recorded()).steps.ran) == (0, ())
    assert only(recorded()).steps.estimated(0) == 0


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
    assert sentences([only_open]) == ()


def test_other_calls_are_no_steps() -> None:
    assert steps_of(recorded(call_names=[CallName("ioctl", "ioctl")])) == ()
    assert steps_of(recorded([])) == ()
    assert sentences(()) == ()


def test_threads_and_functions_apart() -> None:
    calls = rows(CALL, begin=[100, 250, 120], end=[200, 400, 130], tid=[7, 7, 9], name=[0, 1, 0])
    threads = rows(THREAD, tid=[7, 9], tgid=[5, 5], name=[1, 1])
    found = steps_of(recorded(calls=calls, threads=threads, call_names=[STEP, CallName("lib.so:other", "step")]))
    assert [(each.name, each.tid, each.steps.wall) for each in found] == [
        ("lib.so:other", 7, 150),
        (STEP.name, 7, 100),
        (STEP.name, 9, 10),
    ]


def test_slow_ones_are_a_group() -> None:
    """The last one has a wait for a core, of 30 of its 100 ns, and runs otherwise."""
    found = only(recorded([*((10 * i, 10 * i + 8) for i in range(13)), (200, 300)])).slow
    assert found
    assert (found.first, found.every, found.spent.count, found.others.count) == (14, None, 1, 13)
    assert (found.spent.wall, found.spent.blocked) == (100, 20)
    assert found.others.wall == 13 * 8


def test_the_summary_has_them() -> None:
    summary = summarize(Profile(VALUE_TYPES, duration_ns=600, steps=list(steps_of(recorded()))))
    assert summary.answer[0].startswith("3 steps of demo:train_step take 106 ns")
    (told,) = summary.to_json()["steps"]
    assert told["steps"]["count"] == 3
    assert "steps" not in summarize(Profile(VALUE_TYPES, duration_ns=600)).to_json()


def test_times_in_which_calls_were_not_seen_are_no_part_of_the_loop() -> None:
    gap = STEP._replace(unwatched=((5, 210, 240), (6, 410, 420)))
    found = only(recorded(call_names=[gap]))
    assert (found.steps.count, found.between.count, found.between.wall) == (3, 1, 30)
    assert found.per_second == 1e9 / 180
    assert [(each.number, each.before) for each in found.slowest if each.number < 3] == [(2, None), (1, None)]


def test_who_makes_the_batches_of_named_steps() -> None:
    """A step runs for 5 ms, and waits 5 ms for a batch that another thread makes in 8 ms."""
    made = Recording().thread(5, loop(steady(30), BATCHES))
    made.thread(6, [Run(8 * MS), Wait(PUT, 2 * MS, 5)] * 31)
    events = made.events()
    begins = [MS + 10 * MS * i for i in range(30)]
    calls = rows(CALL, begin=begins, end=[begin + 10 * MS for begin in begins], tid=[5] * 30)
    steps = only(replace(events, calls=calls, call_names=[STEP]))
    assert steps.p90 == 10 * MS
    assert steps.reader
    assert [maker.tid for maker in steps.reader.makers] == [6]
    assert steps.reader.work == pytest.approx(8 * MS, rel=0.05)
    other = Recording().thread(5, loop(steady(30), PUT)).thread(6, [Run(MS)]).events()
    assert only(replace(other, calls=calls, call_names=[STEP])).reader is None


def test_nine_in_ten_take_at_most() -> None:
    steps = only(recorded([(10 * i, 10 * i + (9 if i == 19 else 1 + i // 10)) for i in range(20)]))
    assert (steps.median, steps.max) == (1, 9)
    assert steps.p90 == 2
