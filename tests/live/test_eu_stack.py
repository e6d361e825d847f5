"""The engine eu-stack, with processes that it cannot sample."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from commands import NOBODY, PATIENCE, run
from stallscope.tracers.base import procfs
from stallscope.tracers.engines.eu_stack.walker import _PATIENCE

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


_WAITS = "#include <unistd.h>\nint main(void) { for (;;) sleep(1); }\n"


def test_a_file_that_never_answers(require: Callable[[bool, str], None], tmp_path: Path) -> None:
    """eu-stack opens the file of debug information that a program names: here a named pipe that nobody writes to."""
    require(os.geteuid() == 0, "this needs root")
    require(shutil.which("eu-stack") is not None, "there is no eu-stack")
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # which other users can reach
        program, debug = Path(folder, "program"), Path(folder, "program.debug")
        subprocess.run(["gcc", "-x", "c", "-", "-o", program], input=_WAITS, text=True, check=True)
        shutil.copy(program, debug)
        subprocess.run(["strip", program], check=True)
        subprocess.run(["objcopy", f"--add-gnu-debuglink={debug}", program], check=True)
        debug.unlink()
        os.mkfifo(debug)
        for path in (folder, program, debug):
            os.chown(path, NOBODY, NOBODY)
            os.chmod(path, 0o755)
        with subprocess.Popen([program], user=NOBODY, group=NOBODY, extra_groups=[]) as process:
            try:
                began = time.monotonic()
                out = tmp_path / "out.folded"
                done = run("--engine", "eu-stack", "-p", process.pid, "-d", 1, "-o", out, command=TRACE_WALL)
                cause, remedy = done.check_failed(program="trace-wall")
                assert f"at process {process.pid} (program)" in cause
                assert "given up: eu-stack did not answer" in cause
                assert remedy == "use another engine"
                assert time.monotonic() - began < _PATIENCE, "less after the end of -d than without one"
                assert procfs.state(process.pid) == "S"
            finally:
                process.kill()
