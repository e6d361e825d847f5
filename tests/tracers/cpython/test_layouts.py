"""Layouts against running interpreters."""

from __future__ import annotations

import dataclasses
import struct

import pytest
from pythons import layout_in, running, runtime_in
from stallscope.tracers.cpython.layouts import Layout, Refused, check_threads, layout_of
from stallscope.tracers.cpython.memory import Memory, memory_of
from stallscope.tracers.kernel.python import NO_STEP, SPACE, WINDOW

PTHREAD_TID = 0x2D0
"""Offset of the thread's id in glibc's struct pthread, as in bpf/include/gil.bpf.h."""
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
    """The main thread is found by the steps that the probes take."""
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


def test_the_interpreter_lock(python: tuple[str, ...]) -> None:
    """The lock is found by the steps that the probes take: the only thread has it, or had it last."""
    tell = (
        "import sys, threading\nnative = threading.get_native_id()\nprint(json.dumps([native, sys.version_info[:2]]))"
    )
    with running(python, tell) as (pid, (native, version)), memory_of(pid) as memory:
        _, _, runtime = runtime_in(pid)
        layout = layout_in(pid, memory)
        gil_at, gil_own, _, gil = SPACE.unpack(layout.pack(runtime + layout.interpreters_head, 3))[-4:]
        if version >= [3, 12]:
            assert gil == 0
            interpreter = memory.word(runtime + layout.interpreters_head + 8)
            gil = memory.word(interpreter + gil_at)
            assert gil == interpreter + gil_own
        thread = memory.word(gil + 8)
        if version >= [3, 11]:
            at = thread + layout.thread_native
        else:
            assert layout.thread_native == NO_STEP
            at = memory.word(thread + layout.thread_id) + PTHREAD_TID
        assert memory.word(at) & 0xFFFFFFFF == native
        assert memory.word(gil + 16) & 0xFFFFFFFF in (0, 1)


def test_an_interpreter_lock_that_is_not_known() -> None:
    """The lock's fields are not in the order that the probes expect."""
    layout = layout_of((3, 13), 0, published(0x030D00F0))
    assert (layout.gil, layout.gil_at, layout.gil_own) == (0, 0, 0)


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
    with pytest.raises(Refused, match="absurd"):
        # The version of a code object is before its names, which are the 39th member.
        damaged = struct.pack("<8sQQ60Q", b"xdebugpy", 0x030D00F0, 0, *[64] * 38, 0, *[64] * 21)
        layout_of((3, 13), 0, Image(damaged))  # type: ignore[arg-type]
    assert isinstance(layout_of((3, 13), 0, published(0x030D00F0)), Layout)
