from __future__ import annotations

import ctypes
import errno
import os
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from stallscope.tracers.kernel import breakpoints, perf_events
from stallscope.tracers.kernel.breakpoints import open_breakpoint


@pytest.fixture(autouse=True)
def has_breakpoints(require: Callable[[bool, str], None]) -> None:
    word, problem = ctypes.c_uint64(), ""
    try:
        os.close(open_breakpoint(0, ctypes.addressof(word)))
    except OSError as error:
        problem = str(error.strerror)
    require(not problem, f"there are no hardware breakpoints: {problem}")


def made(address: int, tid: int = 0) -> int:
    return open_breakpoint(tid, address)


def enabled(fd: int) -> None:
    assert ctypes.CDLL(None).ioctl(fd, 0x2400, 0) == 0  # PERF_EVENT_IOC_ENABLE


def writes(fd: int) -> int:
    (number,) = struct.unpack("<Q", os.read(fd, 8))
    return int(number)


def test_each_write_counts() -> None:
    words = (ctypes.c_uint64 * 4)()
    fd = made(ctypes.addressof(words) + 16)
    words[2] = 1
    assert writes(fd) == 0, "it begins with a program"
    enabled(fd)
    for i in range(100):
        words[1] = words[2] = words[3] = i
    assert writes(fd) == 100
    assert words[2] == 99
    assert writes(fd) == 100, "reads do not count"
    os.close(fd)


def test_threads_that_begin_later() -> None:
    word = ctypes.c_uint64(0)
    fd = made(ctypes.addressof(word))
    enabled(fd)

    def write() -> None:
        word.value += 1

    threads = [threading.Thread(target=write) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert writes(fd) == 3
    os.close(fd)


def test_not_more_than_the_processor_has() -> None:
    words = (ctypes.c_uint64 * 8)()
    fds = [made(ctypes.addressof(words) + 8 * i) for i in range(breakpoints.REGISTERS)]
    try:
        with pytest.raises(OSError, match=r".") as refused:
            open_breakpoint(0, ctypes.addressof(words) + 8 * breakpoints.REGISTERS)
        assert refused.value.errno == errno.ENOSPC
    finally:
        for fd in fds:
            os.close(fd)


def test_a_thread_that_is_gone() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    with pytest.raises(ProcessLookupError):
        open_breakpoint(process.pid, 4096)


def test_what_a_trap_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    os.close(made(4096))
    cost = breakpoints.cost()
    assert cost
    assert 50 < cost < 100_000_000

    def refused(*_: object) -> int:
        raise OSError

    monkeypatch.setattr(perf_events, "open_event", refused)
    assert breakpoints.cost() is None


@pytest.mark.parametrize(
    ("text", "virtual"),
    [
        ("processor\t: 0\nflags\t\t: fpu de hypervisor lahf_lm\nvmx flags\t: x\n", True),
        ("processor\t: 0\nflags\t\t: fpu de lahf_lm\nbugs\t\t: hypervisor\n", False),
        ("", False),
        (None, False),
    ],
)
def test_a_virtual_machine(text: str | None, virtual: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    if text is not None:
        cpuinfo.write_text(text)
    monkeypatch.setattr(breakpoints, "_CPUINFO", str(cpuinfo))
    assert breakpoints.on_virtual_machine() == virtual


def test_a_trap_that_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The trap ends a process of its own, not the one that asks."""
    monkeypatch.setattr(breakpoints, "_cost", lambda: os.kill(os.getpid(), signal.SIGKILL))
    assert breakpoints.cost() is None
