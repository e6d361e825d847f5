from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator

import pytest
from stallscope.tracers.kernel.sleepers import _MOST_READS, _REQUEST_WORDS, Pages, _read, _Request
from stallscope.tracers.outside.reads import Memory

PAGE = 4096


@pytest.fixture
def words() -> ctypes.Array[ctypes.c_uint64]:
    return (ctypes.c_uint64 * _REQUEST_WORDS)()


@pytest.fixture
def pages() -> Iterator[Pages]:
    memory = Memory(os.getpid())
    yield Pages(memory)
    memory.close()


def test_layout_is_that_of_the_header() -> None:
    """struct walk_request of bpf/scope.bpf.c: seven words, two halves, four quarters, then the window."""
    assert _Request.word.offset == 7 * 8 + 2 * 4 + 4 * 2 + 2 * 4
    assert ctypes.sizeof(_Request) == _Request.word.offset + 8 * _REQUEST_WORDS
    assert _MOST_READS > 127 * 3


def test_reads_words_from_where_it_is_asked(pages: Pages, words: ctypes.Array[ctypes.c_uint64]) -> None:
    source = (ctypes.c_uint64 * 400)(*range(400))
    assert _read(pages, ctypes.addressof(source) + 8, words) == _REQUEST_WORDS
    assert list(words)[:3] == [1, 2, 3]


@pytest.mark.parametrize("address", [0, 7, 8, 1 << 63, (1 << 64) - 8])
def test_reads_nothing_where_nothing_can_be(address: int, pages: Pages, words: ctypes.Array[ctypes.c_uint64]) -> None:
    assert _read(pages, address, words) == 0


def test_reads_up_to_the_end_of_the_mapping(pages: Pages, words: ctypes.Array[ctypes.c_uint64]) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, *[ctypes.c_size_t] * 5]
    area = libc.mmap(None, 2 * PAGE, 3, 0x22, (1 << 64) - 1, 0)  # PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    libc.munmap(area + PAGE, PAGE)
    assert _read(pages, area + PAGE - 80, words) == 10
    libc.munmap(area, PAGE)
