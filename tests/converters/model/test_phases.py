from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scheduling_traces import rows, run
from stallscope.converters.model import states
from stallscope.converters.model.phases import NOBODY, STATES, phases
from stallscope.converters.model.scheduling import (
    BLOCKED,
    CREATION,
    EXIT,
    LOSS,
    NEW,
    NO_STACK,
    OPEN,
    SWITCH,
    THREAD,
    WAKE_UP,
    Scheduling,
)


def told(scheduling: Scheduling) -> list[tuple[Any, ...]]:
    """(row, state, begin, end) of all phases."""
    return [(int(p["thread"]), STATES[p["state"]], int(p["begin"]), int(p["end"])) for p in phases(scheduling)]


@pytest.mark.parametrize("seed", range(6))
def test_phases_are_what_the_threads_did(seed: int) -> None:
    """Threads come and go, and get ids that were used before."""
    machine = run(2_500, seed=seed, cores=1 + seed, threads=8 + seed)
    scheduling = machine.scheduling()
    reused = len(scheduling.threads) - len(set(scheduling.threads["tid"].tolist()))
    assert reused > 0
    expected = []
    for row, did in sorted(machine.truth.items()):
        ends = [begin for _, begin in did[1:]] + [scheduling.end]
        expected += [(row, state, begin, end) for (state, begin), end in zip(did, ends, strict=True)]
    assert told(scheduling) == [each for each in expected if each[1] != states.ENDED]


def test_nothing_happened() -> None:
    assert told(Scheduling(10)) == []


def machine(**events: Any) -> Scheduling:
    return Scheduling(100, threads=rows(THREAD, tid=[1, 2], tgid=[1, 1]), **events)


def test_only_a_blocked_thread_is_woken() -> None:
    switches = rows(SWITCH, time=[10, 50], cpu=[0, 0], prev_tid=[1, 0], next_tid=[0, 1], prev_state=[1, 0])
    wakeups = rows(WAKE_UP, time=[5, 20, 30, 60], tid=[1, 1, 1, 1], waker=[2, 2, 3, 3])
    found = phases(machine(switches=switches, wakeups=wakeups))
    assert [(STATES[p["state"]], int(p["begin"]), int(p["waker"]), int(p["cpu"])) for p in found] == [
        ("running", 0, NOBODY, 0),
        ("interruptible", 10, NOBODY, -1),
        ("runnable-woken", 20, 2, -1),
        ("running", 50, NOBODY, 0),
    ]


def test_a_thread_that_is_first_seen_when_it_is_woken() -> None:
    assert told(machine(wakeups=rows(WAKE_UP, time=[30], tid=[2]))) == [(1, "runnable-woken", 30, 100)]


def test_a_thread_is_made_and_ends() -> None:
    threads = rows(THREAD, tid=[1, 2], tgid=[1, 1], begin=[0, 20])
    created = rows(CREATION, time=[20], tid=[2], tgid=[1], parent=[1])
    wakeups = rows(WAKE_UP, time=[21], tid=[2], waker=[1], flags=[NEW])
    switches = rows(SWITCH, time=[40, 60], cpu=[0, 0], prev_tid=[1, 2], next_tid=[2, 0], prev_state=[0x100, 0x10])
    exited = rows(EXIT, time=[55], tid=[2], tgid=[1])
    made = Scheduling(100, threads=threads, created=created, wakeups=wakeups, switches=switches, exited=exited)
    assert told(made) == [
        (0, "running", 0, 40),
        (0, "runnable-preempted", 40, 100),
        (1, "runnable-woken", 20, 40),
        (1, "running", 40, 60),
    ]
    assert phases(made)["waker"].tolist() == [NOBODY, NOBODY, 1, NOBODY]


def test_a_wait_that_is_open_at_the_beginning() -> None:
    blocked = rows(BLOCKED, begin=[-50], woken=[30], end=[40], tid=[2], stack=[4], state=[2])
    switches = rows(SWITCH, time=[40], cpu=[0], prev_tid=[0], next_tid=[2])
    made = machine(blocked=blocked, switches=switches, wakeups=rows(WAKE_UP, time=[30], tid=[2], waker=[1]))
    assert told(made) == [(1, "uninterruptible", 0, 30), (1, "runnable-woken", 30, 40), (1, "running", 40, 100)]
    assert phases(made)["stack"].tolist() == [4, 4, NO_STACK]


def test_a_wait_that_lasts_all_the_time() -> None:
    made = machine(blocked=rows(BLOCKED, begin=[-50], end=[OPEN], tid=[2], state=[1], stack=[NO_STACK]))
    assert told(made) == [(1, "interruptible", 0, 100)]


def test_waits_have_their_stacks() -> None:
    scheduling = run(2_000, seed=9).scheduling()
    found = phases(scheduling)
    blocked = np.isin(found["state"], [STATES.index(state) for state in states.BLOCKED])
    by_begin = {(int(s["tid"]), int(s["begin"])): int(s["stack"]) for s in scheduling.blocked}
    assert blocked.sum() > 500
    for phase in found[blocked]:
        tid = int(scheduling.threads["tid"][phase["thread"]])
        assert int(phase["stack"]) == by_begin[tid, int(phase["begin"])]
    assert (found["stack"][found["state"] == 0] == NO_STACK).all()


def test_what_is_not_known_is_called_so() -> None:
    switches = rows(SWITCH, time=[10, 40], cpu=[0, 0], prev_tid=[1, 1], next_tid=[1, 2], prev_state=[0x100, 1])
    losses = rows(LOSS, time=[40], count=[3], cpu=[0])
    assert ("unknown", 10, 40) in [each[1:] for each in told(machine(switches=switches, losses=losses))]


@pytest.mark.parametrize(
    ("bits", "state"), [(0, "runnable-preempted"), (0x82, "uninterruptible"), (0x8000, "unknown"), (0x40, "other")]
)
def test_states_by_the_kernels_bits(bits: int, state: str) -> None:
    switches = rows(SWITCH, time=[10], cpu=[0], prev_tid=[1], next_tid=[0], prev_state=[bits])
    assert told(machine(switches=switches))[1][1] == state
