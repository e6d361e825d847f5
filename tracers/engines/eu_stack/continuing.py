"""Threads that eu-stack has left stopped are continued, also when both it and this process are killed.

ptrace(2): where a tracer dies while a thread is stopped for it, the thread takes the signal that it was stopped with,
which is SIGSTOP for those that were just attached to. Whoever is killed does nothing any more; so this is a process in
a session of its own, which a signal to a group or to us does not reach. It is a copy of this one, since users who may
run this program need not be able to run its interpreter, and ends when we do. It is told ``PID BEGAN`` of the process
that eu-stack is about to look at, the same of eu-stack itself once it runs, and zeros when it has ended; and it has a
descriptor that ends when we and eu-stack have. If we end first, it lets eu-stack end by itself, which leaves no thread
stopped; but of thousands of threads only for a few seconds.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable, Iterator

from ...base import procfs

_PATIENCE_MS = 3_000
"""Milliseconds for eu-stack to end when this process has, and then when it is killed."""
_LATE = 0.5
"""Seconds. On a busy host, threads take the signal late."""
_LINE = 128
_ENDING = 1.0
"""Seconds in which it is waited for."""


class Guard:
    """Starts that process, and tells it."""

    def __init__(self) -> None:
        given, self._tell = os.pipe2(os.O_CLOEXEC)
        ends, self.held = os.pipe2(os.O_CLOEXEC)
        """``held`` is for eu-stack to keep open."""
        # If SIGCHLD is ignored, which is inherited, the kernel keeps no exit status.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        try:
            self.pid = os.fork()
        except OSError:
            for fd in (given, ends, self._tell, self.held):
                os.close(fd)
            raise
        if self.pid == 0:
            try:
                _become_guard(given, ends)
            finally:
                os._exit(0)
        os.close(given)
        os.close(ends)

    @contextlib.contextmanager
    def over(self, pid: int) -> Iterator[Callable[[int], None]]:
        """Guards while eu-stack looks at a process; 0: at one that was stopped before, and stays so. Takes eu-stack's
        id."""
        self._say(pid, 0)
        yield lambda walker: self._say(pid, walker)
        self._say(0, 0)

    def _say(self, *pids: int) -> None:
        text = " ".join(f"{pid} {procfs.began(pid, pid) or 0}" if pid else "0 0" for pid in pids)
        with contextlib.suppress(OSError):  # it has been killed: there is nobody else to tell
            os.write(self._tell, f"{text}\n".encode())

    def close(self) -> None:
        """Lets it end, which it does at once unless eu-stack still looks at a process."""
        os.close(self._tell)
        os.close(self.held)
        until = time.monotonic() + _ENDING
        while not os.waitpid(self.pid, os.WNOHANG)[0] and time.monotonic() < until:
            time.sleep(0.002)


def go_on(pid: int, seconds: float = 0.1) -> None:
    """Continues a process that eu-stack has left stopped, as often as it is seen so in this time."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if "T" in map(procfs.state, procfs.tids(pid)):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGCONT)
        time.sleep(0.01)


def _become_guard(told: int, ends: int) -> None:
    """Runs the guard in the copy, which ends with this."""
    os.setsid()
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    # Those that keep a pipe open would hide its end. The limit of their numbers can be a thousand million.
    for fd in set(map(int, os.listdir("/proc/self/fd"))) - {told, ends}:
        with contextlib.suppress(OSError):
            os.close(fd)
    _watch(told, ends)


def _watch(told: int, ends: int) -> None:
    last = b""
    while line := os.read(told, 1 << 12):
        lines = (last + line).split(b"\n")
        last = b"\n".join(lines[-2:])[-2 * _LINE :]  # the last whole one, and what has come of another
    words = last.split(b"\n")[0].split()
    if len(words) != 4 or not all(word.isdigit() for word in words):
        return
    pid, began, walker, walker_began = map(int, words)
    poll = select.poll()
    poll.register(ends, 0)  # its end alone counts: what eu-stack may write says nothing
    if not poll.poll(_PATIENCE_MS) and walker and procfs.began(walker, walker) == walker_began:
        with contextlib.suppress(OSError):
            os.kill(walker, signal.SIGKILL)
    poll.poll(_PATIENCE_MS)
    if pid and procfs.began(pid, pid) == began:
        go_on(pid, _LATE)
