"""Detects that the traced processes have ended, which ends a trace."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Iterable, Sequence

from ..base.launch import Launch
from ..base.scope import Scope


class Ends:
    """Notices the end of the traced processes without polling them, where the kernel has pidfds."""

    def __init__(self, scope: Scope, launch: Launch | None) -> None:
        self._launch = launch
        self._targets = [] if launch else list(scope.ends_with)
        self._bounded = bool(self._targets)
        self._fds: dict[int, int] = {}
        for pid in [launch.pid] if launch else self._targets:
            try:
                self._fds[pid] = os.pidfd_open(pid)
            except OSError:
                continue  # a thread, or gone: reached() looks at /proc

    def wait(self, wakeup: int, timeout: float, also: Iterable[int] = ()) -> bool:
        """Waits ``timeout`` seconds, or until something happens; returns whether it did."""
        return _poll_any([wakeup, *self._fds.values(), *also], timeout)

    def rest(
        self,
        wakeup: int,
        seconds: float,
        hasty: Sequence[tuple[float, Callable[[], object]]] = (),
        also: Iterable[int] = (),
    ) -> None:
        """Waits until something happens, or so long; reads what has small buffers meanwhile. ``hasty``: how often,
        in seconds, and how."""
        period = min((every for every, _ in hasty), default=seconds)
        until = time.monotonic() + seconds
        while not self.wait(wakeup, min(period, until - time.monotonic()), also) and time.monotonic() < until:
            for _, read in hasty:
                read()

    def reached(self) -> bool:
        if self._launch:
            return self._launch.poll() is not None
        if not self._bounded:
            return False
        self.gone()
        return not self._targets

    def gone(self) -> set[int]:
        """Processes and threads that have ended since the last time."""
        gone = {pid for pid in self._targets if self._is_gone(pid)}
        for pid in gone:
            self._targets.remove(pid)
            if pid in self._fds:
                os.close(self._fds.pop(pid))
        return gone

    def _is_gone(self, pid: int) -> bool:
        if pid in self._fds:
            return _poll_any([self._fds[pid]], 0)
        return not os.path.exists(f"/proc/{pid}")

    def close(self) -> None:
        for fd in self._fds.values():
            os.close(fd)


def _poll_any(fds: list[int], timeout: float) -> bool:
    """Whether one of ``fds`` becomes readable within ``timeout`` seconds. Unlike select(), takes any descriptor."""
    poll = select.poll()
    for fd in fds:
        poll.register(fd, select.POLLIN)
    return bool(poll.poll(max(timeout, 0) * 1000))
