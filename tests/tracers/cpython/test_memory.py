"""Memory of another process."""

from __future__ import annotations

import ctypes
import os

import pytest
from stallscope.tracers.cpython.memory import ReadAhead, memory_of


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


def test_what_was_read_ahead_is_not_read_again() -> None:
    text = ctypes.create_string_buffer(b"12345678abcdefgh", 17)
    place = ctypes.addressof(text)
    with memory_of(os.getpid()) as memory:
        ahead = ReadAhead(memory)
        ahead.expect([(place, 8), (0, 8)])
        text[0:1] = b"X"
        assert ahead.read(place, 8) == b"12345678"
        assert ahead.word(place) == int.from_bytes(b"12345678", "little")
        assert ahead.read(place + 1, 8) == b"2345678a", "it is not all there"
        with pytest.raises(OSError, match=r"address|memory|error"):
            ahead.read(0, 8)
