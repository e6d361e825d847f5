"""The measure's maps and waits, without a kernel. With one: tests/live/test_gil.py."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pytest
from stallscope.tracers.engines.ebpf.measures.gil import LOSSES, SUM, UNREAD, WAITING, GilCollector
from stallscope.tracers.engines.ebpf.measures.protocol import Ended, LockSum
from stallscope.tracers.engines.ebpf.probes import object_path
from stallscope.tracers.kernel import records
from stallscope.tracers.kernel.bpfobject import Object
from stallscope.tracers.kernel.records import BLOCKED, ON_CPU, ORIGIN, STATES, Origin, ThreadRecord
from stallscope.tracers.measures.locks import Gil

SLEEP = STATES.index("interruptible")
HAS_ENDED = (1 << 64) - 1
OUT = 600


def thread(phase: int = BLOCKED, tid: int = 7) -> ThreadRecord:
    made = records.parse_thread(records.pack_thread((tid, 7), 1, STATES[SLEEP], phase, OUT))
    return ThreadRecord(1000, b"app", made._replace(out=OUT), exited=False)


@pytest.fixture
def loaded() -> Iterator[Object]:
    opened = Object(object_path())
    yield opened
    opened.close()


def test_layouts_are_those_of_the_maps(loaded: Object) -> None:
    waiting, losses = loaded.find_map("gil_waiting"), loaded.find_map("gil_losses")
    assert (waiting.key_size, waiting.value_size) == (4, WAITING.size)
    assert losses.max_entries == len(LOSSES)


class Maps:
    """The maps of an object that the measure reads when a trace has ended."""

    def __init__(self, waiting: dict[int, bytes], lost: tuple[int, ...]) -> None:
        self._waiting, self._lost = waiting, lost

    def find_map(self, name: str) -> Any:
        return self

    def items(self) -> list[tuple[bytes, bytes]]:
        return [(tid.to_bytes(4, "little"), value) for tid, value in self._waiting.items()]

    def lookup_percpu_u64(self, index: int) -> int:
        return self._lost[index]


class Table:
    """A table without rows."""

    def drain(self, slot: int) -> tuple[bytes, bytes]:
        return b"", b""


def read(waiting: dict[int, bytes], *lost: int) -> GilCollector:
    measure: Any = GilCollector(Gil())
    measure._table = Table()
    measure.read(Maps(waiting, lost or (0, 0)))
    made: GilCollector = measure
    return made


def test_waits_are_added_up() -> None:
    measure = GilCollector(Gil())
    key = ORIGIN.pack(9, 0, 0, 8, 7, 5, SLEEP) + struct.pack("<Q", 12)
    measure.totals().add(key, SUM.pack(50, 2, 40))
    measure.totals().add(key, SUM.pack(10, 1, 10))
    (wait,) = measure.gil(Ended(0, 1000, ()))
    assert (wait.holder, wait.sum) == (12, LockSum(60, 3, 40))
    assert wait.row.origin == Origin(9, 0, 0, 8, 7, 5, SLEEP)
    assert (wait.row.state, wait.row.is_open) == ("interruptible", False)


def test_a_wait_that_has_not_ended() -> None:
    measure = read({7: WAITING.pack(3, OUT, 9, 12)})
    (wait,) = measure.gil(Ended(0, 1000, (thread(),)))
    assert (wait.holder, wait.sum, wait.row.is_open) == (12, LockSum(400, 1, 400), True)
    assert wait.row.origin == Origin(9, 0, 0, 7, 7, 1, SLEEP)
    (later,) = measure.gil(Ended(OUT, 1000, (thread()._replace(end=900),)))
    assert later.sum.time == 300


@pytest.mark.parametrize(
    ("waiting", "record"),
    [
        (WAITING.pack(HAS_ENDED, OUT, 9, 12), thread()),
        (WAITING.pack(3, OUT - 1, 9, 12), thread()),  # it waits for something else since
        (WAITING.pack(3, OUT, 9, 12), thread(ON_CPU)),
        (WAITING.pack(3, OUT, 9, 12), thread()._replace(exited=True)),
        (WAITING.pack(3, OUT, 9, 12), thread(tid=8)),
    ],
)
def test_no_wait_any_more(waiting: bytes, record: ThreadRecord) -> None:
    assert not read({7: waiting}).gil(Ended(0, 1000, (record,)))


def test_losses_are_those_of_the_interval() -> None:
    measure = read({}, 1, 5)
    assert measure.losses()[UNREAD] == 5
    measure.next()
    again: Any = measure
    again.read(Maps({}, (1, 7)))
    assert list(measure.losses().values()) == [0, 2]
