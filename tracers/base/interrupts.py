"""Signals that end a trace."""

from __future__ import annotations

import contextlib
import os
import signal
from types import FrameType, TracebackType

from ..holder.client import HOLDER
from ..outside.client import CLIENT

_ended_by_user = _end_was_requested = False


def ended_by_user() -> bool:
    """Whether Ctrl-C has ended this process's trace, and nothing else."""
    return _ended_by_user


def end_was_requested() -> bool:
    """Whether a signal has asked for the end of this process's trace, which then makes its outputs."""
    return _end_was_requested


class Interrupts:
    """Ctrl-C (or SIGTERM, SIGHUP) requests the end; a second Ctrl-C raises KeyboardInterrupt."""

    def __init__(self) -> None:
        self.requested = False
        self._mild = False
        """Whether only Ctrl-C has requested the end."""
        self._old: dict[int, object] = {}
        self.wakeup, self._write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def __enter__(self) -> Interrupts:
        _note(False, requested=False)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN:
                continue  # nohup
            self._old[number] = signal.signal(number, self._handle)
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.set_wakeup_fd(-1)
        for number, old in self._old.items():
            signal.signal(number, old)  # type: ignore[arg-type]  # what signal.signal() returned
        os.close(self.wakeup)
        os.close(self._write)

    def take(self) -> bool:
        """Whether only Ctrl-C, and no other signal, has requested the end; that request is then cleared."""
        if not (self.requested and self._mild):
            return False
        self.requested = False
        _note(False, requested=False)
        with contextlib.suppress(BlockingIOError):
            os.read(self.wakeup, 4096)
        return True

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if self.requested and number == signal.SIGINT:
            raise KeyboardInterrupt
        CLIENT.hurry()
        HOLDER.hurry()
        self._mild = number == signal.SIGINT and (self._mild or not self.requested)
        self.requested = True
        _note(self._mild, requested=True)


def _note(by_user: bool, *, requested: bool) -> None:
    global _ended_by_user, _end_was_requested
    _ended_by_user, _end_was_requested = by_user, requested
