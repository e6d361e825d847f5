"""Starts a workload, lets it begin when the caller is ready, and reads its truth. See README.md beside this file."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from default_signals import in_child

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parents[1] / "build" / "workloads"
SYSTEM_PYTHON = "/usr/bin/python3"
"""Runs the workloads that are Python: Debian's has no frame pointers."""
_IN_PYTHON = ("python_calls", "python_threads", "python_frames", "python_steps", "python_truth")


class WorkloadFailed(Exception):
    """Error for a workload that ended with another status than 0, or without its truth: what it said on standard
    error."""


class Workload:
    """A started workload. A context manager: on the way out the process is gone, whatever happened.

    After construction every thread in `tids` (of the processes in `pids`) exists and waits for `release()`.
    """

    def __init__(
        self,
        name: str,
        *arguments: object,
        linger: bool = False,
        prefix: Sequence[str] = (),
        python: Sequence[str] = (SYSTEM_PYTHON,),
    ) -> None:
        """``prefix`` is a command that runs the one that follows it; ``python`` the one that runs Python."""
        flags = ["--wait", *(["--linger"] if linger else [])]
        command = [*prefix, *_program(name, python), *flags, *map(str, arguments)]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="surrogateescape",  # thread names are any bytes
            env={**os.environ, "LC_ALL": "C"},
            preexec_fn=in_child,  # noqa: PLW1509  # it only sets signals
        )
        try:
            ready = self._read_line()
        except BaseException:
            self.kill()
            raise
        self.pid: int = ready["pid"]
        self.pids: list[int] = ready["pids"]
        self.tids: list[int] = ready["tids"]

    def _read_line(self) -> dict[str, Any]:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            assert self._process.stderr
            raise WorkloadFailed(self._process.stderr.read().strip() or f"status {self._process.wait()}")
        value: dict[str, Any] = json.loads(line)
        return value

    def release(self) -> None:
        """Lets it begin."""
        assert self._process.stdin
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def truth(self) -> dict[str, Any]:
        """Waits for the last line of its output. With `linger` the process then still lives."""
        return self._read_line()

    def finish(self) -> None:
        """Closes its standard input, which ends its lingering, and waits for its end."""
        assert self._process.stdin
        self._process.stdin.close()
        if status := self._process.wait():
            raise WorkloadFailed(f"status {status}")

    def kill(self) -> None:
        """Ends it now; its forked children die with it."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert stream
            stream.close()

    def __enter__(self) -> Workload:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


class SettledWorkload(Workload):
    """One that lingers, and whose truth comes when its main thread, too, has come to rest."""

    def truth(self) -> dict[str, Any]:
        truth = super().truth()
        waits = [-1, -1]
        while waits[-1] < 0 or waits[-1] != waits[-2]:
            time.sleep(0.05)
            waits.append(self._waits())
        return truth

    def _waits(self) -> int:
        """Number of the main thread's waits so far, -1 if it does not wait now: proc(5)."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        status = dict(line.split(":\t", 1) for line in lines)
        return int(status["voluntary_ctxt_switches"]) if status["State"][0] == "S" else -1


def _program(name: str, python: Sequence[str]) -> list[str]:
    return [*python, str(HERE / f"{name}.py")] if name in _IN_PYTHON else [str(FOLDER / name)]


def run(name: str, *arguments: object) -> dict[str, Any]:
    """The truth of a workload that nobody looks at."""
    with Workload(name, *arguments) as workload:
        workload.release()
        truth = workload.truth()
        workload.finish()
        return truth
