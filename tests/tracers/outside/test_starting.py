"""Start of processes that can be abandoned. What they have of ours: test_client.py, and that of the holder."""

from __future__ import annotations

import mmap
import os
import signal
import subprocess
import sys

import pytest
from stallscope.tracers.outside import starting
from stallscope.tracers.outside.client import Client
from stallscope.tracers.outside.starting import BEGAN, KERNEL_TICKS, STATE, USER_TICKS, stat_of


def test_what_the_kernel_tells_of_a_process() -> None:
    code = "import time; end = time.process_time() + 0.05\nwhile time.process_time() < end: pass\ninput()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as process:
        os.kill(process.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        assert stat_of(process.pid, STATE) == b"T"
        os.kill(process.pid, signal.SIGCONT)
        process.communicate(b"\n")
    assert stat_of(process.pid, STATE) == b""
    assert int(stat_of(os.getpid(), USER_TICKS)) + int(stat_of(os.getpid(), KERNEL_TICKS)) > 0
    assert int(stat_of(os.getpid(), BEGAN)) > int(stat_of(1, BEGAN))


@pytest.mark.parametrize("more", [0, 2 << 30])
def test_a_user_who_may_not_execute_the_interpreter(more: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """``more``: bytes of memory of the process that is copied."""
    mapped = mmap.mmap(-1, more, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) if more else None

    def refused(*_: object, **__: object) -> int:
        raise PermissionError

    monkeypatch.setattr(starting.os, "posix_spawn", refused)
    monkeypatch.setattr(starting.os, "geteuid", lambda: 1000)
    asked = Client()
    asked.begin()
    assert asked._child
    pid = asked._child.pid
    assert asked.ask("maps", os.getpid(), True, pid=os.getpid())[0]
    with open(f"/proc/{pid}/stat", "rb") as file:
        assert int(file.read().rpartition(b")")[2].split()[3]) == pid  # a session of its own
    assert len(os.listdir(f"/proc/{pid}/fd")) <= 4
    asked.close()
    if mapped:
        mapped.close()
