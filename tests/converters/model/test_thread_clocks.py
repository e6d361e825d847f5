from __future__ import annotations

import random

import numpy as np
import pytest
from scheduling_traces import Machine, rows, run
from stallscope.converters.model import states
from stallscope.converters.model.scheduling import BLOCKED, OPEN, SWITCH, THREAD, Scheduling
from stallscope.converters.model.thread_clocks import ThreadClocks


def spent(machine: Machine, row: int, until: int, chosen: frozenset[str]) -> int:
    """ns in these states, by what the machine wrote down."""
    known = [*machine.truth[row], ("", until)]
    return sum(
        min(end, until) - begin
        for (state, begin), (_, end) in zip(known, known[1:], strict=False)
        if state in chosen and begin < until
    )


@pytest.mark.parametrize("seed", range(6))
def test_what_threads_of_a_machine_did(seed: int) -> None:
    machine = run(3_000, seed=seed)
    scheduling = machine.scheduling()
    clocks = ThreadClocks(scheduling)
    choice = random.Random(seed)
    seen = 0
    for row in range(len(scheduling.threads)):
        if len(machine.truth[row]) < 4:
            continue
        seen += 1
        times = sorted(choice.randrange(machine.now) for _ in range(20))
        running = [spent(machine, row, time, frozenset({states.RUNNING})) for time in times]
        blocked = [spent(machine, row, time, frozenset(states.BLOCKED) - {states.BY_BITS[0x10]}) for time in times]
        assert clocks.on_cpu(row, np.array(times)).tolist() == running
        assert clocks.blocked(row, np.array(times)).tolist() == blocked
    assert seen > 10


def test_a_thread_that_never_left_its_core() -> None:
    scheduling = Scheduling(100, 10, threads=rows(THREAD, tid=[7], tgid=[7]))
    assert ThreadClocks(scheduling).on_cpu(0, np.array([10, 60, 100])).tolist() == [0, 50, 90]
    assert ThreadClocks(scheduling).blocked(0, np.array([10, 100])).tolist() == [0, 0]


def test_waits_that_began_before_and_go_on_after() -> None:
    scheduling = Scheduling(
        100,
        switches=rows(SWITCH, time=[30, 70], prev_tid=[0, 7], next_tid=[7, 0], prev_state=[0, 1]),
        threads=rows(THREAD, tid=[7], tgid=[7]),
        blocked=rows(BLOCKED, begin=[-1, 70], woken=[20, 0], end=[30, OPEN], tid=[7, 7], state=[1, 1]),
    )
    clocks, at = ThreadClocks(scheduling), np.array([20, 30, 70, 100])
    assert clocks.blocked(0, at).tolist() == [20, 20, 20, 50]
    assert clocks.on_cpu(0, at).tolist() == [0, 0, 40, 40]
