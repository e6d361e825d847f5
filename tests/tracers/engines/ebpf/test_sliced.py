"""Slices in the profile of a capture made by hand."""

from __future__ import annotations

from captures import END, capture, key, thread
from stallscope.tracers.engines.ebpf.assemble import profile_of
from stallscope.tracers.engines.ebpf.measures.slices import Slices
from stallscope.tracers.kernel.records import ON_CPU, STATES, ThreadRecord, WaitSum

SLEEP = STATES.index("uninterruptible")
WHOLE = END - 1000


def test_slices_have_the_names_and_stacks_of_rows() -> None:
    half = WHOLE // 2
    record = ThreadRecord(END, b"worker", thread(start=1000, since=END, on_cpu=WHOLE - 60, phase=ON_CPU), exited=False)
    at = key(SLEEP, kernel=5)
    made = capture(waits=[(at, WaitSum(2, 60, 30, 30, 0, 0, 0))], threads=[record], stacks={5: (4096,)})
    made.slices = Slices(half, 2, {(at, "uninterruptible"): [20, 40]}, {})
    (found,) = profile_of(made, "Off-CPU time").slices
    assert (found.pid, found.tid, found.thread, found.first, found.length) == (7, 8, "worker", 0, half)
    assert [sum(times) for times in zip(*(each.times for each in found.spent), strict=True)] == [half, WHOLE - half]
    assert {each.kind: each.times for each in found.spent if each.kind != "cpu"} == {"held": (20, 40)}


def test_threads_that_were_added_up() -> None:
    of = thread(tid=0, key=key(tid=0, life=9), on_cpu=60, first=9)
    record = ThreadRecord(100, b"job", of, exited=True, number=3)
    made = capture(threads=[record])
    made.slices = Slices(WHOLE // 2, 2, {}, {9: [70, 30]})
    (found,) = profile_of(made, "Off-CPU time").slices
    assert {each.kind: each.times for each in found.spent} == {"cpu": (42, 18), "unclear": (28, 12)}


def test_waits_of_an_unknown_thread_are_left_out() -> None:
    made = capture(threads=[])
    made.slices = Slices(WHOLE, 1, {(key(SLEEP), "uninterruptible"): [5]}, {})
    assert profile_of(made, "Off-CPU time").slices == []


def test_no_slices() -> None:
    assert profile_of(capture(), "Off-CPU time").slices == []
