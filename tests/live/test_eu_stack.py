"""The engine eu-stack, with processes that it cannot sample."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from commands import PATIENCE, run
from stallscope.tracers.base import procfs

TRACE_WALL = str(Path(sys.executable).with_name("trace-wall"))


def test_eu_stack_says_why_nobody_can_sample_a_process(require: Callable[[bool, str], None]) -> None:
    """The kernel takes one tracer of a process; threads of its own have no user stack."""
    require(os.geteuid() == 0, "this needs root")
    require(shutil.which("eu-stack") is not None, "there is no eu-stack")
    if Path("/proc/2/comm").exists() and Path("/proc/2/comm").read_text() == "kthreadd\n":
        cause, remedy = run("--engine", "eu-stack", "-p", 2, command=TRACE_WALL).check_failed(program="trace-wall")
        assert cause.endswith("process 2 (kthreadd) is a thread of the kernel: it has no user stack")
        assert "another engine" in remedy
    require(shutil.which("strace") is not None, "there is no strace")
    command = ["strace", "-qq", "-o", "/dev/null", "sleep", "60"]
    with subprocess.Popen(command) as strace:
        try:
            until = time.monotonic() + PATIENCE
            while not (below := procfs.children(strace.pid)) or procfs.comm(below[0]) != "sleep":
                assert time.monotonic() < until
                time.sleep(0.01)
            done = run("--engine", "eu-stack", "-p", below[0], command=TRACE_WALL)
            cause, remedy = done.check_failed(program="trace-wall")
            assert f"is being debugged by strace (pid {strace.pid})" in cause
            assert "root" not in remedy
        finally:
            os.kill(below[0], signal.SIGKILL) if below else strace.kill()
