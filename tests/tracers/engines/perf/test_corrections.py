"""Corrections where events were lost, by the kernel's count."""

from __future__ import annotations

from collections import Counter

import pytest
from stallscope.converters.model import Frame, Stack
from stallscope.converters.model.states import INTERRUPTIBLE, OTHER, PREEMPTED, UNINTERRUPTIBLE, WOKEN
from stallscope.tracers.engines.named_rows import LOST, Account
from stallscope.tracers.engines.perf.corrections import Counted, Rows, correct
from stallscope.tracers.engines.perf.delays import OnCore

MS = 1_000_000
F: Stack = (Frame("f"),)
_LOST: Stack = (Frame(LOST, "other"),)


def account(on_cpu: int, runnable: int = 0, **blocked: int) -> Account:
    made = Account(1, 2, 0, 1000 * MS, on_cpu * MS, runnable * MS)
    made.blocked = Counter({state: ms * MS for state, ms in blocked.items()})
    return made


def row(ms: int, number: int = 10) -> list[int]:
    return [ms * MS, number, MS, ms * MS // 2]


def rows_of(**times: int) -> Rows:
    return {(1, 2, state.replace("_", "-"), F, False): row(ms) for state, ms in times.items()}


def on_core(too_much: int, *, is_late: bool = True) -> OnCore:
    return OnCore(5000 * MS, 10_000 * MS, 0, 5000 * MS + too_much, is_late)


def total(own: Account) -> int:
    return own.on_cpu + own.runnable + own.blocked.total()


def test_a_thread_that_seemed_to_run() -> None:
    own, rows = account(600, interruptible=400), rows_of(interruptible=400)
    correct([Counted(own, on_core(500 * MS), 0)], rows)
    assert (own.on_cpu, own.blocked) == (100 * MS, {INTERRUPTIBLE: 400 * MS, OTHER: 500 * MS})
    assert rows[1, 2, OTHER, _LOST, False] == [500 * MS, 1, 500 * MS, 500 * MS]
    assert rows[1, 2, INTERRUPTIBLE, F, False] == row(400)
    assert total(own) == 1000 * MS


def test_lost_time_that_is_not_wanted_has_no_row() -> None:
    own, rows = account(600, interruptible=400), rows_of(interruptible=400)
    correct([Counted(own, on_core(500 * MS), 0)], rows, shows_lost=False)
    assert own.blocked[OTHER] == 500 * MS
    assert rows == rows_of(interruptible=400)


def test_a_thread_that_seemed_to_wait_for_a_core() -> None:
    own, rows = account(100, 900), rows_of(runnable_preempted=600, runnable_woken=300)
    correct([Counted(own, on_core(0), 500 * MS)], rows)
    assert (own.runnable, own.blocked) == (400 * MS, {OTHER: 500 * MS})
    assert {key[2]: values[0] for key, values in rows.items()} == {
        PREEMPTED: 600 * MS - 500 * MS * 600 // 900, WOKEN: 300 * MS, OTHER: 500 * MS,
    }  # fmt: skip
    assert total(own) == 1000 * MS


def test_a_thread_that_seemed_to_wait() -> None:
    """The waits, by what they took, were partly time on a core."""
    own = account(100, interruptible=600, uninterruptible=300)
    rows = rows_of(interruptible=600, uninterruptible=300)
    correct([Counted(own, on_core(-450 * MS), 0)], rows)
    assert (own.on_cpu, own.blocked) == (550 * MS, {INTERRUPTIBLE: 300 * MS, UNINTERRUPTIBLE: 150 * MS})
    assert {key[2]: values[0] for key, values in rows.items()} == {INTERRUPTIBLE: 300 * MS, UNINTERRUPTIBLE: 150 * MS}
    assert total(own) == 1000 * MS


def test_rows_of_some_waits_only() -> None:
    """Others were too short to be shown: a third of what is missing belongs to them."""
    own, rows = account(400, interruptible=600), rows_of(interruptible=400)
    correct([Counted(own, on_core(-300 * MS), 0)], rows)
    assert own.blocked == {INTERRUPTIBLE: 300 * MS}
    assert rows[1, 2, INTERRUPTIBLE, F, False][0] == 200 * MS


@pytest.mark.parametrize("difference", [0, 19 * MS, -19 * MS])
def test_small_differences_are_those_of_the_count(difference: int) -> None:
    own, rows = account(400, interruptible=600), rows_of(interruptible=600)
    correct([Counted(own, on_core(difference), 0)], rows)
    assert (own.on_cpu, rows) == (400 * MS, rows_of(interruptible=600))


def test_of_a_thread_that_did_not_run_at_a_look_they_matter() -> None:
    own, rows = account(400, interruptible=600), rows_of(interruptible=600)
    correct([Counted(own, on_core(19 * MS, is_late=False), 0)], rows)
    assert (own.on_cpu, own.blocked[OTHER]) == (381 * MS, 19 * MS)


def test_no_more_than_there_is() -> None:
    own, rows = account(100, 50, interruptible=850), rows_of(interruptible=850)
    correct([Counted(own, on_core(5000 * MS), 5000 * MS)], rows)
    assert (own.on_cpu, own.runnable) == (0, 0)
    correct([Counted(own, on_core(-5000 * MS), 0)], rows)
    assert (own.on_cpu, own.blocked.total()) == (1000 * MS, 0)
