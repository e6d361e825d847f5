"""Memory of another process."""

from __future__ import annotations

import ctypes
import os

import pytest
from stallscope.tracers.cpython.memory import memory_of


def test_reads() -> None:
    text = ctypes.create_string_buffer(b"12345678abc")
    with memory_of(os.getpid()) as memory:
        assert memory.read(ctypes.addressof(text), 11) == b"12345678abc"
        assert memory.word(ctypes.addressof(text)) == int.from_bytes(b"12345678", "little")


@pytest.mark.parametrize("address", [0, 8, -1, 1 << 63, (1 << 64) - 8])
def test_nothing_there(address: int) -> None:
    with memory_of(os.getpid()) as memory, pytest.raises(OSError, match=r"address|memory|error"):
        memory.read(address, 8)


def test_no_process() -> None:
    with pytest.raises(OSError, match="No such"), memory_of(1 << 22) as memory:
        memory.read(0x1000, 8)
