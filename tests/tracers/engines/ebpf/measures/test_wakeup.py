"""The measure's records and rows, without a kernel. With one: tests/live/test_wakeup.py."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from stallscope.tracers.engines.ebpf.measures.protocol import Ended
from stallscope.tracers.engines.ebpf.measures.wakeup import WakeUpCollector
from stallscope.tracers.kernel import records
from stallscope.tracers.kernel.records import (
    BLOCKED,
    BY_NOBODY,
    BY_UNKNOWN,
    ON_CPU,
    ORIGIN,
    OTHER_STACKS,
    PREEMPTED,
    RUNNABLE,
    STATES,
    Origin,
    ThreadRecord,
    Waker,
)
from stallscope.tracers.measures.offcpu import FOREVER
from stallscope.tracers.measures.wakeup import WakeUp

SLEEP = STATES.index("interruptible")
ALL_ONES = (1 << 64) - 1
WRITER = Waker(101, 103, 13, 12, 1, 0, records.BY_THREAD)
TIMER = Waker(0, 105, 0, 0, 0, 0, records.BY_TIMER)


def chain(number: int, *wakers: Waker) -> bytes:
    parts = [struct.pack("<QQ5I4x", *waker) for waker in wakers]
    return (
        struct.pack("<IIQ", records.RECORD_CHAIN, len(wakers), number) + b"".join(parts) + bytes(40 * (16 - len(parts)))
    )


def counted(measure: WakeUpCollector, origin: Origin, number: int, *sums: int) -> None:
    measure.totals().add(ORIGIN.pack(*origin) + struct.pack("<Q", number), struct.pack("<4Q", *sums))


def origin(ustack: int = 1, tid: int = 7) -> Origin:
    return Origin(ustack, 3, 0, tid, 7, 0, SLEEP)


def ended(*threads: ThreadRecord) -> Ended:
    return Ended(0, 1000, threads)


def thread(phase: int, state: int = SLEEP, woken: int = 0, *, exited: bool = False) -> ThreadRecord:
    made = records.parse_thread(records.pack_thread((7, 7), 1, STATES[state], phase, 600))
    return ThreadRecord(1000, b"app", made._replace(woken=woken), exited)


def test_rows_have_the_links_of_their_chains() -> None:
    measure = WakeUpCollector(WakeUp(4))
    assert measure.on_record(chain(9, WRITER, TIMER))
    assert measure.on_record(chain(11, WRITER))
    counted(measure, origin(), 9, 50, 0, ALL_ONES, 0)
    counted(measure, origin(), 11, 20, 3, 5, 40)
    counted(measure, origin(), 13, 4, 1, 4, 4)
    rows = {row.wakers: row for row in measure.rows(ended())}
    assert rows[WRITER, TIMER].values == (50, 0, 0, 0)
    assert rows[(WRITER,)].values == (20, 3, 5, 40)
    (unknown,) = [row for wakers, row in rows.items() if wakers[0].context == BY_UNKNOWN]
    assert unknown.values == (4, 1, 4, 4)
    assert {row.state for row in rows.values()} == {"interruptible"}


def test_equal_origins_with_different_chains_are_not_added_up() -> None:
    measure = WakeUpCollector(WakeUp())
    for _ in range(3):
        for number in (9, 11):
            counted(measure, origin(), number, number, 1, number, number)
    assert sorted(row.values for row in measure.rows(ended())) == [(27, 3, 9, 9), (33, 3, 11, 11)]


@pytest.mark.parametrize(
    ("record", "context", "time"),
    [
        (thread(BLOCKED), BY_NOBODY, 400),
        (thread(RUNNABLE, woken=900), BY_UNKNOWN, 300),
        (thread(ON_CPU), None, 0),
        (thread(RUNNABLE, PREEMPTED), None, 0),
        (thread(BLOCKED, exited=True), None, 0),
    ],
)
def test_waits_that_had_not_ended(record: ThreadRecord, context: int | None, time: int) -> None:
    rows = WakeUpCollector(WakeUp()).rows(ended(record))
    assert [(row.wakers[0].context, row.values[0], row.is_open) for row in rows] == (
        [] if context is None else [(context, time, True)]
    )


def test_only_states_that_are_wanted() -> None:
    measure = WakeUpCollector(WakeUp(states=frozenset({"uninterruptible"})))
    counted(measure, origin(), 9, 50, 1, 50, 50)
    assert measure.rows(ended(thread(BLOCKED))) == []


def test_beside_another_measure_it_has_only_its_time() -> None:
    measure = WakeUpCollector(WakeUp(alone=False))
    counted(measure, origin(), 9, 50, 1, 50, 50)
    assert [column.name for column in measure.columns] == ["blocked"]
    assert [row.values for row in measure.rows(ended())] == [(50,)]


def test_folded_rows_forget_their_chains() -> None:
    measure = WakeUpCollector(WakeUp())
    measure.on_record(chain(9, WRITER))
    measure.on_record(chain(11, WRITER, TIMER))
    counted(measure, origin(1), 9, 1000, 1, 1, 1)
    counted(measure, origin(5), 11, 3, 1, 1, 1)
    counted(measure, origin(7), 11, 4, 1, 1, 1)
    assert set(measure.stacks()) == {101, 103, 105}
    held = measure.held()
    measure.totals().fold(1)
    assert set(measure.stacks()) == {101, 103}
    assert 0 < measure.held() < held
    rows = {row.origin.ustack: row for row in measure.rows(ended())}
    assert rows[1].wakers == (WRITER,)
    assert rows[OTHER_STACKS].values[:2] == (7, 2)
    assert rows[OTHER_STACKS].wakers[0].context == BY_UNKNOWN


def test_processes_are_met_once() -> None:
    measure = WakeUpCollector(WakeUp())
    measure.on_record(chain(9, WRITER, TIMER))
    measure.on_record(chain(11, WRITER._replace(tgid=40), WRITER))
    assert set(measure.newcomers()) == {12, 40}
    measure.on_record(chain(13, WRITER))
    assert not set(measure.newcomers())


def test_other_records_are_left_to_others() -> None:
    assert not WakeUpCollector(WakeUp()).on_record(struct.pack("<IIQ", records.RECORD_EXIT, 0, 0))


def test_knobs() -> None:
    assert WakeUpCollector(WakeUp(3, 5, 7, frozenset({"idle"}))).knobs() == {
        "measure_wakeup": 1,
        "wait_objects": 1,
        "chain_depth": 3,
        "min_wait": 5,
        "max_wait": 7,
        "state_mask": 1 << STATES.index("idle"),
    }
    defaults: dict[str, Any] = dict(WakeUpCollector(WakeUp()).knobs())
    assert (defaults["min_wait"], defaults["max_wait"], defaults["chain_depth"]) == (0, FOREVER, 1)
