"""Counts of locks that measures have, without our own ones."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from stallscope.tracers.engines.ebpf.lock_rows import lock_rows
from stallscope.tracers.engines.ebpf.measures.protocol import GilWait, LockRows, LockSum, LockWait
from stallscope.tracers.engines.rows import Row
from stallscope.tracers.kernel.records import STATES, Origin


def wait(tgid: int) -> LockWait:
    return LockWait(Row(Origin(1, 1, 0, 8, tgid, 8, 0), STATES[0], ()), 0x5000, 0, LockSum(50, 2, 50))


def test_our_own_waits_are_left_out() -> None:
    lives: Any = SimpleNamespace(rows=list)
    waits = [wait(7), wait(20)]
    of_python = [GilWait(each.row, 0, each.sum) for each in waits]
    of_locks: Any = SimpleNamespace(locks=lambda ended: LockRows(waits), gil=lambda ended: ())
    of_gil: Any = SimpleNamespace(locks=lambda ended: None, gil=lambda ended: of_python)
    ended: Any = None
    found = lock_rows([of_locks, of_gil], ended, lives, {20})
    assert found is not None
    assert [each.row.origin.tgid for each in (*found.waits, *found.gil)] == [7, 7]
    alone = lock_rows([of_gil], ended, lives, set())
    assert alone is not None
    assert (len(alone.waits), len(alone.gil)) == (0, 2)
    of_python.clear()
    assert lock_rows([of_gil], ended, lives, set()) is None
