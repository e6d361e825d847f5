"""Signals that ask for the end of a trace."""

from __future__ import annotations

import os
import signal
from types import FrameType, TracebackType


class Interrupts:
    """Ctrl-C (or SIGTERM, SIGHUP) asks for the end; a second Ctrl-C is a KeyboardInterrupt."""

    def __init__(self) -> None:
        self.requested = False
        self._old: dict[int, object] = {}
        self.wakeup, self._write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def __enter__(self) -> Interrupts:
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

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if self.requested and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.requested = True
