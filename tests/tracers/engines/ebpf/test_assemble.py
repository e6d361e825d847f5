"""Profiles of hand-made captures; names come from a table instead of files."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from captures import DISK, END, SLEEP, STOPPED, key, labels, profile, remaining, states, thread
from stallscope.converters.model import Frame, Sample, ThreadTimes
from stallscope.converters.model.processes import CpuLimit, ProcessTimes
from stallscope.tracers.base.conditions import Condition
from stallscope.tracers.engines.ebpf.measures.offcpu import OffCpuCollector
from stallscope.tracers.kernel.records import BLOCKED, NEW, ON_CPU, PREEMPTED, RUNNABLE, ThreadRecord, WaitSum
from stallscope.tracers.measures.offcpu import OffCpu

pytestmark = pytest.mark.usefixtures("named_by_a_table")


def test_blocked_and_runnable_part() -> None:
    made = profile(waits=[(key(user=5), WaitSum(4, 100, 10, 40, 8, 1, 3))], stacks={5: (2, 1)})
    stack = (Frame("main"), Frame("work"))
    assert made.samples == [
        Sample(stack, (100, 4, 10, 40), labels("interruptible")),
        Sample(stack, (8, 4, 1, 3), labels("runnable-woken")),
    ]
    assert made.total("off-cpu") == 108
    assert [value.name for value in made.value_types] == ["off-cpu", "count", "min", "max"]


def test_wait_that_ran_at_once_has_no_runnable_part() -> None:
    made = profile(waits=[(key(DISK), WaitSum(1, 100, 100, 100, 0, 0, 0))])
    assert states(made) == [("uninterruptible", (100, 1, 100, 100), False)]


@pytest.mark.parametrize(("state", "label"), [(PREEMPTED, "runnable-preempted"), (NEW, "runnable-woken")])
def test_what_was_never_blocked(state: int, label: str) -> None:
    made = profile(waits=[(key(state), WaitSum(3, 0, 0, 0, 60, 10, 30))])
    assert states(made) == [(label, (60, 3, 10, 30), False)]


def test_sum_that_the_thread_still_held() -> None:
    held = WaitSum(2, 20, 5, 15, 4, 1, 3)
    waits = [(key(user=5), WaitSum(1, 10, 10, 10, 2, 2, 2))]
    there = remaining(sum_key=key(user=5), sum=held)
    made = profile(waits=waits, threads=[there], stacks={5: (1,)})
    assert [s.values for s in made.samples] == [(30, 3, 5, 15), (6, 3, 1, 3)]
    other = remaining(sum_key=key(user=6), sum=held)
    assert len(profile(waits=waits, threads=[other], stacks={5: (1,), 6: (2,)}).samples) == 4
    left = ThreadRecord(END, b"x", thread(sum_key=key(user=5), sum=held), exited=True)  # it wrote its sum on leaving
    assert [s.values[0] for s in profile(waits=waits, threads=[left]).samples] == [10, 2]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"phase": BLOCKED, "key": key(SLEEP), "out": 4000}, [("interruptible", (6000, 1, 6000, 6000), True)]),
        ({"phase": BLOCKED, "key": key(STOPPED), "out": 4000}, [("stopped", (6000, 1, 6000, 6000), True)]),
        ({"phase": RUNNABLE, "key": key(SLEEP), "out": 4000, "woken": 9000},
         [("interruptible", (5000, 1, 5000, 5000), True), ("runnable-woken", (1000, 1, 1000, 1000), True)]),
        ({"phase": RUNNABLE, "key": key(PREEMPTED), "out": 4000, "woken": 1},
         [("runnable-preempted", (6000, 1, 6000, 6000), True)]),
        ({"phase": RUNNABLE, "key": key(NEW), "out": 9999}, [("runnable-woken", (1, 1, 1, 1), True)]),
        ({"phase": ON_CPU, "key": key(SLEEP), "out": 4000}, []),
        ({"phase": BLOCKED, "key": key(SLEEP), "out": 0}, []),
        ({"phase": BLOCKED, "key": key(SLEEP), "out": END + 5}, []),  # a switch that raced with the end
    ],
)  # fmt: skip
def test_open_interval(given: dict[str, Any], expected: list[Any]) -> None:
    assert states(profile(threads=[remaining(**given)])) == expected
    gone = ThreadRecord(END, b"x", thread(**given), exited=True)
    assert states(profile(threads=[gone])) == []


@pytest.mark.parametrize(
    ("chosen", "count"),
    [
        (OffCpuCollector(OffCpu(6000, 6000)), 1),
        (OffCpuCollector(OffCpu(shortest=6001)), 0),
        (OffCpuCollector(OffCpu(longest=5999)), 0),
        (OffCpuCollector(OffCpu(1, 9999)), 1),
    ],
)
def test_open_interval_must_have_the_wanted_length(chosen: OffCpuCollector, count: int) -> None:
    there = remaining(phase=BLOCKED, key=key(SLEEP), out=4000)
    assert len(profile(chosen, threads=[there]).samples) == count


def test_only_the_chosen_states() -> None:
    waits = [
        (key(SLEEP), WaitSum(1, 100, 100, 100, 8, 8, 8)),
        (key(DISK), WaitSum(1, 200, 200, 200, 9, 9, 9)),
        (key(PREEMPTED), WaitSum(1, 0, 0, 0, 7, 7, 7)),
    ]
    there = remaining(phase=BLOCKED, key=key(DISK), out=9000)

    def total(*wanted: str) -> int:
        return profile(OffCpuCollector(OffCpu(states=frozenset(wanted))), waits=waits, threads=[there]).total("off-cpu")

    assert total("uninterruptible") == 1200
    assert total("runnable-woken") == 17
    assert total("runnable-preempted", "interruptible") == 107
    assert total("idle") == 0


@pytest.mark.parametrize(
    ("given", "exited", "expected"),
    [
        ({"phase": ON_CPU}, False, (3000 + 5, 6, {"interruptible": 10, "uninterruptible": 20})),
        ({"phase": BLOCKED, "key": key(DISK)}, False, (5, 6, {"interruptible": 10, "uninterruptible": 3020})),
        ({"phase": BLOCKED, "key": key(STOPPED)}, False,
         (5, 6, {"interruptible": 10, "uninterruptible": 20, "stopped": 3000})),
        ({"phase": RUNNABLE, "key": key(SLEEP)}, False, (5, 3006, {"interruptible": 10, "uninterruptible": 20})),
        ({"phase": ON_CPU}, True, (5, 6, {"interruptible": 10, "uninterruptible": 20})),
    ],
)  # fmt: skip
def test_times_of_a_thread(given: dict[str, Any], exited: bool, expected: tuple[int, int, dict[str, int]]) -> None:
    blocked = (0, 10, 20, 0, 0, 0, 0, 0)
    counted = thread(start=2000, since=7000, on_cpu=5, runnable=6, blocked=blocked, switches=4, **given)
    made = profile(threads=[ThreadRecord(END, b"w", counted, exited=exited)])
    assert made.threads == [ThreadTimes(7, "[unknown]", 8, "w", END - 2000, *expected, 4, exited)]


def test_processes_and_what_their_threads_waited_for_a_core() -> None:
    waits = tuple(range(24))
    still = {"phase": RUNNABLE, "since": END - 3000}
    gone = thread(tid=1, latencies=waits, creator=9, **still)  # what it was in at its end is over
    threads = [
        ThreadRecord(END, b"a", gone, exited=True),
        remaining(b"b", tid=2, latencies=waits, **still),
        remaining(b"c", tid=3, phase=BLOCKED, since=END - 3000),
        remaining(b"d", tid=30, key=key(tid=30, tgid=30)),
    ]
    condition = Condition("0-3", (CpuLimit("/x", 1, 2),), {"OMP_NUM_THREADS": "4"}, ranks={"rank": "3"})
    made = profile(threads=threads, conditions={7: condition})
    counts = [2 * each for each in waits]
    counts[2] += 1  # 2,048 to 4,095 ns
    assert made.processes == [
        ProcessTimes(
            7, "[unknown]", tuple(counts), "0-3", condition.limits, condition.environment, ranks=condition.ranks
        ),
        ProcessTimes(30, "d", (0,) * 24),
    ]
    assert [times.creator for times in made.threads] == [9, 0, 0, 0]


def test_exited_and_remaining_threads_are_listed() -> None:
    threads = [ThreadRecord(END, b"a", thread(tid=1), exited=True), remaining(b"b", tid=2)]
    assert [(t.thread, t.exited) for t in profile(threads=threads).threads] == [("a", True), ("b", False)]


def test_when_and_where() -> None:
    made = profile(wall_ns=1_700_000_000_000_000_000)
    assert (made.start_ns, made.duration_ns, made.host) == (1_700_000_000_000_000_000, 9000, socket.gethostname())
