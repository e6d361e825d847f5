"""Starts a workload, lets it begin when the caller is ready, and reads its truth. See README.md beside this file."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[2] / "build" / "workloads"


class WorkloadFailed(Exception):
    """It ended with another status than 0, or without its truth: what it said on standard error."""


class Workload:
    """A started workload. A context manager: on the way out the process is gone, whatever happened.

    After construction every thread in `tids` (of the processes in `pids`) exists and waits for `release()`.
    """

    def __init__(self, name: str, *arguments: object, linger: bool = False) -> None:
        command = [str(FOLDER / name), "--wait", *(["--linger"] if linger else []), *map(str, arguments)]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="surrogateescape",  # thread names are any bytes
            env={**os.environ, "LC_ALL": "C"},
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


def run(name: str, *arguments: object) -> dict[str, Any]:
    """The truth of a workload that nobody looks at."""
    with Workload(name, *arguments) as workload:
        workload.release()
        truth = workload.truth()
        workload.finish()
        return truth
