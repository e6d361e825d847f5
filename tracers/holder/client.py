"""Asks the process that holds the probes on files (`child`) for them, and leaves it alone when it does not answer.

It does not answer while the kernel waits in it for an address space that somebody has locked after it had looked (see
`locked`): then no more probes are made. It is not killed: once the kernel goes on, it removes its probes and ends.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import marshal
import mmap
import os
import select
import socket
import threading
import time
from array import array
from collections.abc import Sequence
from typing import Any

from ...converters.base.text import printable
from ..outside.client import CLIENT
from ..outside.starting import KERNEL_TICKS, STATE, USER_TICKS, received, started, stat_of
from .child import ERROR, GOES_ON, LOCKED, PLACE, serve
from .links import Place

_LOOK = (1.0, 0.2, 0.05)
"""Seconds for which an address space has to be locked before it counts, by how often there was one; the last stays."""
_LOOK_AT_END = 0.3
_PATIENCE = 2.0
"""Seconds without an answer and without progress; a request with hundreds of places may take longer."""
_START = 20.0
"""Seconds for its start, which may have to wait for a slow disk: it holds nothing yet."""
_HURRY = 0.8
"""Seconds without an answer when the command is about to end."""
_LONGEST = 30.0
_SLICE = 0.1
_NAMED = 3
"""Processes in a sentence."""
_END = 0.5
"""Seconds for the process's end, when it holds nothing."""


class Withheld(OSError):
    """No probe was made, or removed: the kernel would make us wait for other processes."""

    def __init__(self, pids: Sequence[int] = ()) -> None:
        super().__init__(errno.EBUSY, "the kernel would wait for a locked address space")
        self.pids = list(pids)


class Holder:
    """One for this process."""

    def __init__(self) -> None:
        self._link: socket.socket | None = None
        self._keys = itertools.count(1)
        self._lock = threading.Lock()
        self._number = 0
        self._watches = False
        """Whether the process has an iterator."""
        self._found = 0
        """Number of times that an address space was locked."""
        self._hangs = self._hurries = self._has_begun = False
        self.pid = 0
        """The process; 0 while there is none."""
        self.left = False
        """Probes could not be removed yet."""
        self._is_lost = False
        """A process has ended with its probes."""
        self.locked: set[int] = set()
        """Processes whose address space was locked."""

    def begin(self) -> None:
        """Starts the process, so that it is there when it is needed; not any more if the command is about to end."""
        with self._lock, contextlib.suppress(OSError):
            if not self._hurries:
                self._started()

    def hurry(self) -> None:
        """The command is about to end: answers are no longer waited for as long."""
        self._hurries = True

    def attach(
        self,
        iterator: int | None,
        attach_type: int,
        programs: Sequence[tuple[int, int]],
        fd: int,
        places: Sequence[Place],
    ) -> tuple[int, dict[Place, int]]:
        """Puts probes on an open file: see `child.Server.do_attach`; ``programs`` with their flags. ``iterator``: the
        link of what lists locked address spaces, if there is one. Returns the key for `close`, and the places that were
        refused, with the number of the error. Withheld; OSError if the kernel refuses."""
        if self._hangs:
            raise Withheld(sorted(self.locked))
        count = len(places)
        memory = os.memfd_create("stallscope-places", os.MFD_CLOEXEC)
        try:
            os.ftruncate(memory, count * (PLACE.size + ERROR.size))
            with mmap.mmap(memory, count * (PLACE.size + ERROR.size)) as shared:
                shared[: count * PLACE.size] = b"".join(PLACE.pack(*place) for place in places)
                key = next(self._keys)
                fds = [fd, memory, *(program for program, _ in programs)]
                flags = [flag for _, flag in programs]
                with self._lock:
                    self._watch(iterator)
                    refused = self._ask(fds, "attach", key, (attach_type, flags), count, self._look())
                errors = [error for (error,) in ERROR.iter_unpack(shared[count * PLACE.size :])]
        finally:
            os.close(memory)
        return key, {place: error for place, error in zip(places, errors, strict=True) if error} if refused else {}

    def _watch(self, iterator: int | None) -> None:
        if iterator is not None and not self._watches:
            self._ask([iterator], "watch")
            self._watches = True

    def close(self, key: int) -> None:
        """Removes the probes of a request; later if the kernel would wait now."""
        with self._lock:
            if self._link is None:
                return
            try:
                self._ask([], "close", key, 0.0 if self.left else _LOOK_AT_END)
            except Withheld:
                self.left = True
            except OSError:
                pass  # the process has ended, and its probes with it

    def end(self) -> None:
        """Ends the process. If probes could not be removed yet, it does so and ends later."""
        with self._lock:
            link, self._link = self._link, None
            if link is None:
                return
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_WR)
                poll = select.poll()
                poll.register(link, 0)
                if not self.left and not self._hangs and poll.poll(_END * 1000):
                    os.waitpid(self.pid, 0)
            link.close()
            self._watches = False

    def _look(self) -> float:
        longest = _LOOK[min(self._found, len(_LOOK) - 1)]
        return min(longest, _LOOK_AT_END) if self._hurries else longest

    def _started(self) -> socket.socket:
        if self._link is None:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            try:
                self.pid = started("tracers.holder.child", (theirs.fileno(),), serve)
                CLIENT.pids.add(self.pid)
            except BaseException:
                ours.close()
                raise
            finally:
                theirs.close()
            self._link, self._has_begun = ours, False
        return self._link

    def _ask(self, fds: Sequence[int], name: str, *arguments: Any) -> Any:
        """The result. Withheld; OSError that the process has had, or if it has ended."""
        link = self._started()
        if self._hangs:
            raise Withheld
        self._number += 1
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", fds))] if fds else []
        try:
            link.sendmsg([marshal.dumps((self._number, name, *arguments))], rights)
            status, result = self._answer(link)
        except TimeoutError:
            self._hangs = self.left = True
            raise Withheld from None
        except ConnectionError:
            link.close()
            self._link, self._watches, self._is_lost = None, False, True
            raise OSError(errno.EIO, "the process that holds the probes has ended") from None
        if status == LOCKED:
            self._found += 1
            self.locked |= set(result)
            raise Withheld(result)
        if status:
            raise OSError(status, "refused")
        return result

    def _answer(self, link: socket.socket) -> tuple[int, Any]:
        """TimeoutError without one in time; ConnectionError if the process has ended."""
        poll = select.poll()
        poll.register(link, select.POLLIN)
        last, since, spent = time.monotonic() + _LONGEST, time.monotonic(), self._spent()
        while True:
            if not poll.poll(_SLICE * 1000):
                now, before, spent = time.monotonic(), spent, self._spent()
                if spent != before or stat_of(self.pid, STATE) == b"R":
                    since = now
                if now > last or now - since > self._patience():
                    raise TimeoutError
                continue
            since, self._has_begun = time.monotonic(), True
            data, fds = received(link)
            for fd in fds:
                os.close(fd)
            if not data:
                raise BrokenPipeError
            answered, status, result = marshal.loads(data)
            if answered == self._number and status != GOES_ON:
                return status, result

    def _patience(self) -> float:
        if self._hurries:
            return _HURRY
        return _PATIENCE if self._has_begun else _START

    def _spent(self) -> tuple[bytes, bytes]:
        """The processor time of the process."""
        return stat_of(self.pid, USER_TICKS), stat_of(self.pid, KERNEL_TICKS)

    def remarks(self) -> list[str]:
        """Sentences about probes that were not made, or could not be removed yet."""
        lost = ["the process that held the probes on files has ended, and they with it"] if self._is_lost else []
        if not self.locked and not self._hangs:
            return lost
        whose = ", ".join(map(_described, sorted(self.locked)[:_NAMED])) or "a process"
        more = f" and {len(self.locked) - _NAMED:,} more" if len(self.locked) > _NAMED else ""
        found = [
            *lost,
            f"{whose}{more} kept its address space locked: whoever puts a probe on a file, or removes one, would "
            "wait for it in the kernel, and all forks of the host with him",
        ]
        if self.left:
            found.append("probes on files will be removed when that ends")
        return found

    def forked(self) -> None:
        """Forgets the link in a forked process: what it could ask belongs to the other one."""
        link, self._link = self._link, None
        self._lock = threading.Lock()
        self._watches = False
        if link:
            link.close()


def _described(pid: int) -> str:
    """Nothing is read that the process can hold up."""
    try:
        with open(f"/proc/{pid}/comm", "rb") as file:
            name = file.read(64).decode("utf-8", "replace").rstrip("\n")
        return printable(f"process {pid} ({name}) of user {os.stat(f'/proc/{pid}').st_uid}")
    except OSError:
        return f"process {pid}"


HOLDER = Holder()
os.register_at_fork(after_in_child=HOLDER.forked)
