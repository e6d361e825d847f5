"""Sums of calls: those of several readings, threads whose ids change, and bounds."""

from __future__ import annotations

import numpy as np
import pytest
from stallscope.converters.model.calls import BUCKETS
from stallscope.tracers.engines.ebpf.measures import call_sums, calls
from stallscope.tracers.engines.ebpf.measures.call_sums import OTHER, CallSums
from stallscope.tracers.engines.ebpf.measures.totals import Moved
from stallscope.tracers.kernel.records import RUNNING, Origin

THREAD = Origin(0, 0, 0, 8, 7, 1, RUNNING)


def key(tid: int, tgid: int, life: int, function: int) -> bytes:
    return calls._KEY.pack(tid, tgid, life, function)


def total(count: int, ns: int, least: int, most: int, left: int = 0) -> bytes:
    return calls._SUM.pack(count, ns, ns, 0, 0, least, most, left, 0, 0, 0, count, *[0] * (BUCKETS - 1))


def test_layouts_are_those_of_the_measure() -> None:
    assert call_sums.KEY.itemsize == calls._KEY.size
    assert call_sums.SUM.itemsize == calls._SUM.size
    assert call_sums.FAILURE.itemsize == calls._FAILURE.size


def test_readings_of_one_thread_are_added_up() -> None:
    sums = CallSums()
    sums.add(key(8, 7, 1, 0) + key(8, 7, 1, 5), total(2, 70, 20, 50) + total(1, 5, 5, 5))
    sums.add(key(8, 7, 1, 0), total(1, 10, 10, 10))
    found = {function: (origin, each) for origin, function, each in sums.sums()}
    assert {origin for origin, _ in found.values()} == {THREAD}
    assert found[0][1][:8] == (3, 80, 80, 0, 0, 10, 50, 0)
    assert found[0][1].latencies[0] == 3
    assert found[5][1].total == 5
    assert list(sums.sums()) == []


def test_calls_without_an_end_are_not_the_shortest() -> None:
    sums = CallSums()
    sums.add(key(8, 7, 1, 0), total(1, 50, 50, 50))
    sums.add(key(8, 7, 1, 0) + key(8, 7, 1, 1), total(0, 0, 0, 0, left=3) + total(0, 0, 0, 0, left=1))
    one, other = sorted(sums.sums(), key=lambda found: found[1])
    assert (one[2].min, one[2].left) == (50, 3)
    assert (other[2].min, other[2].left) == (0, 1)


@pytest.mark.parametrize("result", [-(1 << 31), -5, 2, 999, (1 << 31) - 1])
def test_errors_keep_their_number(result: int) -> None:
    sums = CallSums()
    data = calls._FAILURE.pack(8, 7, 1, 3, result, 0)
    for _ in range(2):
        sums.add_failures(data, (2).to_bytes(8, "little"))
    assert list(sums.failures()) == [(THREAD, 3, result, 4)]


def test_threads_whose_lives_are_added_up() -> None:
    """Two threads that ended become one."""
    sums = CallSums()
    sums.add(key(8, 7, 1, 0) + key(9, 7, 2, 0), total(1, 10, 10, 10) + total(1, 30, 30, 30))
    sums.add_failures(calls._FAILURE.pack(9, 7, 2, 0, 2, 0), (1).to_bytes(8, "little"))
    sums.move(Moved.of({1: (7 << 32, 99, False), 2: (7 << 32, 99, False)}))
    ((origin, function, each),) = sums.sums()
    assert (origin.tid, origin.tgid, origin.life, function) == (0, 7, 99, 0)
    assert (each.returned, each.total, each.min, each.max) == (2, 40, 10, 30)
    assert [(origin.life, number) for origin, _, _, number in sums.failures()] == [(99, 1)]


def test_rare_functions_are_added_up_beyond_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_sums, "_MOST", 8)
    sums = CallSums()
    for i in range(20):
        sums.add(key(8, 7, 1, i), total(1, 100 + i, 100 + i, 100 + i))
        sums.add_failures(calls._FAILURE.pack(8, 7, 1, i, 2, 0), (1).to_bytes(8, "little"))
    found = {function: each for _, function, each in sums.sums()}
    assert len(found) <= 9
    assert {OTHER, 19} <= found.keys()
    assert sum(each.returned for each in found.values()) == 20
    assert sum(each.total for each in found.values()) == sum(range(100, 120))
    failures = list(sums.failures())
    assert len(failures) <= 9
    assert sum(number for *_, number in failures) == 20
    assert {(function, code) for _, function, code, _ in failures} >= {(OTHER, 0)}


def test_the_next_interval_begins_empty() -> None:
    sums = CallSums()
    sums.add(key(8, 7, 1, 0), total(1, 10, 10, 10))
    sums.add_failures(calls._FAILURE.pack(8, 7, 1, 0, 2, 0), (1).to_bytes(8, "little"))
    sums.clear()
    assert not [*sums.sums(), *sums.failures()]
    assert np.array_equal(call_sums.KEY["who"].shape, (3,))
