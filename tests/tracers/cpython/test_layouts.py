"""Layouts against running interpreters."""

from __future__ import annotations

import dataclasses
import struct

import pytest
from pythons import layout_in, running, runtime_in
from stallscope.tracers.cpython.layouts import Layout, Refused, check_threads, layout_of
from stallscope.tracers.cpython.memory import Memory, memory_of
from stallscope.tracers.kernel.python import SPACE, WINDOW

TELL = """
import threading
print(json.dumps(threading.get_ident()))
"""


class Image:
    """Memory that consists of some bytes from address 0 on."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read(self, address: int, size: int) -> bytes:
        return self._data[address : address + size]


def test_the_main_thread_is_found(python: tuple[str, ...]) -> None:
    """By the steps that the probes take."""
    with running(python, TELL) as (pid, ident), memory_of(pid) as memory:
        _, _, runtime = runtime_in(pid)
        layout = layout_in(pid, memory)
        interpreter = memory.word(runtime + layout.interpreters_head)
        thread = memory.word(interpreter + layout.interpreter_threads)
        assert memory.word(thread + layout.thread_id) == ident
        assert memory.word(thread + layout.thread_next) == 0
        assert memory.word(interpreter + layout.interpreter_next) == 0
        check_threads(layout, runtime, memory)
        with pytest.raises(Refused, match="not where its version has them"):
            check_threads(dataclasses.replace(layout, thread_interpreter=layout.thread_id), runtime, memory)


def test_for_the_probes(python: tuple[str, ...]) -> None:
    with running(python, TELL) as (pid, _), memory_of(pid) as memory:
        fields = SPACE.unpack(layout_in(pid, memory).pack(1 << 40, 3))
        assert fields[:2] == (1 << 40, 3)
        sizes = fields[7], fields[13], fields[19]
        assert all(size % 8 == 0 and size <= WINDOW for size in sizes)


def published(version: int, free_threaded: int = 0, words: int = 60) -> Memory:
    head = struct.pack("<8sQQ", b"xdebugpy", version, free_threaded)
    return Image(head + struct.pack(f"<{words}Q", *[64] * words))  # type: ignore[return-value]


def test_refusals() -> None:
    for version in ((3, 7), (3, 15), (2, 7)):
        with pytest.raises(Refused, match=r"neither 3\.8 nor one up to 3\.14"):
            layout_of(version, 0, published(0x030D00F0))
    with pytest.raises(Refused, match="free-threaded"):
        layout_of((3, 13), 0, published(0x030D00F0, free_threaded=1))
    with pytest.raises(Refused, match="does not have the offsets"):
        layout_of((3, 13), 0, published(0x030E00F0))
    with pytest.raises(Refused, match="absurd"):
        damaged = struct.pack("<8sQQ60Q", b"xdebugpy", 0x030D00F0, 0, *[1 << 20] * 60)
        layout_of((3, 13), 0, Image(damaged))  # type: ignore[arg-type]
    assert isinstance(layout_of((3, 13), 0, published(0x030D00F0)), Layout)
