"""Rings of records of one size."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from stallscope.tracers.engines.ebpf.measures.bulk_ring import BulkRing
from stallscope.tracers.engines.ebpf.measures.spans import RECORD

SIZE = 1 << 12


class Ring:
    """A ring buffer in a file, with the data once: records are not cut if they do not reach its end."""

    def __init__(self) -> None:
        self._fd = os.memfd_create("ring")
        os.ftruncate(self._fd, 2 * mmap.PAGESIZE + 2 * SIZE)
        self._memory = mmap.mmap(self._fd, 2 * mmap.PAGESIZE + 2 * SIZE)
        self._end = 0
        source: Any = SimpleNamespace(fd=self._fd, max_entries=SIZE)
        self.ring = BulkRing(source, RECORD)

    def write(self, begin: int, *, busy: bool = False) -> None:
        length = RECORD.itemsize - 8 | (1 << 31 if busy else 0)
        row = np.array([(length, 0, begin, begin + 1, 9, 7, 3, 0, 5)], RECORD).tobytes()
        for i, byte in enumerate(row):  # twice, as the kernel maps it
            place = (self._end + i) % SIZE
            for at in (place, place + SIZE):
                self._memory[2 * mmap.PAGESIZE + at] = byte
        self._end += len(row)
        self._memory[mmap.PAGESIZE : mmap.PAGESIZE + 8] = self._end.to_bytes(8, "little")

    def done(self, place: int) -> None:
        for at in (place, place + SIZE):
            self._memory[2 * mmap.PAGESIZE + at + 3] = 0

    @property
    def read(self) -> int:
        return int.from_bytes(self._memory[:8], "little")

    def close(self) -> None:
        self.ring.close()
        self._memory.close()
        os.close(self._fd)


@pytest.fixture
def ring() -> Iterator[Ring]:
    made = Ring()
    yield made
    made.close()


def test_records_are_read_once_and_around_the_end(ring: Ring) -> None:
    seen: list[int] = []
    for i in range(3 * SIZE // RECORD.itemsize):
        ring.write(i)
        if i % 7 == 0:
            seen += ring.ring.take()["begin"].tolist()
            assert ring.read == (i + 1) * RECORD.itemsize
    seen += ring.ring.take()["begin"].tolist()
    assert seen == list(range(3 * SIZE // RECORD.itemsize))


def test_a_record_that_is_being_written_waits_for_its_turn(ring: Ring) -> None:
    ring.write(1)
    ring.write(2, busy=True)
    ring.write(3)
    assert ring.ring.take()["begin"].tolist() == [1]
    assert ring.ring.take()["begin"].tolist() == []
    ring.done(RECORD.itemsize)
    assert ring.ring.take()["begin"].tolist() == [2, 3]
