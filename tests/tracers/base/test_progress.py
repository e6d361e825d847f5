from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from stallscope.tracers.base import progress
from stallscope.tracers.base.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def _terminal_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_one_line_is_rewritten_and_cleared(clock: Clock) -> None:
    terminal = Terminal()
    with Progress(10.0, file=terminal, clock=clock) as shown:
        clock.now += 3.21
        shown.update(threads=16, stacks=1312, lost=0)
        line = "\r\x1b[Ktracing 3.2 s of 10 s, 0 lost intervals, 16 threads, 1,312 stacks"
        assert terminal.getvalue() == line
        clock.now += 1
        shown.update(threads=17, stacks=1400, lost=2)
    assert terminal.getvalue() == (
        line + "\r\x1b[Ktracing 4.2 s of 10 s, 2 lost intervals, 17 threads, 1,400 stacks" + "\r\x1b[K"
    )


def test_what_follows_a_long_trace_is_told_at_once(clock: Clock) -> None:
    terminal = Terminal()
    shown = Progress(10.0, file=terminal, clock=clock)
    shown.update(threads=1, stacks=5000, lost=0)
    tracing = terminal.getvalue()
    shown.ended(stacks=4999)
    assert terminal.getvalue() == tracing
    shown.ended(stacks=5000)
    assert terminal.getvalue() == tracing + "\r\x1b[Kreading 5,000 stacks"


def test_what_it_waits_for_is_told(clock: Clock) -> None:
    terminal = Terminal()
    Progress(10.0, file=terminal, clock=clock).wait_for("\x1b[31m")
    assert terminal.getvalue() == "\r\x1b[Kwaiting 0.0 s of 10 s for a process that matches '\\x1b[31m'"


def test_without_a_planned_time_it_says_how_to_end(clock: Clock) -> None:
    terminal = Terminal()
    Progress(file=terminal, clock=clock).update(threads=1, stacks=2, lost=0)
    assert "tracing 0.0 s (Ctrl-C ends it), 0 lost" in terminal.getvalue()


def test_at_most_four_writes_a_second(clock: Clock) -> None:
    terminal = Terminal()
    shown = Progress(file=terminal, clock=clock)
    for _ in range(1000):
        shown.update(threads=1, stacks=1, lost=0)
        clock.now += 0.001
    assert terminal.getvalue().count("\r") == 4


def test_other_lines(clock: Clock) -> None:
    terminal = Terminal()
    with Progress(file=terminal, clock=clock) as shown:
        shown.show("first")
        shown.show("too soon")
        clock.now += 1
        shown.show("second")
    assert terminal.getvalue() == "\r\x1b[Kfirst\r\x1b[Ksecond\r\x1b[K"


def test_nothing_without_a_terminal(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.StringIO()
    with Progress(file=pipe, clock=clock) as shown:
        shown.update(threads=1, stacks=1, lost=0)
    assert pipe.getvalue() == ""
    monkeypatch.setenv("TERM", "dumb")
    dumb = Terminal()
    with Progress(file=dumb, clock=clock) as shown:
        shown.update(threads=1, stacks=1, lost=0)
    assert dumb.getvalue() == ""


def test_nothing_was_shown_nothing_is_cleared(clock: Clock) -> None:
    terminal = Terminal()
    shown = Progress(file=terminal, clock=clock)
    shown.clear()
    assert terminal.getvalue() == ""
    shown.update(threads=1, stacks=1, lost=0)
    shown.clear()
    shown.clear()
    assert terminal.getvalue().count("\r\x1b[K") == 2


@pytest.mark.parametrize(("columns", "length"), [(1, 0), (20, 19), (500, 60)])
def test_line_fits_the_terminal(columns: int, length: int, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_columns", lambda file: columns)
    terminal = Terminal()
    Progress(10.0, file=terminal, clock=clock).update(threads=16, stacks=1, lost=0)
    line = terminal.getvalue().removeprefix("\r\x1b[K")
    assert len(line) == min(length, len("tracing 0.0 s of 10 s, 0 lost intervals, 16 threads, 1 stack"))


@contextmanager
def pseudo_terminal(columns: int) -> Iterator[tuple[int, io.TextIOWrapper]]:
    primary, secondary = pty.openpty()
    os.environ.pop("COLUMNS", None)
    import fcntl
    import struct
    import termios

    fcntl.ioctl(secondary, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with open(secondary, "w", encoding="utf-8") as terminal:
        yield primary, terminal
    os.close(primary)


def test_real_terminal_of_30_columns(clock: Clock) -> None:
    with pseudo_terminal(30) as (primary, terminal):
        Progress(10.0, file=terminal, clock=clock).update(threads=16, stacks=1, lost=7)
        assert os.read(primary, 1000).decode() == "\r\x1b[Ktracing 0.0 s of 10 s, 7 lost"


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), ValueError("I/O operation on closed file")])
def test_terminal_that_goes_away_does_not_end_the_trace(error: Exception, clock: Clock) -> None:
    class Gone(Terminal):
        def write(self, text: str) -> int:
            raise error

    with Progress(file=Gone(), clock=clock) as shown:
        shown.update(threads=1, stacks=1, lost=0)
        clock.now += 1
        shown.update(threads=1, stacks=1, lost=0)


def test_closed_standard_error_and_no_rich() -> None:
    code = """
import sys
from stallscope.tracers.base.progress import Progress
with Progress(1.0) as shown:
    shown.update(threads=1, stacks=1, lost=0)
assert "rich" not in sys.modules
print("fine")
"""
    result = subprocess.run(
        ["sh", "-c", 'exec "$0" -c "$1" 2>&-', sys.executable, code], capture_output=True, text=True
    )
    assert result.stdout == "fine\n"


def test_the_trace_begins_after_what_was_shown_before(clock: Clock) -> None:
    terminal = Terminal()
    with Progress(2.0, file=terminal, clock=clock) as shown:
        clock.now += 30
        shown.show("compiling")
        shown.restart()
        shown.update(threads=1, stacks=1, lost=0)
        assert (
            terminal.getvalue() == "\r\x1b[Kcompiling\r\x1b[Ktracing 0.0 s of 2 s, 0 lost intervals, 1 thread, 1 stack"
        )
