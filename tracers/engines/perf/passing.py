"""A process between ``perf record`` and ``perf script``, which passes on what the first one writes.

perf script keeps what a process had mapped when the process executes another program. It finds the tables that libc's
functions are unwound with from the lowest address at which the process ever mapped libc (read_unwind_spec_eh_frame() in
tools/perf/util/unwind-libunwind-local.c, since "perf unwind: Fix segbase for ld.lld linked objects", Linux 5.19). After
an exec that is the address of the program before wherever libc was lower there, and stacks end in libc. A command that
is started for the trace was hit in one to four of ten runs. So each exec is followed by a mapping that covers all
others.

What programs choose is changed where it would harm us (see `names`), and the tracer is told which records passed: it
believes no others in perf script's text (see `passed`).

The format is that of perf.data-file-format.txt, in its form for pipes, in the machine's order of bytes.
"""

from __future__ import annotations

import contextlib
import os
import signal
import struct
from collections.abc import Callable, Iterator

from . import names
from .layouts import Layouts

_MAGIC = b"PERFILE2"
_MMAP, _COMM, _MMAP2, _ATTR, _TRACING_DATA = 1, 3, 10, 64, 66
"""Types of records, of perf_event.h and tools/lib/perf/include/perf/event.h."""
_EXEC = 1 << 13
"""PERF_RECORD_MISC_COMM_EXEC."""
_USER = 2
_HAS_BUILD_ID = 1 << 14
"""PERF_RECORD_MISC_MMAP_BUILD_ID. While another tracer asks for build-ids, kernels mark every map of a file so, even in
what perf gets, which did not ask (perf_event_mmap_output() in kernel/events/core.c): perf 6.1 then aborts."""
_HEADER = struct.Struct("=IHH")
"""Type, misc, size."""
_MISC_AT = 4
_MAPPED = struct.Struct("=IIQQQIIQQII8s")
"""pid, tid, address, length, offset, major, minor, inode, its generation, protection, flags, name: which is one that
perf looks for no symbols in."""
_ALL = 1 << 47
"""Bytes that programs can have mapped."""
_READ = 1 << 20
_SMALLEST, _LARGEST = _HEADER.size + 8, 1 << 12
"""Bytes of a record with pid and tid, and of more than perf puts into one."""


class Passing:
    """The recording, as it comes."""

    def __init__(self) -> None:
        self.notices = bytearray()
        """Notices of the records in what `feed` has returned so far: see `passed`. The caller empties it."""
        self._layouts = Layouts()
        self._rest = b""
        self._skipped = len(_MAGIC) + 8
        """Bytes that follow and are no records: the header of the recording, or data that follow a record."""
        self._is_known = self._is_first = True

    def feed(self, data: bytes) -> Iterator[bytes | bytearray]:
        """Bytes to be passed on, of ``data``, which follows what was given before; b"" is the end."""
        is_end = not data
        data = self._rest + data
        if self._is_first and not is_end:
            if len(data) < len(_MAGIC):
                self._rest = data
                return
            self._is_known, self._is_first = data.startswith(_MAGIC), False
        if is_end or not self._is_known:
            yield data
            self._rest = b""
            return
        yield from self._records(bytearray(data))

    def _records(self, data: bytearray) -> Iterator[bytes | bytearray]:
        begin = at = 0
        while True:
            step = min(self._skipped, len(data) - at)
            at, self._skipped = at + step, self._skipped - step
            if at + _HEADER.size > len(data):
                break
            kind, misc, size = _HEADER.unpack_from(data, at)
            if size < (_HEADER.size + 4 if kind == _TRACING_DATA else _HEADER.size):
                self._is_known, at = False, len(data)
                break
            if at + size > len(data):
                break
            if kind == _TRACING_DATA:
                (self._skipped,) = struct.unpack_from("=I", data, at + _HEADER.size)
            elif kind == _ATTR:
                self._layouts.add(data[at : at + size])
            elif kind in (_MMAP, _MMAP2):
                _change_mapping(data, at, at + size)
            elif kind == _COMM:
                names.replace_comm(data, at, at + size)
            self.notices += self._layouts.notice(kind, data, at, at + size)
            at += size
            if kind == _COMM and misc & _EXEC and _SMALLEST <= size <= _LARGEST:
                yield data[begin:at]
                yield _covering(data[at - size : at])
                begin = at
        yield data[begin:at]
        self._rest = bytes(data[at:])


def _change_mapping(data: bytearray, at: int, end: int) -> None:
    kind, misc, _ = _HEADER.unpack_from(data, at)
    if kind == _MMAP2:
        data[at + _MISC_AT : at + _MISC_AT + 2] = struct.pack("=H", misc & ~_HAS_BUILD_ID)
    names.replace_mapped(data, at, end, has_protection=kind == _MMAP2)


def _covering(executed: bytearray) -> bytes:
    """The record of a mapping that covers all others of a process: of its record of exec, whose time and ids it has."""
    pid, tid = struct.unpack_from("=II", executed, _HEADER.size)
    name = _HEADER.size + 8
    end = executed.find(0, name)
    ids = name + ((end if end >= 0 else len(executed)) - name) // 8 * 8 + 8
    body = _MAPPED.pack(pid, tid, 0, _ALL, 0, 0, 0, 0, 0, 0, 0, b"[stack]") + executed[ids:]
    return _HEADER.pack(_MMAP2, _USER, _HEADER.size + len(body)) + body


def start(source: int, target: int, notices: int, prepare: Callable[[], None]) -> int:
    """Begins to pass on what comes from one descriptor to the other, and to write notices of it to a third. Returns
    the process's id.

    It is a copy of this process, since users who may run this program need not be able to run its interpreter.
    ``prepare`` is called in it.
    """
    # If SIGCHLD is ignored, which is inherited, the kernel keeps no exit status.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        prepare()
        for stream, fd in enumerate([os.dup(fd) for fd in (source, target, notices)]):
            os.dup2(fd, stream)
        _close_others()
        pass_on()
    finally:
        os._exit(1)


def _close_others() -> None:
    """Closes other descriptors, which would hide the end of a pipe. The limit of their numbers can be a thousand
    million."""
    for fd in map(int, os.listdir("/proc/self/fd")):
        if fd > 2:
            with contextlib.suppress(OSError):
                os.close(fd)


def pass_on() -> None:
    """Passes on from standard input to standard output, notices to the place of standard error, until the end; then the
    process ends."""
    passing, goes_on = Passing(), True
    while goes_on:
        data = os.read(0, _READ)
        goes_on = bool(data)
        for part in passing.feed(data):
            # Before perf script can print anything of it.
            _write(2, passing.notices)
            passing.notices = bytearray()
            _write(1, part)
    os._exit(0)


def _write(fd: int, data: bytes | bytearray) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left) :]
