"""Changes of processes' address spaces as reported by the kernel: fork, exec, mmap and exit through perf events.

Reading /proc/PID/maps is too late for a process that lives for a millisecond; these records are not. Format: the
manual page perf_event_open(2) and include/uapi/linux/perf_event.h.
"""

from __future__ import annotations

import mmap
import os
import struct
import time
from collections.abc import Iterator
from typing import NamedTuple

from . import perf_events
from .shared_memory import store_u64, unmap

_PERF_COUNT_SW_DUMMY = 9
_PERF_SAMPLE_TIME = 1 << 2

# Bits of the flag word of struct perf_event_attr.
_MMAP, _COMM, _TASK, _SAMPLE_ID_ALL = 1 << 8, 1 << 9, 1 << 13, 1 << 18
_EXCLUDE_KERNEL, _MMAP2, _COMM_EXEC, _USE_CLOCKID, _BUILD_ID = 1 << 5, 1 << 23, 1 << 24, 1 << 25, 1 << 34
_WATERMARK = 1 << 14

_LOST, _COMM_RECORD, _EXIT, _FORK, _MMAP2_RECORD = 2, 3, 4, 7, 10
_MISC_COMM_EXEC = 1 << 13
_MISC_MMAP_BUILD_ID = 1 << 14

_HEADER = struct.Struct("<IHH")
_TIME = struct.Struct("<Q")
_POSITIONS = struct.Struct("QQ")
"""data_head and data_tail; native, so that each is read as a whole, and not byte by byte as with "<Q"."""
_TASK_BODY = struct.Struct("<IIII")
_MMAP2_BODY = struct.Struct("<IIQQQ24sII")
_RING_BYTES = 64 << 20
"""Maximum of all CPUs' rings together."""
_RING_PAGES = 1024, 16
"""Maximum and minimum of a ring. A thousand execs a second on one CPU write about 1 MB a second."""
_HEAD_OFFSET = 1024
"""Offset of data_head and data_tail in struct perf_event_mmap_page."""


class Fork(NamedTuple):
    """Process ``parent`` forked process ``pid``."""

    time: int
    pid: int
    parent: int


class Exec(NamedTuple):
    """``pid`` executed another program, whose name is ``comm``."""

    time: int
    pid: int
    comm: bytes


class Exit(NamedTuple):
    """The main thread of ``pid`` has exited."""

    time: int
    pid: int


class Mmap(NamedTuple):
    """``pid`` mapped executable memory. Either ``build_id`` or ``dev`` and ``inode`` are known."""

    time: int
    pid: int
    start: int
    length: int
    offset: int
    path: bytes
    dev: int
    inode: int
    build_id: str


Event = Fork | Exec | Exit | Mmap


def _open_event(cpu: int) -> int:
    """File descriptor for a dummy event on one CPU. OSError when the kernel refuses."""
    attr = perf_events.Attr(
        type=perf_events.TYPE_SOFTWARE,
        config=_PERF_COUNT_SW_DUMMY,
        sample_type=_PERF_SAMPLE_TIME,
        clockid=time.CLOCK_MONOTONIC,
        wakeup_watermark=1,
    )
    attr.flags = (
        _WATERMARK | _MMAP | _COMM | _TASK | _SAMPLE_ID_ALL | _EXCLUDE_KERNEL | _MMAP2 | _COMM_EXEC | _USE_CLOCKID
    )
    try:
        # Build-ids in MMAP2 since 5.12 (88a16a130933, "perf: Add build id data in mmap2 event"); else device and inode.
        attr.flags |= _BUILD_ID
        return perf_events.open_event(attr, cpu)
    except OSError:
        attr.flags &= ~_BUILD_ID
        return perf_events.open_event(attr, cpu)


class _Ring:
    """The ring buffer of one event: read from data_tail to data_head."""

    def __init__(self, fd: int, size: int) -> None:
        self.fd = fd
        self._memory = mmap.mmap(fd, mmap.PAGESIZE + size)
        self._size = size

    def read(self) -> bytes:
        head, tail = _POSITIONS.unpack_from(self._memory, _HEAD_OFFSET)
        if head == tail:
            return b""
        start, end = tail % self._size, head % self._size
        base = mmap.PAGESIZE
        if start < end:
            data = self._memory[base + start : base + end]
        else:
            data = self._memory[base + start : base + self._size] + self._memory[base : base + end]
        store_u64(self._memory, _HEAD_OFFSET + 8, head)
        return data

    def close(self) -> None:
        unmap(self._memory)
        os.close(self.fd)


class ProcessEvents:
    """The events of all processes, in time order. ``lost`` counts the records dropped because a ring was full;
    ``until`` is the time (CLOCK_MONOTONIC, ns) up to which `poll` has returned them."""

    def __init__(self) -> None:
        """OSError when the kernel does not allow us perf events."""
        self.lost = self.until = 0
        self._pending: list[Event] = []
        self._rings: list[_Ring] = []
        cpus = perf_events.online_cpus()
        most, least = _RING_PAGES
        pages = max(least, min(most, _RING_BYTES // mmap.PAGESIZE // len(cpus)))
        self._pages = 1 << (pages.bit_length() - 1)
        try:
            for cpu in cpus:
                self._rings.append(self._ring(cpu))
        except BaseException:
            self.close()
            raise

    def _ring(self, cpu: int) -> _Ring:
        """The largest that the kernel allows, if it limits locked memory (perf_event_mlock_kb, RLIMIT_MEMLOCK)."""
        fd = _open_event(cpu)
        while True:
            try:
                return _Ring(fd, self._pages * mmap.PAGESIZE)
            except OSError:
                if self._pages <= _RING_PAGES[1]:
                    os.close(fd)
                    raise
                self._pages //= 2

    @property
    def fds(self) -> list[int]:
        """Descriptors; one of them becomes readable when there are events."""
        return [ring.fd for ring in self._rings]

    def poll(self, *, final: bool = False) -> list[Event]:
        """The events since the last call.

        The rings are read one after another: events newer than the start of this call are held back for the next call,
        to keep events in order. ``final``: nothing is held back.
        """
        self.until = (1 << 64) if final else time.monotonic_ns()
        for ring in self._rings:
            self._pending.extend(self._parse(ring.read()))
        self._pending.sort(key=lambda event: event.time)
        ready = [event for event in self._pending if event.time < self.until]
        del self._pending[: len(ready)]
        return ready

    def close(self) -> None:
        for ring in self._rings:
            ring.close()
        self._rings = []

    def _parse(self, data: bytes) -> Iterator[Event]:
        position = 0
        while position + _HEADER.size <= len(data):
            kind, misc, size = _HEADER.unpack_from(data, position)
            if size < _HEADER.size + _TIME.size or position + size > len(data):
                return
            body = data[position + _HEADER.size : position + size]
            position += size
            if kind == _LOST:
                self.lost += int.from_bytes(body[8:16], "little")
            elif event := _event(kind, misc, body):
                yield event


def _event(kind: int, misc: int, body: bytes) -> Event | None:
    (when,) = _TIME.unpack_from(body, len(body) - 8)
    if kind in (_FORK, _EXIT):
        pid, parent, tid, _ = _TASK_BODY.unpack_from(body)
        if kind == _FORK:
            return Fork(when, pid, parent) if pid != parent else None
        return Exit(when, pid) if pid == tid else None
    if kind == _COMM_RECORD and misc & _MISC_COMM_EXEC:
        return Exec(when, int.from_bytes(body[:4], "little"), body[8:-8].split(b"\0")[0])
    if kind == _MMAP2_RECORD:
        pid, _, start, length, offset, identity, _, _ = _MMAP2_BODY.unpack_from(body)
        path = body[_MMAP2_BODY.size : -8].split(b"\0")[0]
        if misc & _MISC_MMAP_BUILD_ID:
            return Mmap(when, pid, start, length, offset, path, 0, 0, identity[4 : 4 + min(identity[0], 20)].hex())
        major, minor, inode = struct.unpack_from("<IIQ", identity)
        return Mmap(when, pid, start, length, offset, path, os.makedev(major, minor), inode, "")
    return None
