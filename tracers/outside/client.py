"""Asks the process that reads others (`child`), waits for each answer only so long, and abandons it if none comes.

A process or folder that has made it wait is not asked about again. After a few of one user nothing of this user is
read any more, and after more of them nothing at all: what could not be read is told by `remarks`.
"""

from __future__ import annotations

import contextlib
import errno
import marshal
import mmap
import os
import select
import signal
import socket
import threading
import time
from array import array
from collections import Counter
from collections.abc import Collection
from typing import Any

from ...converters.base.units import plural
from .child import GOES_ON, REFUSED, serve
from .lookups import ABOUT, SHARED
from .owners import NOT_ASKED, UNKNOWN, user_of
from .starting import BEGAN, STATE, received, started, stat_of

_PATIENCE = (1.0, 0.4, 0.2, 0.1)
"""Seconds for an answer, by how often there was none; the last one stays."""
_HURRY = 0.2
"""Seconds for an answer when the command is about to end."""
_LONGEST = 2.0
"""Seconds for an answer that makes progress."""
_MOST, _MOST_OF_ROOT, _MOST_OF_USER = 12, 8, 3
"""Processes that may be abandoned: for all, for root's, and for any other user's. Users are looked up only from the
first silence on, so that one more than a share may be of a user."""


class NotRead(OSError):
    """The process or its files were not read: they do not answer."""


class _Child:
    """The process, and what is shared with it."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        memory = os.memfd_create("stallscope-outside", os.MFD_CLOEXEC)
        try:
            os.ftruncate(memory, SHARED + ABOUT)
            self.shared = mmap.mmap(memory, SHARED + ABOUT)
            self.pid = started("outside.child", (theirs.fileno(), memory), serve)
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
            os.close(memory)
        self.link = ours

    def kill(self) -> None:
        """Ends it; it is not waited for: it may wait in the kernel."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self.link.close()

    def is_gone(self) -> bool:
        """Whether it has ended; it is then reaped."""
        with contextlib.suppress(ChildProcessError):
            return os.waitpid(self.pid, os.WNOHANG)[0] != 0
        return True


class Client:
    """One for this process. What it returns is hostile input."""

    def __init__(self) -> None:
        self._child: _Child | None = None
        self._lock = threading.Lock()
        self._number = 0
        self._left: list[_Child] = []
        """Abandoned processes that may still exist."""
        self._silences: Counter[int] = Counter()
        """Number of abandoned processes, by the user who made us wait."""
        self._refused: list[int] = []
        """Users of whom nothing is read any more."""
        self._silent: dict[int, bytes] = {}
        """Processes that made us wait, and when each began."""
        self._folders: set[str] = set()
        self._hurries = False
        self.unread: Counter[str] = Counter()
        """Number of requests without an answer, or that were not made for that reason, by what was asked about."""
        self.pids: set[int] = set()
        """Processes of ours that are no part of what is traced: those that read others, and those that hold probes."""
        self.partly: set[int] = set()
        """Processes of whose maps a part was read."""

    def begin(self) -> None:
        """Starts the process, so that it is there when it is needed."""
        with self._lock, contextlib.suppress(OSError):
            self._started()

    def hurry(self) -> None:
        """The command is about to end: answers are no longer waited for as long."""
        self._hurries = True

    def ask(self, name: str, *arguments: Any, pid: int = 0, folder: str = "", root: int | None = None) -> Any:
        """The result, with the descriptors that came with it, and the shared memory, which is valid until the next
        request: see `child.Server`. ``pid`` or ``folder``: what is asked about. OSError."""
        if self._abandoned() >= _MOST or (pid and self.is_silent(pid)) or folder in self._folders:
            self.unread["later"] += 1
            raise NotRead(errno.ETIMEDOUT, "not read: it has not answered before")
        with self._lock:
            child = self._started()
            self._number += 1
            number = self._number
            child.shared[SHARED : SHARED + ABOUT] = bytes(8) + NOT_ASKED.to_bytes(8, "little", signed=True)
            try:
                self._send(child, (number, name, self._refused if self._silences else None, *arguments), root)
                error, result, fds = self._answer(child, number)
            except ConnectionError:
                self._lose(child)
                raise NotRead(errno.EIO, "the process that reads has ended") from None
            except TimeoutError:
                self._abandon(child, pid, folder)
                raise NotRead(errno.ETIMEDOUT, "not read in time") from None
            if error == REFUSED:
                self.unread["later"] += 1
                raise NotRead(errno.ETIMEDOUT, "not read: others of this user have not answered before")
            if error:
                raise OSError(error, result or os.strerror(error))
            return result, fds, child.shared

    def tell(self, name: str, *arguments: Any) -> None:
        """A request without an answer, to a process that is there."""
        with self._lock, contextlib.suppress(OSError):
            if self._child:
                self._child.link.send(marshal.dumps((0, name, None, *arguments)), socket.MSG_DONTWAIT)

    def is_silent(self, pid: int) -> bool:
        """Whether this process has made us wait."""
        return bool(self._silent) and pid in self._silent and self._silent[pid] == _began(pid)

    def _started(self) -> _Child:
        self._left = [child for child in self._left if not child.is_gone()]
        if self._child is None:
            self._child = _Child()
            self.pids.add(self._child.pid)
        return self._child

    @staticmethod
    def _send(child: _Child, request: tuple[Any, ...], root: int | None) -> None:
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", [root]))] if root is not None else []
        child.link.sendmsg([marshal.dumps(request)], rights)

    def _answer(self, child: _Child, number: int) -> tuple[int, Any, list[int]]:
        """TimeoutError without one in time; ConnectionError if the process has ended."""
        poll = select.poll()
        poll.register(child.link, select.POLLIN)
        last = time.monotonic() + _LONGEST
        while True:
            if not poll.poll(min(self._patience(), max(last - time.monotonic(), 0)) * 1000):
                if time.monotonic() < last and stat_of(child.pid, STATE) == b"R":
                    continue  # it works, or has no core
                raise TimeoutError
            data, fds = received(child.link)
            if not data:
                raise BrokenPipeError
            answered, error, result = marshal.loads(data)
            if answered == number and error != GOES_ON:
                return error, result, fds
            for fd in fds:  # of a request that Ctrl-C has interrupted
                os.close(fd)

    def _patience(self) -> float:
        longest = _PATIENCE[min(self._abandoned(), len(_PATIENCE) - 1)]
        return min(longest, _HURRY) if self._hurries else longest

    def _abandon(self, child: _Child, pid: int, folder: str) -> None:
        about = child.shared[SHARED : SHARED + ABOUT]
        pid = int.from_bytes(about[:8], "little") or pid
        user = int.from_bytes(about[8:], "little", signed=True)
        if user == NOT_ASKED:
            user = user_of(pid) if pid and not folder else UNKNOWN
        self._lose(child)
        self._silences[user] += 1
        if self._silences[user] == (_MOST_OF_USER if user else _MOST_OF_ROOT):
            self._refused.append(user)
        if pid:
            self._silent[pid] = _began(pid)
        if folder:
            self._folders.add(folder)

    def _abandoned(self) -> int:
        return sum(self._silences.values())

    def _lose(self, child: _Child) -> None:
        child.kill()
        self._left.append(child)
        self._child = None

    def remarks(self) -> list[str]:
        """Sentences about what was not read."""
        found = []
        if self._silences:
            whose = plural(len(self._silent), "process")
            folders = f" and {plural(len(self._folders), 'folder')}" if self._folders else ""
            found.append(
                f"memory or files of {whose}{folders} could not be read in time, of {_named(self._silences)}: names, "
                "and the stacks of waits that began before the trace, are missing there"
            )
        if self._refused:
            found.append(f"nothing more was read of {_named(self._refused)}, of whom several did not answer")
        if self._abandoned() >= _MOST:
            found.append(f"after {_MOST} of them nothing of other processes was read")
        if self.partly:
            found.append(f"maps of {plural(len(self.partly), 'process')} are too long, and were read in part")
        return found

    def close(self) -> None:
        """Ends the process."""
        with self._lock:
            if self._child:
                self._lose(self._child)

    def forked(self) -> None:
        """Forgets the child in a forked process: it goes on for the other one."""
        child, self._child = self._child, None
        self._left = []
        self._lock = threading.Lock()
        if child:
            child.link.close()


def _named(users: Collection[int]) -> str:
    known = sorted(user for user in users if user >= 0)
    words = [f"user{'s' * (len(known) > 1)} {', '.join(map(str, known))}"] if known else []
    return " and ".join([*words, *(["unknown users"] if UNKNOWN in users else [])])


def _began(pid: int) -> bytes:
    """Time when a process began, by the kernel's clock; b"" when it is gone."""
    return stat_of(pid, BEGAN)


CLIENT = Client()
os.register_at_fork(after_in_child=CLIENT.forked)
