"""--live: a process of its own has the terminal, and shows the intervals that the trace sends it.

So the screen answers to keys while the tracer works, and the terminal is restored whatever becomes of the tracer: its
end closes a pipe. What the tracer, and a command that it has started, print meanwhile goes through another pipe.
"""

from __future__ import annotations

import os
import sys
import termios
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from ...converters.base.errors import StallscopeError
from ...converters.scan.live.message import LAST
from ..base.scope import Scope

_RESTORED = b"\x1b[?1049l\x1b[?25h\x1b[0m"
"""Leaves the other screen of a terminal, shows the cursor, and ends colours (xterm's ctlseqs)."""


def on_screen(given: dict[str, Any], scope: Scope, trace: Callable[[], int]) -> int:
    """Calls ``trace`` while its intervals are shown; returns the exit status. ``given`` gets the descriptor to which
    they go as ``screen``. StallscopeError without a terminal, and of ``trace``."""
    _check_terminal()
    before = termios.tcgetattr(0)
    read, write = os.pipe2(os.O_CLOEXEC)
    heard, said = os.pipe2(os.O_CLOEXEC)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    tracer = os.getpid()
    pid = os.fork()
    if not pid:
        for each in (write, said):
            os.close(each)
        _show(read, heard, tracer)
    for each in (read, heard):
        os.close(each)
    scope.ours.add(pid)
    given["screen"] = write
    try:
        with _saying(said):
            return trace()
    finally:
        _end(write)
        _, status = os.waitpid(pid, 0)
        if status:
            termios.tcsetattr(0, termios.TCSADRAIN, before)
            os.write(1, _RESTORED)


def _check_terminal() -> None:
    is_terminal = all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))
    if not is_terminal or os.environ.get("TERM", "dumb") in ("dumb", ""):
        what = "its TERM is dumb" if is_terminal else "standard input and output are none"
        raise StallscopeError(
            f"--live needs a terminal: {what}", "use --watch 2s, which prints a line for each interval", exit_code=2
        )


def _show(read: int, heard: int, tracer: int) -> None:
    """Shows what comes, in the process of the screen, until the tracer ends; then ends this process."""
    status = 1
    try:
        from .live_terminal import show

        show(read, heard, tracer)
        status = 0
    except SystemExit:
        pass
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


@contextmanager
def _saying(said: int) -> Iterator[None]:
    """Standard output and standard error go to ``said``, which is closed in the end, and nothing reads the keys."""
    kept = [os.dup(number) for number in range(3)]
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    try:
        for number, target in enumerate((nothing, said, said)):
            os.dup2(target, number)
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):  # the screen is gone
                stream.flush()
        for number, each in enumerate(kept):
            os.dup2(each, number)
        for each in (*kept, nothing, said):
            os.close(each)


def _end(write: int) -> None:
    """Tells the screen that nothing follows: other processes may have the pipe open, too."""
    os.set_blocking(write, False)
    with suppress(OSError):
        os.write(write, LAST)
    os.close(write)
