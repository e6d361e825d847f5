"""A line on the terminal that shows the progress of a trace; nothing if standard error is not a terminal."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TextIO

from ...converters.base.text import printable
from ...converters.base.units import plural

_INTERVAL = 0.25
"""Minimum interval between two writes, in seconds."""
_CLEAR = "\r\x1b[K"


MANY = 5_000
"""Number of stacks from which on the work after a trace takes long enough to be shown."""


class Progress:
    """Shows the elapsed time and the counts so far; removed when the ``with`` block ends.

    ``update()`` may be called as often as is convenient: it writes at most four times a second. The
    line is never wider than the terminal. If the terminal goes away, the display ends, not
    the trace.

        with Progress(planned=10.0) as progress:
            while tracing:
                progress.update(threads=16, stacks=312, lost=0)
    """

    def __init__(
        self,
        planned: float | None = None,
        *,
        file: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``planned`` in seconds, None for a trace that is ended by Ctrl-C. ``file`` is standard error by default."""
        self._file = sys.stderr if file is None else file
        self._planned = planned
        self._clock = clock
        self._start = clock()
        self._next = self._start
        self._shown = False
        self._enabled = _is_capable(self._file)

    @property
    def is_seen(self) -> bool:
        """Whether somebody may see it: there is a terminal."""
        return self._enabled

    def restart(self) -> None:
        """Restarts the clock: the trace begins now."""
        self._start = self._next = self._clock()

    def update(self, *, threads: int, stacks: int, lost: int) -> None:
        """``threads`` and ``stacks`` seen so far, intervals ``lost`` so far."""
        self.show(_line(self._clock() - self._start, self._planned, threads, stacks, lost))

    def wait_for(self, pattern: str) -> None:
        """Shows that nothing is traced yet: no process has matched the regular expression so far."""
        elapsed = f"{self._clock() - self._start:.1f} s {_until(self._planned)}"
        self.show(f"waiting {elapsed} for a process that matches {printable(repr(pattern))}")

    def ended(self, *, stacks: int) -> None:
        """Shows that the trace is over, and what follows, if that takes long."""
        if stacks >= MANY:
            self._next = self._clock()
            self.show(f"reading {plural(stacks, 'stack')}")

    def show(self, line: str) -> None:
        """Shows any other line, if there is a terminal; limited in rate like `update`."""
        now = self._clock()
        if not self._enabled or now < self._next:
            return
        self._next = now + _INTERVAL
        # The last column stays free: writing it makes some terminals wrap, and then \r returns to the wrong line.
        self._write(_CLEAR + line[: max(_columns(self._file) - 1, 0)])
        self._shown = True

    def clear(self) -> None:
        """Removes the line, so that something else can be printed; the next update shows it again."""
        if self._shown:
            self._write(_CLEAR)
            self._shown = False

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()

    def _write(self, text: str) -> None:
        try:
            self._file.write(text)
            self._file.flush()
        except (OSError, ValueError):
            self._enabled = False


def forget_line(stream: TextIO) -> None:
    """Removes the line of another process's `Progress` from a terminal, before something is printed there."""
    if _is_capable(stream):
        stream.write(_CLEAR)


def _line(elapsed: float, planned: float | None, threads: int, stacks: int, lost: int) -> str:
    # Lost intervals come first among the counts: a narrow terminal must not hide them.
    counts = plural(lost, "lost interval"), plural(threads, "thread"), plural(stacks, "stack")
    return f"tracing {elapsed:.1f} s {_until(planned)}, {', '.join(counts)}"


def _until(planned: float | None) -> str:
    return f"of {planned:g} s" if planned is not None else "(Ctrl-C ends it)"


def _is_capable(file: TextIO | None) -> bool:
    try:
        # The stream is None in a process that was started with it closed.
        return file is not None and file.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    except ValueError:
        return False


def _columns(file: TextIO) -> int:
    try:
        return os.get_terminal_size(file.fileno()).columns or 80
    except (OSError, ValueError):
        return 80
