"""Starts the processes that can be abandoned, and receives what they send: those of `client` and of `holder.client`."""

from __future__ import annotations

import os
import signal
import socket
import sys
from array import array
from collections.abc import Callable, Sequence
from itertools import pairwise

FIRST = 3
"""The number of the first descriptor that is passed."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)
_PACKET = 1 << 17
_FDS = 256
"""Descriptors in an answer."""
STATE, USER_TICKS, KERNEL_TICKS, BEGAN = 0, 11, 12, 19
"""Fields behind the name in /proc/PID/stat: proc(5)."""


def started(module: str, fds: Sequence[int], serve: Callable[..., None]) -> int:
    """Starts ``main`` of a module, with these descriptors and no others; returns the process's id. It imports its own
    package, and none of the project's parents that the name leaves out: they would take longer.

    ``serve`` does the same in a copy of this process, with the descriptors and our process id."""
    folder = os.path.abspath(__file__)
    for _ in range(1 + module.count(".")):
        folder = os.path.dirname(folder)
    code = f"import sys; sys.path.append(sys.argv.pop()); from {module} import main; main()"
    numbers = [str(number) for number in range(FIRST, FIRST + len(fds))]
    words = [sys.executable, "-I", "-S", "-c", code, *numbers, str(os.getpid()), folder]
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    # Numbers that none of the final ones is, so that no copy replaces one that is still needed.
    copies = [os.dup(fd) for fd in fds]
    high = [_above(fd) for fd in copies]
    actions = [(os.POSIX_SPAWN_DUP2, null, fd) for fd in range(FIRST)]
    actions += [(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate(high, FIRST)]
    try:
        return os.posix_spawn(
            sys.executable, words, {}, file_actions=actions, setsid=True, setsigmask=(), setsigdef=_SIGNALS
        )
    except PermissionError:
        if os.geteuid() == 0:
            raise
        return _copied(fds, serve)
    finally:
        for fd in (null, *copies, *high):
            os.close(fd)


def _copied(fds: Sequence[int], serve: Callable[..., None]) -> int:
    """Starts a copy of this process: its user may not execute the interpreter, as after a change of user."""
    parent = os.getpid()
    if pid := os.fork():
        return pid
    try:
        os.setsid()
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        kept = sorted((-1, *fds, os.sysconf("SC_OPEN_MAX")))
        for below, above in pairwise(kept):
            os.closerange(below + 1, above)
        serve(*fds, parent)
    finally:
        os._exit(0)


def _above(fd: int) -> int:
    import fcntl

    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 16)


def received(link: socket.socket) -> tuple[bytes, list[int]]:
    """A packet; the descriptors that come with it are closed at an exec."""
    fds = array("i")
    data, ancillary, _, _ = link.recvmsg(_PACKET, socket.CMSG_SPACE(_FDS * fds.itemsize), socket.MSG_CMSG_CLOEXEC)
    for level, kind, content in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            fds.frombytes(content[: len(content) // fds.itemsize * fds.itemsize])
    return data, fds.tolist()


def stat_of(pid: int, field: int) -> bytes:
    """A field behind the name in /proc/PID/stat, which asks nobody; b"" when the process is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read(4096).rpartition(b")")[2].split()[field]
    except (OSError, IndexError):
        return b""
