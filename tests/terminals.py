"""A pseudo-terminal with a program in it, whose screen is read as a person sees it."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

import pyte

PATIENCE = 60.0
"""Seconds after which a screen that does not show what it should has failed."""
OTHER_SCREEN, BACK, CURSOR = b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[?25h"
"""Sequences that take and leave the other screen of a terminal, and show the cursor."""


class Terminal:
    """A context manager: on the way out the program is gone."""

    def __init__(self, argv: Sequence[object], *, columns: int = 80, rows: int = 24, **environment: str) -> None:
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self.raw = bytearray()
        """All that it got."""
        self._status: int | None = None
        begin, go = os.pipe()
        self.pid, self._master = pty.fork()
        if not self.pid:
            os.close(go)
            os.read(begin, 1)
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            os.environ.update(TERM="xterm-256color", LC_ALL="C.UTF-8", **environment)
            os.execv(str(argv[0]), list(map(str, argv)))
        os.close(begin)
        self.resize(columns, rows)
        self.before = self.settings()
        os.close(go)

    def resize(self, columns: int, rows: int) -> None:
        """Gives it another size, and tells the program."""
        self.screen.resize(rows, columns)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def settings(self) -> list[Any]:
        """The terminal's settings, as termios(3) has them."""
        return termios.tcgetattr(self._master)

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.screen.display]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def press(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def read(self, seconds: float = 0.05) -> bool:
        """Reads what comes; returns False once nobody has the terminal any more."""
        if not select.select([self._master], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self._master, 1 << 16)
        except OSError:
            return False
        self.raw += data
        self._stream.feed(data)
        return bool(data)

    def wait_until(self, condition: Callable[[], object], what: str) -> None:
        """Reads until the condition holds."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, f"not within {PATIENCE} s: {what}\n{self.text}"
            self.read()

    def shows(self, text: str) -> None:
        """Waits until the screen has this text."""
        self.wait_until(lambda: text in self.text, text)

    def hides(self, text: str) -> None:
        """Waits until the screen does not have this text."""
        self.wait_until(lambda: text not in self.text, f"without {text}")

    def ended(self) -> int:
        """Waits until the program has ended, and nobody has the terminal; returns its status, -N by signal N."""
        self.wait_until(self._has_ended, "the end")
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and self.read():
            pass
        assert self._status is not None
        return self._status

    def _has_ended(self) -> bool:
        if self._status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._status = os.waitstatus_to_exitcode(status)
        return self._status is not None

    def check_restored(self) -> None:
        """Checks that nothing is left of a screen."""
        assert self.raw.rfind(BACK) > self.raw.rfind(OTHER_SCREEN)
        assert self.raw.rfind(CURSOR) > self.raw.rfind(b"\x1b[?25l")

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._has_ended():
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self._master)
