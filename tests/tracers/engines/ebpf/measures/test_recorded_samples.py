"""Samples one by one: whose they are, and where. In rings: test_recorder.py."""

from __future__ import annotations

from typing import Any

import numpy as np
from scheduling_traces import rows
from stallscope.converters.model.scheduling import NO_STACK, SAMPLE, THREAD
from stallscope.tracers.engines.ebpf.measures.protocol import Ended
from stallscope.tracers.engines.ebpf.measures.recorded_samples import SAMPLE_EVENT, sampled_in
from stallscope.tracers.engines.rows import Row
from stallscope.tracers.kernel.records import RUNNING, Origin

THREADS = rows(THREAD, tid=[7, 8, 9], tgid=[1, 1, 2])
NUMBERS = np.array([1, 1, 2], np.int32)


def sampled(lives: dict[int, int] | None = None, **columns: Any) -> tuple[list[tuple[int, ...]], list[Row]]:
    where = [Row(Origin(99, 0, 0, 0, 1, 0, 1), "", ())]
    found = sampled_in(
        rows(SAMPLE_EVENT, **columns), THREADS, NUMBERS, where, Ended(0, 9, (), alike=lambda: lives or {})
    )
    assert found.dtype == SAMPLE
    return found.tolist(), where[1:]


def test_equal_stacks_of_a_process_are_one_place() -> None:
    found, where = sampled(time=[1, 2, 3, 4], tid=[7, 8, 9, 7], ustack=[5, 5, 5, 5], kstack=[0, 0, 0, 6])
    places = {(row.origin.ustack, row.origin.kstack, row.origin.tgid): i + 1 for i, row in enumerate(where)}
    assert [row[2] for row in found] == [places[key] for key in [(5, 0, 1), (5, 0, 1), (5, 0, 2), (5, 6, 1)]]
    assert {row.origin.state for row in where} == {RUNNING}
    assert [row[:2] for row in found] == [(1, 7), (2, 8), (3, 9), (4, 7)]


def test_programs_of_one_process_are_told_apart() -> None:
    """Programs are told apart after an exec; but not those of threads in one address space."""
    found, where = sampled({20: 20, 21: 20, 22: 22}, time=[1, 2, 3], tid=[7] * 3, life=[20, 21, 22], ustack=[5] * 3)
    assert len(where) == 2
    assert found[0][2] == found[1][2] != found[2][2]


def test_samples_without_a_stack_and_of_unknown_threads() -> None:
    found, where = sampled(time=[1, 2], tid=[7, 10], ustack=[0, 5])
    assert found == [(1, 7, NO_STACK)]
    assert where == []
    assert sampled(time=[], tid=[]) == ([], [])
