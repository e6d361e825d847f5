"""Stacks of threads that are asleep when the trace begins, or whose stacks are not complete.

An iterator lists the threads with their registers. For each, user space reads the memory that the walk requests and
runs the probes' own unwinder on it (`scope_walk` in bpf/scope.bpf.c), until the walk ends. A second run of the
iterator adopts the results, for threads that are still in the same wait. The programs read no other task's memory: its
user could make them wait for ever.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
from collections import defaultdict
from collections.abc import Iterable
from ctypes import c_uint16, c_uint32, c_uint64
from typing import NamedTuple

from ..outside.reads import Memory
from .bpfobject import Link, Object
from .shared_memory import unmap

_REQUEST_WORDS = 192
_PAGE = 4096
_HIGHEST = 1 << 63
_MOST_READS = 1024
"""Maximum reads per walk: only a stack whose memory keeps changing could request more."""
_AT_ONCE = 1 << 14
"""Bytes from its stack pointer that are read for each thread before its walk: most stacks are not larger."""
_THREADS = 128
"""Threads for which that is done in one go."""
_PAGES = 2
"""Pages that are read when another one is needed: a window may begin at the end of one."""
_SLEEPER = struct.Struct("<IIQQQQQI4x")
_WALKED = struct.Struct("<QQQ")


class _Request(ctypes.Structure):
    """struct walk_request of bpf/scope.bpf.c."""

    _fields_ = [
        ("ip", c_uint64),
        ("sp", c_uint64),
        ("bp", c_uint64),
        ("fs", c_uint64),
        ("window", c_uint64),
        ("want", c_uint64),
        ("id", c_uint64),
        ("tgid", c_uint32),
        ("words", c_uint32),
        ("begins", c_uint16),
        ("reads", c_uint16),
        ("end", c_uint16),
        ("python", c_uint16),
        ("tid", c_uint32),
        ("narrow", c_uint32),
        ("word", c_uint64 * _REQUEST_WORDS),
    ]


class Sleeper(NamedTuple):
    """A thread that waits: since when, and the registers where its walk begins."""

    tid: int
    tgid: int
    out: int
    ip: int
    sp: int
    bp: int
    fs: int
    narrow: int = 0


class Pages:
    """Pages of a process's memory, each read once. Those of a thread that waits do not change; of others the walk may
    find an old state, as it may when it reads them at different moments."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._known: dict[int, bytes] = {}

    def expect(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Reads ranges that will be needed: (begin, end). OSError if the process is gone, or does not answer."""
        wanted = [(begin & -_PAGE, end + _PAGE - 1 & -_PAGE) for begin, end in ranges]
        found = self._memory.read_some([(begin, end - begin) for begin, end in wanted])
        for (begin, end), data in zip(wanted, found, strict=True):
            for at in range(0, end - begin, _PAGE):
                self._known[begin + at] = data[at : at + _PAGE]

    def at(self, address: int, size: int) -> bytes:
        """Bytes at an address, as far as it is mapped. OSError as above."""
        data, at = b"", address
        while len(data) < size:
            page = at & -_PAGE
            if page not in self._known:
                self.expect([(page, page + _PAGES * _PAGE)])
            part = self._known[page][at - page :]
            data += part
            if len(part) < _PAGE - (at - page):
                break
            at = page + _PAGE
        return data[:size]


class Sleepers:
    """Walks the stacks of sleeping threads from user space."""

    def __init__(self, loaded: Object, iterator: str) -> None:
        """``iterator``: the name of the program that lists the threads. BpfError when it cannot be attached."""
        self._walk = loaded.programs["scope_walk"]
        self._walked = loaded.find_map("walked_stacks")
        request = loaded.find_map("walk_request")
        size = (ctypes.sizeof(_Request) + mmap.PAGESIZE - 1) // mmap.PAGESIZE * mmap.PAGESIZE
        self._memory = mmap.mmap(request.fd, size)
        self._request = _Request.from_buffer(self._memory)
        self._iterator: Link = loaded.programs[iterator].attach_iterator()

    def restack(self) -> None:
        """Walks every waiting thread in scope whose user stack is not complete."""
        by_process: dict[int, list[Sleeper]] = defaultdict(list)
        for fields in _SLEEPER.iter_unpack(self._iterator.read_iterator()):
            thread = Sleeper(*fields)
            by_process[thread.tgid].append(thread)
        keys = []
        for tgid, threads in by_process.items():
            memory = Memory(tgid)
            try:
                for first in range(0, len(threads), _THREADS):
                    keys += self._walk_some(memory, threads[first : first + _THREADS])
            except OSError:
                continue  # exited, or its memory cannot be read
            finally:
                memory.close()
        if keys:
            self._iterator.read_iterator()
        for key in keys:
            self._walked.delete(key)

    def _walk_some(self, memory: Memory, threads: list[Sleeper]) -> list[bytes]:
        """Walks threads of a process; returns the keys of the results."""
        pages = Pages(memory)
        pages.expect((thread.sp, thread.sp + _AT_ONCE) for thread in threads if thread.sp < _HIGHEST)
        keys = []
        for thread in threads:
            stack, end = self._stack(pages, thread)
            key = thread.tid.to_bytes(4, "little")
            self._walked.update(key, _WALKED.pack(thread.out, stack, end))
            keys.append(key)
        return keys

    def _stack(self, pages: Pages, thread: Sleeper) -> tuple[int, int]:
        """A stack's id and its `enum walk_end`; (0, …) when it has none. OSError if the process does not answer."""
        request = self._request
        request.ip, request.sp, request.bp, request.fs = thread.ip, thread.sp, thread.bp, thread.fs
        request.tid, request.tgid, request.narrow = thread.tid, thread.tgid, thread.narrow
        request.begins, request.words = 1, 0
        for _ in range(_MOST_READS):
            self._walk.run_as_test()
            if not request.reads:
                break
            request.window = request.want
            request.words = _read(pages, request.want, request.word)  # 0 ends the walk
        return request.id, request.end

    def close(self) -> None:
        self._iterator.close()
        del self._request
        unmap(self._memory)


def _read(pages: Pages, address: int, words: ctypes.Array[c_uint64]) -> int:
    """Reads from ``address`` on, as far as memory is mapped; returns the number of words."""
    if address % 8 or address >= _HIGHEST:
        return 0
    data = pages.at(address, ctypes.sizeof(words))
    count = len(data) // 8
    ctypes.memmove(words, data, count * 8)
    return count
