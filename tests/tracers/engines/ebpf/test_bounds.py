"""Bounds: what is rare leaves, and nothing else. For real: tests/live/test_bounds.py."""

from __future__ import annotations

import dataclasses
import struct
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.ebpf import bounds as module
from stallscope.tracers.engines.ebpf.bounds import Bounds
from stallscope.tracers.engines.ebpf.measures.protocol import Collector, Ended
from stallscope.tracers.engines.ebpf.measures.totals import Totals
from stallscope.tracers.engines.ebpf.probes import ProbeOptions
from stallscope.tracers.engines.rows import Row
from stallscope.tracers.kernel.ended import _MADE_IN_OFFSET
from stallscope.tracers.kernel.records import (
    COUNTERS,
    ORIGIN,
    OTHER_STACKS,
    RECORD_EXIT,
    THREAD_RECORD_SIZE,
    RecordSink,
)

ENTRIES = 1 << 12


class Counted(Collector):
    """Collector whose table is a list of rows."""

    name = "counted"
    columns = ()
    programs = ()
    entries = "new_waits"

    def __init__(self) -> None:
        self.table: list[tuple[int, int]] = []
        """Stack and weight."""
        self.drains = 0
        self.more: tuple[int, ...] = ()
        self._totals = Totals((np.add,), weights=(0,))

    def drain(self) -> None:
        self.drains += 1
        keys = b"".join(ORIGIN.pack(stack, 0, 0, 8, 7, 0, 1) for stack, _ in self.table)
        self._totals.add(keys, b"".join(weight.to_bytes(8, "little") for _, weight in self.table))
        self.table = []

    def totals(self) -> Totals:
        return self._totals

    def stacks(self) -> tuple[int, ...]:
        return self.more

    def rows(self, ended: Ended) -> list[Row]:
        return []


class Engine:
    """Probes as far as `Bounds` needs them."""

    def __init__(self, measure: Collector, memory: int) -> None:
        self.options = ProbeOptions(Scope(), (measure,), table_entries=ENTRIES, memory=memory)
        self.said: list[str] = []
        self.alive: list[Any] = []
        self.arrives: Callable[[], None] = lambda: None

    def send_stacks_again(self) -> None:
        self.said.append("again")

    def forget_stacks(self) -> None:
        self.said.append("forget")
        self.arrives()

    def consume(self) -> None:
        self.said.append("consume")

    def living(self) -> list[Any]:
        self.said.append("living")
        return self.alive

    def counters(self) -> dict[str, int]:
        return counters(new_stacks=1000)


def counters(**given: int) -> dict[str, int]:
    return dict.fromkeys(COUNTERS, 0) | given


def record(number: int) -> bytes:
    return struct.pack("<IHHQ3Q", 1, 3, 0, number, 1, 2, 3)


def ended_thread(made_in: int) -> bytes:
    data = bytearray(THREAD_RECORD_SIZE)
    data[0] = RECORD_EXIT
    struct.pack_into("<Q", data, _MADE_IN_OFFSET, made_in)
    return bytes(data)


def made(memory: int) -> tuple[Bounds, Engine, Counted, RecordSink]:
    measure, sink = Counted(), RecordSink()
    engine = Engine(measure, memory)
    return Bounds(engine, sink), engine, measure, sink  # type: ignore[arg-type]


def test_tables_are_drained_before_they_are_full() -> None:
    bounds, engine, measure, _ = made(400 << 20)
    for new, drains in ((ENTRIES // 4 - 1, 0), (ENTRIES // 4, 1), (ENTRIES // 2 - 1, 1), (ENTRIES // 2 + 9, 2)):
        bounds.poll(counters(new_waits=new))
        assert measure.drains == drains
    assert set(engine.said) <= {"consume"}


def test_known_stacks_are_cleared_before_their_table_is_full() -> None:
    bounds, engine, _, _ = made(400 << 20)
    for new, times in ((ENTRIES // 2 - 1, 0), (ENTRIES // 2, 1), (ENTRIES - 1, 1), (ENTRIES, 2)):
        bounds.poll(counters(new_stacks=new))
        assert engine.said == ["again"] * times


def test_functions_of_python_leave_when_there_are_too_many() -> None:
    _, engine, _, sink = made(400 << 20)
    sink(record(5))
    kept: list[list[int]] = []
    functions = SimpleNamespace(is_full=False, keep=lambda words: kept.append(words.tolist()))
    bounds = Bounds(engine, sink, functions)  # type: ignore[arg-type]
    bounds.poll(counters())
    assert not kept
    functions.is_full = True
    bounds.poll(counters())
    assert [words[-3:] for words in kept] == [[1, 2, 3]]


@pytest.fixture
def little_room(monkeypatch: pytest.MonkeyPatch) -> int:
    """Bytes for rows and stacks: the memory that makes them so is returned."""
    monkeypatch.setattr(module, "_OURS", 0)
    monkeypatch.setattr(module, "_FEWEST_ROWS", 16)
    return 4 * 40_000


def test_the_rarest_leave(little_room: int) -> None:
    bounds, engine, measure, sink = made(little_room)
    for number in range(1, 2001, 2):
        sink(record(number))
        measure.table.append((number, number))
    measure.drain()
    thread = SimpleNamespace(key=(3, 5), sum_key=(7, 0), made_in=13)
    engine.alive = [SimpleNamespace(thread=thread)]
    measure.more = (9,)
    sink(ended_thread(made_in=15))
    bounds.made_in = lambda: {17}
    engine.arrives = lambda: sink(record(11))
    bounds.poll(counters())
    assert engine.said[:2] == ["consume", "forget"]
    assert [said for said in engine.said if said != "consume"] == ["forget", "living"]
    found = {origin.ustack: values[0] for origin, values in measure.totals().take()}
    kept = {stack for stack in found if stack != OTHER_STACKS}
    assert kept == set(range(2001 - 2 * len(kept), 2001, 2))
    assert sum(found.values()) == sum(range(1, 2001, 2))
    # Threads, other records and stacks that have just come refer to some that are rare.
    frames, _ = sink.stacks.find(range(2001))
    assert frames.keys() == kept | {3, 5, 7, 9, 11, 13, 15, 17}
    assert 40 * len(kept) < 20_000


def a_thousand_rows(depth: int, more: int = 0) -> tuple[Bounds, Counted]:
    """The memory is enough for 100 with stacks of three frames, [other stacks], and ``more`` bytes."""
    bounds, engine, measure, sink = made(0)
    sink(struct.pack(f"<IHHQ{depth}Q", 1, depth, 0, 1, *range(depth)))
    measure.table = [(number, 1) for number in range(1, 2001, 2)]
    measure.drain()
    row = module._FINISHED_ROW + 3 * module._FINISHED_FRAME
    enough = module._OURS + bounds._bytes + 100 * row + module._FINISHED_ROW + more
    engine.options = dataclasses.replace(engine.options, memory=enough)
    return bounds, measure


def rows_of(measure: Counted) -> int:
    rows = dict(measure.totals().take())
    assert sum(values[0] for values in rows.values()) == 1000
    return len(rows) - 1  # [other stacks]


def test_no_more_rows_remain_than_names_can_be_found_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FEWEST_ROWS", 16)
    memory = 100 * (module._FINISHED_ROW + 3 * module._FINISHED_FRAME)
    for depth in (3, 100):  # deep stacks take more
        bounds, measure = a_thousand_rows(depth)
        bounds.finish(0)
        assert rows_of(measure) == memory // (module._FINISHED_ROW + depth * module._FINISHED_FRAME)


def beside(monkeypatch: pytest.MonkeyPatch, memory: int) -> tuple[Bounds, Counted]:
    """A trace that takes 7,000 bytes, [other stacks] left out; ``memory`` is what it and others may take."""
    monkeypatch.setattr(module, "_FEWEST_ROWS", 16)
    monkeypatch.setattr(module, "own_memory", lambda: 7000)
    bounds, measure = a_thousand_rows(3)
    memory += module._FINISHED_ROW
    bounds._engine.options = dataclasses.replace(bounds._engine.options, memory=memory)
    return bounds, measure


def test_the_memory_is_shared_with_processes_that_write(monkeypatch: pytest.MonkeyPatch) -> None:
    row = module._FINISHED_ROW + 3 * module._FINISHED_FRAME
    own = 7000 + module._FINISHED_ROW
    bounds, measure = beside(monkeypatch, 2 * 7000 + 5000 + 100 * row)
    assert bounds.size_beside(0, 5000) == own + 100 * row
    bounds.finish_beside(0, 5000)
    assert rows_of(measure) == 100
    bounds, measure = beside(monkeypatch, 2 * 7000 + 5000 + 1000 * row)
    assert bounds.size_beside(0, 5000) == own + 1000 * row
    bounds.finish_beside(0, 5000)
    assert rows_of(measure) == 1000 - 1


def test_the_trace_takes_more_beside_a_process_that_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    row = module._FINISHED_ROW + 3 * module._FINISHED_FRAME
    bounds, measure = beside(monkeypatch, 2 * 7000 + 100 * row)
    bounds._most_bytes = 40 * row
    assert bounds.size_beside(0, 0) == 7000 + module._FINISHED_ROW + 60 * row
    bounds.finish_beside(0, 0)
    assert rows_of(measure) == 60


def test_accounts_leave_less_room_for_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    row = module._FINISHED_ROW + 3 * module._FINISHED_FRAME
    monkeypatch.setattr(module, "_ACCOUNT", 2 * row)
    bounds, measure = beside(monkeypatch, 2 * 7000 + 100 * row)
    assert bounds.size_beside(1000, 0) == 7000 + module._FINISHED_ROW + 2000 * row
    bounds.finish_beside(20, 0)
    assert rows_of(measure) == 60
    bounds, measure = a_thousand_rows(3)
    bounds.finish(20)
    assert rows_of(measure) == 60


def test_records_are_read_while_the_kernel_is_waited_for() -> None:
    bounds, engine, _, _ = made(400 << 20)

    def work() -> None:
        while engine.said.count("consume") < 3:
            time.sleep(0.001)

    bounds.patiently(work)
    assert engine.said.count("consume") >= 3

    def fail() -> None:
        raise KeyError("in the thread")

    with pytest.raises(KeyError, match="in the thread"):
        bounds.patiently(fail)
