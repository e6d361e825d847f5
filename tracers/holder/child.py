"""The process that makes, holds and closes the probes on files: started by `client.py`, as a script of its own.

The kernel removes a probe when the last descriptor of its link is closed, also in the exit of a process, and waits for
locks that others can hold (see `locked`). So these descriptors are here and nowhere else. This process is left alone
when it waits; it ends when the other side is gone and all probes are removed, which it does not do while that would
stop the host's forks.

Requests and answers are packets of a socket: `marshal` of (number, operation, arguments) and of (number, status,
result). Places come in shared memory, with room for an error of each.
"""

from __future__ import annotations

import contextlib
import errno
import marshal
import os
import select
import signal
import socket
import struct
import sys
from collections.abc import Callable
from mmap import mmap
from typing import Any

from ..outside.rights import keep_rights
from .links import Place, read_iterator
from .locked import stay_locked
from .making import close_all, make_possible

DONE, GOES_ON, LOCKED = 0, -1, -2
"""Status of an answer, if not a number of an error: there is progress, and the answer is still to come; nothing was
done, because address spaces are locked: the result is whose."""
PLACE = struct.Struct("=QQQ")
ERROR = struct.Struct("=i")
_CAPABILITIES = (21, 38, 39)
"""CAP_SYS_ADMIN, which the kernel demands for an event at a file (perf_uprobe_event_init()); CAP_PERFMON; CAP_BPF."""
_OWN = 4
"""The first descriptor behind ours: the standard ones and the socket."""
_LATE = (0.2, 1.0)
"""Seconds between two tries to remove probes: the first, and the longest."""
_GLANCE = 0.05
"""Seconds for which an address space is locked that was so before."""


class Server:
    """Answers requests until the other side is gone and nothing is held any more."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._number = 0
        self._iterator = -1
        self._held: dict[int, list[int]] = {}
        """Descriptors of links, by the client's number."""
        self._late: list[int] = []
        """Descriptors that could not be closed yet."""

    def run(self) -> None:
        poll = select.poll()
        poll.register(self._link, select.POLLIN)
        pause = _LATE[0]
        self._answer(GOES_ON, None)  # it has begun
        while True:
            if not poll.poll(pause * 1000 if self._late else None):
                pause = min(2 * pause, _LATE[1])
                self._close_late(_GLANCE)
                continue
            data, fds, _, _ = socket.recv_fds(self._link, 1 << 16, 64)
            if not data:
                break
            self._number, name, *arguments = marshal.loads(data)
            try:
                answer = getattr(self, f"do_{name}")(fds, *arguments)
            except OSError as failure:
                answer = failure.errno or errno.EIO, None
            finally:
                close_all(fds)
            self._answer(*answer)
        for fds in self._held.values():
            self._late += fds
        poll.unregister(self._link)
        pause = _LATE[0]
        while self._close_late(pause):
            poll.poll(pause * 1000)
            pause = min(2 * pause, _LATE[1])

    def _answer(self, status: int, result: Any) -> None:
        with contextlib.suppress(OSError):  # the other side is gone: seen when it is read from
            self._link.send(marshal.dumps((self._number, status, result)))

    def do_watch(self, fds: list[int]) -> tuple[int, Any]:
        """Takes the iterator that lists locked address spaces."""
        self._iterator = os.dup(fds[0])
        return DONE, None

    def do_attach(
        self, fds: list[int], key: int, how: tuple[int, list[int]], count: int, seconds: float
    ) -> tuple[int, Any]:
        """Makes links. ``how``: the attach type, 0 for single events, and the flags of each program. ``fds``: the file,
        the memory with so many places, and the programs. The result is the number of places that were refused: their
        errors are behind the places."""
        attach_type, flags = how
        if locked := self._locked(seconds):
            return LOCKED, locked
        file, memory, *programs = fds
        steps = list(zip(programs, flags, strict=True))
        with mmap(memory, count * (PLACE.size + ERROR.size)) as shared:
            places = [Place(*fields) for fields in PLACE.iter_unpack(shared[: count * PLACE.size])]
            made = make_possible(attach_type, steps, file, places, lambda: self._answer(GOES_ON, None))
            self._held[key] = made.fds
            if made.refused:
                shared[count * PLACE.size :] = b"".join(ERROR.pack(made.refused.get(place, 0)) for place in places)
        return DONE, len(made.refused)

    def do_close(self, fds: list[int], key: int, seconds: float) -> tuple[int, Any]:
        """Removes the probes of a request, at once or later."""
        self._late += self._held.pop(key, [])
        locked = self._close_late(seconds, lambda: self._answer(GOES_ON, None))
        return (LOCKED, locked) if locked else (DONE, None)

    def _close_late(self, seconds: float, goes_on: Callable[[], None] = lambda: None) -> list[int]:
        """Closes what is left to be closed, unless that would wait: then the result is for whom."""
        while self._late:
            if locked := self._locked(seconds):
                return locked
            os.close(self._late.pop(0))
            goes_on()
        return []

    def _locked(self, seconds: float) -> list[int]:
        return stay_locked(lambda: read_iterator(self._iterator), seconds) if self._iterator >= 0 else []


def serve(link: int, _parent: int) -> None:
    """Answers on a socket, by its descriptor."""
    keep_rights(_CAPABILITIES, "probes on files")
    # Its end removes the probes: that has to be when it is safe.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    Server(socket.socket(fileno=link)).run()


def main() -> None:
    # Descriptors that whoever started the command has left open: it may outlive the command.
    os.closerange(_OWN, 1 << 20)
    serve(*map(int, sys.argv[1:3]))
