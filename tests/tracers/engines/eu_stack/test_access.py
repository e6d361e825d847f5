"""Access to processes that can be sampled, with processes of the test."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from stallscope.tracers.base import procfs
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.eu_stack import access
from stallscope.tracers.engines.eu_stack.access import obstacle, require_access, unavailable
from stallscope.tracers.engines.protocol import EngineUnavailable
from stallscope.tracers.outside.reads import Memory

Sleeper = subprocess.Popen[bytes]
Require = Callable[[bool, str], None]


def test_processes_of_other_users(monkeypatch: pytest.MonkeyPatch) -> None:
    require_access(Scope(tgids={os.getpid()}))
    require_access(Scope(tgids={1 << 22}))  # gone

    class Refused(Memory):
        def read_some(self, reads: Sequence[tuple[int, int]]) -> list[bytes]:
            if self.pid == 1:
                raise PermissionError
            return super().read_some(reads)

    monkeypatch.setattr(access, "Memory", Refused)
    require_access(Scope(tgids={os.getpid()}))
    with pytest.raises(EngineUnavailable, match=r"may not look into process 1 \([^,]*\)\n") as raised:
        require_access(Scope(tgids={os.getpid(), 1}))
    assert "run it as root" in raised.value.remedy


@pytest.fixture
def debugger(sleeper: Sleeper, require: Require) -> Iterator[Sleeper]:
    """An strace that traces the process that sleeps."""
    require(shutil.which("strace") is not None, "there is no strace")
    with subprocess.Popen(["strace", "-o", "/dev/null", "-p", str(sleeper.pid)], stderr=subprocess.DEVNULL) as strace:
        until = time.monotonic() + 30
        while not obstacle(sleeper.pid) and strace.poll() is None:
            assert time.monotonic() < until
            time.sleep(0.01)
        require(strace.poll() is None, "ptrace is not allowed here")
        yield strace
        strace.terminate()


def test_a_process_that_is_being_debugged(sleeper: Sleeper, debugger: Sleeper) -> None:
    with pytest.raises(EngineUnavailable) as raised:
        require_access(Scope(tids={sleeper.pid}))
    assert raised.value.cause == (
        f"process {sleeper.pid} (sleep) is being debugged by strace (pid {debugger.pid}): "
        "only one process can trace it by ptrace"
    )
    assert raised.value.remedy == "end that, or use another engine"
    require_access(Scope(tgids={sleeper.pid, os.getpid()}))  # this process can be sampled


def test_threads_of_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not obstacle(os.getpid())
    assert not obstacle(1 << 22), "it is gone"
    assert not unavailable("it failed").cause.endswith("more")
    monkeypatch.setattr(procfs, "is_of_kernel", lambda pid: pid in (2, 3))
    with pytest.raises(
        EngineUnavailable, match=r"process 2 .*is a thread of the kernel: it has no user stack, and 1"
    ) as raised:
        require_access(Scope(tgids={2, 3}))
    assert raised.value.remedy == "use trace-offcpu or trace-oncpu, with another engine"
    require_access(Scope(tgids={2, os.getpid()}))


def test_the_first_thread_of_the_kernel(require: Require) -> None:
    first = Path("/proc/2/comm")
    require(first.exists() and first.read_text() == "kthreadd\n", "a container does not show it")
    assert obstacle(2).endswith("it has no user stack")
