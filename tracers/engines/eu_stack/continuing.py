"""Threads that eu-stack has left stopped are continued, also when both it and this process are killed.

ptrace(2): where a tracer dies while a thread is stopped for it, the thread takes the signal that it was stopped with,
which is SIGSTOP for those that were just attached to. Whoever is killed does nothing any more; so this is a process in
a session of its own, which a signal to a group or to us does not reach. It ends when we do: ``-m``, with a descriptor
that has an end when we and eu-stack have, and on standard input ``PID BEGAN`` of the process that eu-stack is about to
look at, or ``0 0`` when it has.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator

from ....converters.base import helpers
from ...base import procfs

_PATIENCE_MS = 60_000
"""For eu-stack to end when we have."""
_LINE = 64


class Guard:
    """Starts that process, and tells it."""

    def __init__(self) -> None:
        given, self._tell = os.pipe2(os.O_CLOEXEC)
        ends, self.held = os.pipe2(os.O_CLOEXEC)
        """``held`` is for eu-stack to keep open."""
        try:
            command = helpers.python_module(__name__, str(ends))
            self._process = helpers.start(command, stdin=given, fds=[ends])
        except BaseException:
            os.close(self._tell)
            os.close(self.held)
            raise
        finally:
            os.close(given)
            os.close(ends)

    @contextlib.contextmanager
    def over(self, pid: int) -> Iterator[None]:
        """While eu-stack looks at a process that was not stopped."""
        self._say(f"{pid} {procfs.began(pid, pid) or 0}")
        yield
        self._say("0 0")

    def _say(self, text: str) -> None:
        with contextlib.suppress(OSError):  # it has been killed: there is nobody else to tell
            os.write(self._tell, f"{text}\n".encode())

    def close(self) -> None:
        """Ends it."""
        os.close(self._tell)
        os.close(self.held)
        if not helpers.wait(self._process, 1):
            helpers.kill(self._process)


def go_on(pid: int, sleep: Callable[[float], None] = time.sleep) -> None:
    """Continues a process that eu-stack has left stopped."""
    for _ in range(10):
        if "T" in map(procfs.state, procfs.tids(pid)):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGCONT)
        sleep(0.01)


def _watch(ends: int) -> None:
    last = b""
    while line := os.read(0, 1 << 12):
        lines = (last + line).split(b"\n")
        last = b"\n".join(lines[-2:])[-2 * _LINE :]  # the last whole one, and what has come of another
    words = last.split(b"\n")[0].split()
    if len(words) != 2 or not all(word.isdigit() for word in words) or words[0] == b"0":
        return
    pid, began = map(int, words)
    poll = select.poll()
    poll.register(ends, 0)  # its end alone counts: what eu-stack may write says nothing
    poll.poll(_PATIENCE_MS)
    if procfs.began(pid, pid) == began:
        go_on(pid)


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _watch(int(sys.argv[1]))
