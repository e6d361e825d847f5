"""The process that compiles unwind tables, so that neither its memory use nor a crash affects the tracer.

Files arrive as descriptors over a socket, its standard input, with the niceness to work at; one answer is sent
back for each, see `answer`. It exits when the other end of the socket is closed, but first finishes its current file
and stores the table in the cache.

What reads instructions and tables, in part by a native library, is a second process without rights: a copy of this
one. It gets files, and gives tables; which table is whose, and what is kept, is not its business.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import platform
import resource
import signal
import socket
import sys
from collections.abc import Callable

from ...converters.base.confining import confine
from ..images.elf import ElfError, ElfFile, FileSource
from .cache import MAX_TABLE, Entry, TableCache, decode, encode
from .compiler import UnwindError, compile_sections
from .rows import UnwindTable
from .sections import find_sections

MEMORY = 1 << 30
"""Limit for the process's own memory, in bytes."""
CPU_SECONDS = 120
"""Limit for one file."""
_SYS_IOPRIO_SET = {"x86_64": 251, "aarch64": 30}
_IOPRIO_WHO_PROCESS, _IOPRIO_IDLE = 1, 3 << 13  # ioprio_set(2)


class Reply:
    """An answer's text, and the descriptor of the table in its on-disk form; -1: there is none."""

    def __init__(self, problem: str, uncached: str = "", fd: int = -1) -> None:
        """``problem``: why there is no table; ``uncached``: why it was not kept."""
        self.text = json.dumps([problem[:1000], uncached[:1000]]).encode()
        self.fd = fd


def main() -> None:
    """``argv[1]`` is the cache's folder."""
    _be_modest()
    with socket.socket(fileno=0) as channel:
        compiler = Compiler(channel)
        serve(channel, TableCache(sys.argv[1]), compiler.table)


class Compiler:
    """The process without rights."""

    def __init__(self, channel: socket.socket) -> None:
        """``channel``: what it must not have."""
        _import_all()
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # If SIGCHLD is ignored, which is inherited, the kernel keeps no exit status.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                channel.close()
                self._channel.close()
                confine()
                _compile_all(theirs)
            finally:
                os._exit(1)
        theirs.close()

    def table(self, fd: int, entry: Entry) -> UnwindTable:
        """The table of an open file. UnwindError with the reason if there is none. If the process ends,
        this one ends in the same way."""
        try:
            socket.send_fds(self._channel, [entry.digest], [fd])
            text, fds, _, _ = socket.recv_fds(self._channel, 1 << 14, 1)
        except OSError:
            text, fds = b"", []
        if not text:
            self._end_like_it()
        if not fds:
            raise UnwindError(text.decode(errors="replace")[1:])
        with open(fds[0], "rb") as file:
            file.seek(0)
            table = decode(file.read(MAX_TABLE), entry.digest)
        if table is None:
            raise UnwindError("its table is damaged")
        return table

    def _end_like_it(self) -> None:
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        if status < 0:
            signal.signal(-status, signal.SIG_DFL) if -status != signal.SIGKILL else None
            os.kill(os.getpid(), -status)
        os._exit(max(status, 1))


def _import_all() -> None:
    """Imports what compiling needs, as long as there are rights to read it."""
    import lzma

    import capstone
    import numpy as np
    import zstandard

    del lzma, capstone, np, zstandard


def _compile_all(channel: socket.socket) -> None:
    """Compiles in the process without rights: a file and its digest, again and again."""
    while True:
        digest, fds, _, _ = socket.recv_fds(channel, 64, 1)
        if not digest or not fds:
            os._exit(0)
        _allow_cpu_time()
        table, problem = None, ""
        try:
            elf = ElfFile(FileSource(fds[0]))
            table = compile_sections(elf, find_sections(elf))
        except (UnwindError, ElfError) as error:
            problem = str(error) or "no table"
        except MemoryError:
            problem = "not enough memory"
        except Exception as error:  # a bug triggered by a file costs only that file
            problem = f"{type(error).__name__}: {error}"
        memory = _in_memory(encode(digest, table)) if table is not None else -1
        socket.send_fds(channel, [b"." + problem[:1000].encode(errors="replace")], [memory] if memory >= 0 else [])
        for fd in (fds[0], memory):
            if fd >= 0:
                os.close(fd)


def _in_memory(content: bytes) -> int:
    memory = os.memfd_create("unwind table", os.MFD_CLOEXEC)
    with open(memory, "wb", closefd=False) as file:
        file.write(content)
    return memory


def compile_here(fd: int, _: Entry) -> UnwindTable:
    """The table of an open file, by this process. UnwindError, ElfError."""
    elf = ElfFile(FileSource(fd))
    return compile_sections(elf, find_sections(elf))


Compile = Callable[[int, Entry], UnwindTable]


def serve(channel: socket.socket, cache: TableCache, make: Compile = compile_here) -> None:
    """Answers requests until the other end is closed."""
    while True:
        message, fds, _, _ = socket.recv_fds(channel, 16, 1)
        if not message or not fds:
            return
        _allow_cpu_time()
        with contextlib.suppress(OSError, ValueError):
            os.setpriority(os.PRIO_PGRP if make is not compile_here else os.PRIO_PROCESS, 0, int(message))
        reply = answer(fds[0], cache, make)
        os.close(fds[0])
        try:
            socket.send_fds(channel, [reply.text], [reply.fd] if reply.fd >= 0 else [])
        except OSError:
            return
        finally:
            if reply.fd >= 0:
                os.close(reply.fd)


def answer(fd: int, cache: TableCache, make: Compile = compile_here) -> Reply:
    """The table of an open ELF file, from the cache if another process has stored it there meanwhile."""
    try:
        elf = ElfFile(FileSource(fd))
        sections = find_sections(elf)
        entry = cache.entry(elf, sections)
        with cache.claim(entry):
            table = cache.find(entry)
            if table is None:
                table = make(fd, entry)
                cache.keep(entry, table)
        return Reply("", cache.problem, _in_memory(encode(entry.digest, table)))
    except (UnwindError, ElfError) as error:
        return Reply(str(error) or "no table")
    except MemoryError:
        return Reply("not enough memory")
    except Exception as error:  # a bug triggered by a file costs only that file
        return Reply(f"{type(error).__name__}: {error}")


def _be_modest() -> None:
    """Limits what this process takes from others; failures are ignored."""
    for act in (
        lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
        lambda: _limit(resource.RLIMIT_CORE, 0),
        lambda: _limit(resource.RLIMIT_DATA, MEMORY),
        lambda: _write("/proc/self/oom_score_adj", "1000"),
        lambda: _write("/proc/self/comm", "unwind tables"),
        _disk_when_idle,
    ):
        _try(act)


def _try(act: Callable[[], object]) -> None:
    with contextlib.suppress(OSError, ValueError, KeyError, AttributeError):
        act()


def _limit(what: int, most: int) -> None:
    soft, hard = resource.getrlimit(what)
    limits = [limit for limit in (most, soft, hard) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(what, (min(limits), hard))


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def _disk_when_idle() -> None:
    ctypes.CDLL(None).syscall(_SYS_IOPRIO_SET[platform.machine()], _IOPRIO_WHO_PROCESS, 0, _IOPRIO_IDLE)


def _allow_cpu_time() -> None:
    """Allows CPU time for the next file; SIGXCPU ends the process if it needs more."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _try(lambda: _limit_cpu(int(used.ru_utime + used.ru_stime) + CPU_SECONDS))


def _limit_cpu(seconds: int) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds if hard == resource.RLIM_INFINITY else min(seconds, hard), hard))


if __name__ == "__main__":
    main()
