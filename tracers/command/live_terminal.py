"""The process that has the terminal: it reads keys and intervals, and paints the screen."""

from __future__ import annotations

import json
import os
import selectors
import signal
import sys
import termios
import time
import tty
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

from rich.console import Console, Group
from rich.live import Live

from ...converters.base.text import printable
from ...converters.scan.live.keys import keys
from ...converters.scan.live.message import LAST
from ...converters.scan.live.message import read as read_message
from ...converters.scan.live.state import State
from ...converters.scan.live.view import lines, page
from ..base import capabilities

_LOOK = 0.5
"""Seconds after which it looks whether the tracer is still there."""
_ESCAPE = 0.05
"""Seconds within which the rest of a key follows an escape."""
_SAID = 20
"""Lines of what was said that are printed in the end."""
_LONG = 1_000
"""Bytes of a line of it."""
_PATIENCE = 0.3
"""Seconds before the screen is taken: a trace that cannot begin says so by then."""


def show(intervals: int, heard: int, tracer: int) -> None:
    """Shows the intervals that come from one descriptor, and what comes from the other one, until the trace ends.

    SIGINT is the tracer's: it ends then. SystemExit by another signal."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)
    capabilities.give_up_all_but(frozenset())
    said = _Lines(heard)
    try:
        begin = _begin(intervals)
        if begin is not None:
            with _keys_at_once(), _screen() as live:
                _Loop(live, intervals, said, tracer, begin).run()
    finally:
        said.read()
        for line in said.last:
            print(line, flush=True)


def _leave(_number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(1)


def _begin(intervals: int) -> bytes | None:
    """The bytes that come within `_PATIENCE`; None if the trace has ended by then."""
    with selectors.DefaultSelector() as selector:
        selector.register(intervals, selectors.EVENT_READ)
        if not selector.select(_PATIENCE):
            return b""
    data = os.read(intervals, 1 << 16)
    return data if data not in (b"", LAST) else None


@contextmanager
def _keys_at_once() -> Iterator[None]:
    """Keys come when they are pressed, and are not shown. Only Ctrl-C sends a signal."""
    before = termios.tcgetattr(0)
    try:
        tty.setcbreak(0)
        changed = termios.tcgetattr(0)
        for key in (termios.VSUSP, termios.VQUIT):
            changed[6][key] = b"\x00"
        termios.tcsetattr(0, termios.TCSADRAIN, changed)
        yield
    finally:
        termios.tcsetattr(0, termios.TCSAFLUSH, before)


@contextmanager
def _screen() -> Iterator[Live]:
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]  # it is a terminal
    for name in ("COLUMNS", "LINES"):  # the size that it had once
        os.environ.pop(name, None)
    console = Console(markup=False, emoji=False, highlight=False)
    live = Live(console=console, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)
    with live:
        yield live


class _Loop:
    def __init__(self, live: Live, intervals: int, said: _Lines, tracer: int, begin: bytes) -> None:
        self._live, self._intervals, self._said, self._tracer = live, intervals, said, tracer
        self._state = State()
        self._typed = b""
        self._sent = begin
        self._is_over = False
        self._resized, write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.signal(signal.SIGWINCH, lambda _number, _frame: None)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        os.set_blocking(intervals, False)

    def run(self) -> None:
        with selectors.DefaultSelector() as selector:
            for descriptor in (0, self._intervals, self._said.fd, self._resized):
                selector.register(descriptor, selectors.EVENT_READ)
            while not self._is_over and os.getppid() == self._tracer:
                self._paint()
                ready = {key.fd for key, _ in selector.select(_ESCAPE if self._typed else _LOOK)}
                if self._said.fd in ready and not self._said.read():
                    selector.unregister(self._said.fd)
                if self._resized in ready:
                    os.read(self._resized, 4096)
                if self._intervals in ready:
                    self._read_intervals()
                self._read_keys(is_ready=0 in ready)

    def _paint(self) -> None:
        width, height = self._live.console.size
        self._state.notes = list(self._said.last)[-1:]
        self._live.update(Group(*lines(self._state, width, height)), refresh=True)

    def _read_intervals(self) -> None:
        while True:
            try:
                data = os.read(self._intervals, 1 << 16)
            except BlockingIOError:
                break
            if not data:
                self._is_over = True
                break
            self._sent += data
        *whole, self._sent = self._sent.split(b"\n")
        if b"" in whole:  # LAST
            self._is_over = True
        messages = [each for each in whole if each]
        for each in messages[-1:]:
            self._state.take(read_message(json.loads(each)))

    def _read_keys(self, *, is_ready: bool) -> None:
        data = b""
        if is_ready:
            with suppress(OSError):
                data = os.read(0, 4096)
            if not data:  # the terminal is gone
                self._end()
                self._is_over = True
                return
        pressed, self._typed = keys(self._typed + data, is_all=not data)
        for key in pressed:
            if not self._state.is_done:
                self._state.press(key, page(self._live.console.size.height))
                if self._state.is_done:
                    self._end()

    def _end(self) -> None:
        """Ends the trace, as Ctrl-C does."""
        with suppress(ProcessLookupError):
            os.kill(self._tracer, signal.SIGINT)


class _Lines:
    """Lines that come from a descriptor, of which the last ones are kept. Printable."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        os.set_blocking(fd, False)
        self.last: deque[str] = deque(maxlen=_SAID)
        self._rest = b""

    def read(self) -> bool:
        """Takes what is there; returns whether more may follow."""
        until = time.monotonic() + _LOOK  # a command may say more than can be read
        while time.monotonic() < until:
            try:
                data = os.read(self.fd, 1 << 16)
            except BlockingIOError:
                return True
            *whole, self._rest = (self._rest + data).split(b"\n")
            if not data and self._rest:
                whole, self._rest = [self._rest], b""
            self._rest = self._rest[:_LONG]
            for line in whole[-_SAID:]:
                if line.strip():
                    self.last.append(printable(line[:_LONG].decode(errors="replace")))
            if not data:
                return False
        return True
