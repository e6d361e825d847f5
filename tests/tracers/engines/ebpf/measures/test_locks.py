"""The measure's maps and rows, without a kernel. With one: tests/live/test_locks.py."""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterable, Iterator
from ctypes import addressof, c_char
from pathlib import Path
from typing import Any

import pytest
from stallscope.tracers.engines.ebpf.measures import locks as module
from stallscope.tracers.engines.ebpf.measures.lock_objects import ASKED, ASKS, OBJECT
from stallscope.tracers.engines.ebpf.measures.lock_records import (
    FLAGS_SHIFT,
    HOLDER,
    OF_KERNEL,
    PRIVATE,
    QUEUE,
    QUEUE_KEY,
    RECORD,
    SHARED_WORD,
    SPIN,
    SPIN_FRAMES,
    SPIN_SLOTS,
    SUM,
    WAITING,
)
from stallscope.tracers.engines.ebpf.measures.locks import LocksCollector, kernel_tells
from stallscope.tracers.engines.ebpf.measures.protocol import Ended, LockSum
from stallscope.tracers.engines.ebpf.probes import object_path
from stallscope.tracers.kernel import kernel_types, records
from stallscope.tracers.kernel.bpfobject import Object
from stallscope.tracers.kernel.records import (
    BLOCKED,
    BY_THREAD,
    BY_UNKNOWN,
    ON_CPU,
    ORIGIN,
    STATES,
    Origin,
    ThreadRecord,
    Waker,
)
from stallscope.tracers.measures.locks import Locks
from type_information import type_information

SLEEP = STATES.index("interruptible")
GIVER = Waker(101, 103, 13, 7, 1, 0, BY_THREAD)


def thread(phase: int = BLOCKED, tid: int = 7) -> ThreadRecord:
    made = records.parse_thread(records.pack_thread((tid, 7), 1, STATES[SLEEP], phase, 600))
    return ThreadRecord(1000, b"app", made, exited=False)


def ended(*threads: ThreadRecord) -> Ended:
    return Ended(0, 1000, threads)


@pytest.fixture
def loaded() -> Iterator[Object]:
    opened = Object(object_path())
    yield opened
    opened.close()


def test_layouts_are_those_of_the_maps(loaded: Object) -> None:
    for name, key, value in (
        ("lock_waiting", 4, WAITING.size),
        ("lock_queues", QUEUE_KEY.size, QUEUE.size),
        ("lock_shared", SHARED_WORD.size, 8),
        ("lock_spins", 4, SPIN.size),
        ("lock_objects", 8, OBJECT.size),
    ):
        found = loaded.find_map(name)
        assert (found.key_size, found.value_size) == (key, value), name
    assert loaded.find_map("lock_spins").max_entries == 2 * SPIN_SLOTS
    assert HOLDER.size == 16 + 8 + 40
    assert RECORD.size == 16


def test_waits_have_their_lock_and_its_kind() -> None:
    measure = LocksCollector(Locks())
    key = ORIGIN.pack(1, 3, 0, 7, 7, 5, SLEEP | PRIVATE << 8) + struct.pack("<Q", 0xABC)
    measure.totals().add(key, SUM.pack(50, 2, 40))
    measure.totals().add(key, SUM.pack(10, 1, 10))
    (wait,) = measure.locks(ended()).waits
    assert (wait.address, wait.kind, wait.sum) == (0xABC, PRIVATE, LockSum(60, 3, 40))
    assert wait.row.origin == Origin(1, 3, 0, 7, 7, 5, SLEEP)
    assert (wait.row.state, wait.row.is_open) == ("interruptible", False)


class Table:
    """A table that is taken out once."""

    def __init__(self, rows: list[tuple[bytes, bytes]]) -> None:
        self.rows = rows

    def drain(self, slot: int) -> tuple[bytes, bytes]:
        assert slot == 0
        rows, self.rows = self.rows, []
        return b"".join(key for key, _ in rows), b"".join(value for _, value in rows)


class Map:
    """A map that is read and cleared."""

    def __init__(self, rows: Iterable[tuple[bytes, bytes]]) -> None:
        self.rows = list(rows)

    def items(self) -> list[tuple[bytes, bytes]]:
        return self.rows

    def clear(self) -> None:
        self.rows = []


class Maps:
    """The maps of queues and of what holds locks, in an object."""

    def __init__(self, *queues: tuple[bytes, bytes]) -> None:
        self.maps = {"lock_queues": Map(queues), "lock_objects": Map([])}

    def find_map(self, name: str) -> Map:
        return self.maps[name]


def drained(rows: list[tuple[bytes, bytes]], *queues: tuple[bytes, bytes]) -> LocksCollector:
    measure = LocksCollector(Locks())
    made: Any = measure
    made._object = Maps(*queues)
    made._table, made._holders_table = Table([]), Table(rows)
    measure.drain()
    return measure


def test_holders_are_added_up() -> None:
    key = HOLDER.pack(0xABC, 7, PRIVATE, 12, 0, *GIVER)
    measure = drained([(key, SUM.pack(50, 2, 40)), (key, SUM.pack(5, 1, 5))])
    (holder,) = measure.locks(ended()).holders
    assert (holder.tgid, holder.address, holder.owner, holder.sum) == (7, 0xABC, 12, LockSum(55, 3, 40))
    assert holder.row.wakers == (GIVER,)
    assert set(measure.stacks()) == {101, 103}


def test_one_whose_waker_was_not_seen() -> None:
    nobody = HOLDER.pack(0xABC, 7, PRIVATE, 12, 0, *[0] * 7)
    (holder,) = drained([(nobody, SUM.pack(50, 2, 40))]).locks(ended()).holders
    assert holder.row.wakers[0].context == BY_UNKNOWN


def test_too_many_holders_lose_their_wakers_and_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_HOLDERS", 2)
    keys = [HOLDER.pack(0xABC, 7, PRIVATE, 12, 0, *GIVER._replace(tid=i)) for i in range(5)]
    measure = drained([(key, SUM.pack(10, 1, 10)) for key in keys])
    holders = measure.locks(ended()).holders
    assert sum(holder.sum.time for holder in holders) == 50
    assert len(holders) == 3
    assert measure._folded == 3


def test_longest_queues_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_KEPT_QUEUES", 2)
    queues = [(QUEUE_KEY.pack(i, 7, 0), QUEUE.pack(0, 0, 0, 10 * i, i, 4, 10 * i, 1, i, 2 * i)) for i in (1, 2, 3)]
    measure: Any = drained([], *queues)
    measure._object.maps["lock_queues"].rows = [(QUEUE_KEY.pack(2, 7, 0), QUEUE.pack(0, 0, 0, 5, 9, 2, 5, 0, 0, 1))]
    measure.drain()
    assert measure.locks(ended()).queues == {(2, 7): (20, 2), (3, 7): (30, 3)}
    assert measure.locks(ended()).crowds == {(2, 7): (6, 25, 1, 2, 5), (3, 7): (4, 30, 1, 3, 6)}
    assert measure._short == 1


def test_what_holds_locks_is_known_for_one_more_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wait that ends in one interval may have begun in the interval before."""
    monkeypatch.setattr(module, "_KEPT_OBJECTS", 2)
    measure: Any = drained([])
    objects = measure._object.maps["lock_objects"]
    objects.rows = [(i.to_bytes(8, "little"), OBJECT.pack(9, *[0] * 10, b"kmalloc-64")) for i in (1, 2, 3)]
    measure.drain()
    assert objects.rows == []
    assert {lock: found.name for lock, found in measure.locks(ended()).objects.items()} == dict.fromkeys(
        (1, 2), "kmalloc-64"
    )
    assert measure._untold == 1
    measure.next()
    assert measure.locks(ended()).objects.keys() == {1, 2}
    measure.next()
    assert not measure.locks(ended()).objects


def test_owner_of_a_kernels_lock_is_met() -> None:
    measure = drained([(HOLDER.pack(5, 0, OF_KERNEL | 32 << FLAGS_SHIFT, 12, 99, *GIVER), SUM.pack(1, 1, 1))])
    assert list(measure.newcomers()) == [99]
    assert not list(measure.newcomers())


def test_waits_that_had_not_ended() -> None:
    measure = LocksCollector(Locks())
    measure._waiting = {7: (0xABC, 1, PRIVATE, 12, 0, 0, 0, 0), 8: (0xABC, 1, PRIVATE, 0, 0, 0, 0, 0)}
    found = measure.locks(ended(thread(), thread(ON_CPU, tid=8), thread(tid=9)))
    ((wait,), (holder,)) = found.waits, found.holders
    assert (wait.row.is_open, wait.row.origin.tid, wait.sum) == (True, 7, LockSum(400, 1, 400))
    assert (holder.owner, holder.sum.time) == (12, 400)
    measure._waiting = {7: (0, 0, 0, 12, 99, 32, 0xFFFF, 700)}
    (wait,) = measure.locks(ended(thread())).waits
    assert (wait.address, wait.kind, wait.sum.time) == (0xFFFF, OF_KERNEL | 32 << FLAGS_SHIFT, 300)
    measure._waiting = {7: (0, 0, 0, 0, 0, 0, 0, 0)}
    assert not measure.locks(ended(thread())).waits


def test_spinlocks_have_stacks_of_their_own() -> None:
    measure = LocksCollector(Locks())
    frames = [0xFF01, 0xFF02, *[0] * (SPIN_FRAMES - 2)]
    measure._spins = {SPIN.pack(0xAA, 0, 0, 0, 0, 8, 7, 5, 1, *frames): LockSum(30, 3, 20)}
    found = measure.locks(ended())
    (wait,) = found.waits
    assert found.stacks == {wait.row.origin.kstack: (0xFF01, 0xFF02)}
    assert (wait.kind >> FLAGS_SHIFT, wait.sum) == (1, LockSum(30, 3, 20))


def test_shared_memory_is_known_by_its_file() -> None:
    memory = mmap.mmap(-1, 8192)
    at = addressof(c_char.from_buffer(memory))
    given: dict[bytes, bytes] = {}

    class Opened:
        def find_map(self, name: str) -> Any:
            assert name == "lock_shared"
            return type("Map", (), {"update": lambda _, key, value: given.update({key: value})})()

    measure: Any = LocksCollector(Locks())
    measure._object = Opened()
    own = bytearray(64)
    private = addressof((c_char * 64).from_buffer(own))
    for tgid, address in ((os.getpid(), at + 4096), (os.getpid(), private), (1 << 22, 5)):
        assert measure.on_record(RECORD.pack(records.RECORD_LOCK, tgid, address))
    assert not measure.on_record(bytes([records.RECORD_CHAIN]) + bytes(15))
    measure.consume()
    found = measure.locks(ended())
    ((where, word),) = found.shared.items()
    assert where == (os.getpid(), at + 4096)
    assert (word.offset, word.path) == (4096, "/dev/zero")
    assert given == {SHARED_WORD.pack(at + 4096, os.getpid()): (1).to_bytes(8, "little")}
    assert found.unreadable == {(1 << 22, 5)}


def test_kernel_that_does_not_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "btf").write_bytes(type_information("btf_trace_sched_switch"))
    monkeypatch.setattr(kernel_types, "_KERNEL_BTF", tmp_path / "btf")
    assert not kernel_tells()
    measure = LocksCollector(Locks())
    assert measure.placed == ()
    assert "5.19" in next(iter(measure.remarks()))
    (tmp_path / "btf").write_bytes(type_information("btf_trace_contention_begin"))
    assert kernel_tells()
    assert LocksCollector(Locks()).placed == ("locks_begin", "locks_end")
    assert not list(LocksCollector(Locks()).remarks())
    assert LocksCollector(Locks()).kfuncs() == {}
    (tmp_path / "btf").write_bytes(type_information("btf_trace_contention_begin", "bpf_get_kmem_cache"))
    assert LocksCollector(Locks()).placed == ("locks_begin_asking", "locks_end")
    measure = LocksCollector(Locks())
    assert measure.kfuncs() == {"locks_begin_asking": (ASKED, ASKS)}
    assert not measure.does_without("sched_switch")
    assert measure.does_without("locks_begin_asking_raw")
    assert (measure.placed, measure.kfuncs()) == (("locks_begin", "locks_end"), {})
    assert not measure.does_without("locks_begin_asking_raw")
