"""Stacks of threads that are asleep when the trace begins, for kernels whose programs cannot read other tasks' memory.

An iterator lists the threads with their registers. For each, user space reads the memory that the walk requests and
runs the probes' own unwinder on it (`scope_walk` in bpf/scope.bpf.c), until the walk ends. A second run of the
iterator adopts the results, for threads that are still in the same wait.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
from collections import defaultdict
from ctypes import c_uint16, c_uint32, c_uint64

from .bpfobject import Link, Object

_REQUEST_WORDS = 192
_PAGE = 4096
_MOST_READS = 1024
"""Maximum reads per walk: only a stack whose memory keeps changing could request more."""
_SLEEPER = struct.Struct("<IIQQQQQ")
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
        ("pad", c_uint32),
        ("word", c_uint64 * _REQUEST_WORDS),
    ]


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
        """Walks every sleeping thread in scope whose user stack is not complete."""
        by_process: dict[int, list[tuple[int, int, tuple[int, int, int, int]]]] = defaultdict(list)
        for tid, tgid, out, *registers in _SLEEPER.iter_unpack(self._iterator.read_iterator()):
            ip, sp, bp, fs = registers
            by_process[tgid].append((tid, out, (ip, sp, bp, fs)))
        keys = []
        for tgid, threads in by_process.items():
            try:
                memory = os.open(f"/proc/{tgid}/mem", os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                continue  # exited
            try:
                for tid, out, where in threads:
                    stack, end = self._stack(memory, (tid, tgid), where)
                    key = tid.to_bytes(4, "little")
                    self._walked.update(key, _WALKED.pack(out, stack, end))
                    keys.append(key)
            finally:
                os.close(memory)
        if keys:
            self._iterator.read_iterator()
        for key in keys:
            self._walked.delete(key)

    def _stack(self, memory: int, thread: tuple[int, int], registers: tuple[int, int, int, int]) -> tuple[int, int]:
        """A stack's id and its `enum walk_end`; (0, …) when it has none. ``thread``: its id and its process's.
        ``registers``: ip, sp, bp and the base of fs."""
        request = self._request
        request.ip, request.sp, request.bp, request.fs = registers
        request.tid, request.tgid = thread
        request.begins, request.words = 1, 0
        for _ in range(_MOST_READS):
            self._walk.run_as_test()
            if not request.reads:
                break
            request.window = request.want
            request.words = _read(memory, request.want, request.word)  # 0 ends the walk
        return request.id, request.end

    def close(self) -> None:
        self._iterator.close()
        del self._request
        self._memory.close()


def _read(memory: int, address: int, words: ctypes.Array[c_uint64]) -> int:
    """Reads from ``address`` on, as far as memory is mapped; returns the number of words."""
    if address % 8:
        return 0
    for size in (ctypes.sizeof(words), min(_PAGE - address % _PAGE, ctypes.sizeof(words))):
        try:
            data = os.pread(memory, size, address)
        except (OSError, OverflowError):
            continue
        count = len(data) // 8
        ctypes.memmove(words, data, count * 8)
        return count
    return 0
