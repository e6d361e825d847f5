"""Runs inputs in a process of their own, which dies of one that needs too much."""

from __future__ import annotations

import ctypes
import faulthandler
import mmap
import os
import resource
import signal
import struct
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from fuzz_target import Target

CPU_SECONDS, WALL_SECONDS = 10.0, 120.0
"""Seconds for one input; the second is for what waits for other processes."""
MEMORY = 512 << 20
"""Bytes of address space beyond what the process has before its first input."""
_ENDS = {
    signal.SIGPROF: f"more than {CPU_SECONDS:.0f} s of a core",
    signal.SIGALRM: f"more than {WALL_SECONDS:.0f} s",
    signal.SIGKILL: "killed",
}
_SPACE = 8 << 20
_HEAD = struct.Struct("<Q")
_PR_SET_PDEATHSIG = 1


class Finding(NamedTuple):
    """An input after which something was wrong."""

    target: str
    what: str
    """The kind, and where: alike for inputs that show the same defect."""
    data: bytes
    details: str = ""


class Current:
    """The input that is run: it can be read when the process has died of it."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _SPACE)

    def set(self, data: bytes) -> None:
        """Sets the input, before it is run."""
        self._memory[: _HEAD.size + len(data)] = _HEAD.pack(len(data)) + data

    def get(self) -> bytes:
        """The last one."""
        (size,) = _HEAD.unpack_from(self._memory)
        return self._memory[_HEAD.size : _HEAD.size + size]


class Result(NamedTuple):
    """Result of one input: ``outcome`` is "read", "refused" or what was wrong; CPU seconds; bytes that the process grew
    by."""

    outcome: str
    seconds: float
    grown: int
    details: str = ""

    @property
    def is_wrong(self) -> bool:
        return self.outcome not in ("read", "refused")


def run(target: Target, data: bytes, current: Current) -> Result:
    """Runs one input in this process, which has `limit`."""
    current.set(data)
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin, outcome, details = time.process_time(), "read", ""
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
    signal.setitimer(signal.ITIMER_REAL, WALL_SECONDS)
    try:
        target.run(data)
    except target.allowed:
        outcome = "refused"
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # what a parser raises is what is looked for
        outcome, details = f"{type(error).__name__} at {_place(error)}", _short(traceback.format_exc())
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - largest
    return Result(outcome, time.process_time() - begin, grown << 10, details)


def _short(text: str) -> str:
    return text if len(text) < 6000 else f"{text[:2000]}\n…\n{text[-2000:]}"


def _place(error: BaseException) -> str:
    """Place where an error was raised: the innermost line of ours."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/stallscope/" in frame.filename or "/tracers/" in frame.filename
            or "/converters/" in frame.filename]  # fmt: skip
    last = (ours or frames)[-1]
    return f"{Path(last.filename).parent.name}/{Path(last.filename).name}:{last.name}"


def limit() -> None:
    """Limits this process: it may grow by `MEMORY` from now on, and its signals end it."""
    for number in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


class Child:
    """A forked process that calls a function, with one `Current` that both see."""

    def __init__(self, act: Callable[[Current], None]) -> None:
        self.current = Current()
        self.pid = os.fork()
        if self.pid:
            return
        status = 1
        try:
            faulthandler.disable()  # pytest's: that a process dies is told by its parent
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            null = os.open(os.devnull, os.O_RDONLY)
            os.dup2(null, 0)
            limit()
            act(self.current)
            status = 0
        except KeyboardInterrupt:
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)

    def wait(self) -> str:
        """Waits for its end: "" if it ended by itself, else what it died of."""
        _, status = os.waitpid(self.pid, 0)
        return died_of(status)


def died_of(status: int) -> str:
    """Meaning of a status of waitpid(2); "" for an end without failure."""
    if os.WIFSIGNALED(status):
        number = signal.Signals(os.WTERMSIG(status))
        return _ENDS.get(number, number.name)
    return f"status {os.WEXITSTATUS(status)}" if os.WEXITSTATUS(status) else ""


def fails(target: Target, data: bytes) -> str:
    """Text on what is wrong after this input, in a process of its own; "" for nothing."""
    read_end, write_end = os.pipe()

    def act(current: Current) -> None:
        found = run(target, data, current)
        if found.is_wrong:
            os.write(write_end, found.outcome.encode()[:4000])

    child = Child(act)
    os.close(write_end)
    with open(read_end, "rb") as pipe:
        told = pipe.read().decode()
    return child.wait() or told


def minimised(target: Target, data: bytes, seconds: float = 20) -> bytes:
    """A smaller input after which the same is wrong."""
    until = time.monotonic() + seconds
    what = fails(target, data)
    size = len(data)
    while what and size > 1 and time.monotonic() < until:
        size = max(size // 2, 1)
        at = 0
        while at < len(data) and time.monotonic() < until:
            shorter = data[:at] + data[at + size :]
            if len(shorter) < len(data) and fails(target, shorter) == what:
                data = shorter
            else:
                at += size
    return data
