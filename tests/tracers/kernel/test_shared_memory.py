"""Memory that is read while it is written."""

from __future__ import annotations

import mmap
import re
import struct
import threading
from pathlib import Path

import pytest
from stallscope.tracers.kernel.shared_memory import store_u64, unmap

TRACERS = Path(__file__).parents[3] / "tracers"
PRIVATE = {
    "bytecode.py": "a program before it is loaded",
    "ioctl_rings.py": "places of rings, before the trace begins",
    "names.py": "records of perf, in memory of this process alone",
    "timeline.py": "places of rings, before the trace begins",
}
"""Modules that may use pack_into, and what they write."""


def test_value_is_where_it_belongs() -> None:
    memory = mmap.mmap(-1, mmap.PAGESIZE)
    store_u64(memory, 8, 0x0102030405060708)
    assert struct.unpack_from("=3Q", memory) == (0, 0x0102030405060708, 0)
    memory.close()  # nothing refers to it any more


@pytest.mark.parametrize("value", [-1, 1 << 64])
def test_nothing_is_written_before_the_value_is_known_to_fit(value: int) -> None:
    memory = mmap.mmap(-1, mmap.PAGESIZE)
    store_u64(memory, 0, 7)
    with pytest.raises((ValueError, OverflowError)):
        store_u64(memory, 0, value)
    assert memory[0] == 7
    memory.close()


def test_a_reader_never_sees_another_value() -> None:
    memory = mmap.mmap(-1, mmap.PAGESIZE)
    store_u64(memory, 0, 1)
    done = threading.Event()
    seen = set()

    def read() -> None:
        while not done.is_set():
            seen.update(struct.unpack_from("=Q", memory) for _ in range(100))

    reader = threading.Thread(target=read)
    reader.start()
    for i in range(20_000):
        store_u64(memory, 0, 1 + i % 2)
    done.set()
    reader.join()
    memory.close()
    assert seen <= {(1,), (2,)}


def test_nobody_packs_into_memory_that_is_shared() -> None:
    users = {path.name for path in TRACERS.rglob("*.py") if ".pack_into(" in path.read_text()}
    assert users == set(PRIVATE)


def test_memory_of_which_an_interrupted_call_has_a_view() -> None:
    memory = mmap.mmap(-1, mmap.PAGESIZE)
    view = memoryview(memory)
    unmap(memory)
    view[0] = 7  # it is still there
    view.release()
    unmap(memory)
    unmap(memory)
    assert memory.closed


def test_memory_is_unmapped_that_way() -> None:
    """Ctrl-C may come anywhere: an error of close() would be told instead."""
    closes = re.compile(r"self\._?(memory|consumer)\.close\(\)")
    wrong = [
        path.name
        for path in sorted(TRACERS.rglob("*.py"))
        if "mmap.mmap(" in path.read_text() and closes.search(path.read_text())
    ]
    assert wrong == []
