"""Processes whose memory or files are never answered hang no command: it ends in time, and says what is missing."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build" / "workloads" / "never_answers"
COMMANDS = ("trace-offcpu", "trace-wall", "trace-wakeup")
SECONDS = 2
TOLDS = {"memory": "memory not readable", "words": "", "file": "could not be read in time"}
"""The kernel refuses at once to read a page of userfaultfd for another process."""


@pytest.fixture(params=["memory", "words", "file"])
def silent(request: pytest.FixtureRequest, tmp_path: Path, live: None) -> Iterator[tuple[int, str]]:
    """A process that never answers, and what of it does not."""
    more = {"memory": [], "words": ["d" * 20000], "file": [str(tmp_path)]}[request.param]
    environ = {**os.environ, "LONG": "d" * 20000}
    with subprocess.Popen([PROGRAM, request.param, *more], stdout=subprocess.PIPE, env=environ, text=True) as process:
        try:
            assert process.stdout and process.stdout.readline() == "ready\n"
            yield process.pid, request.param
        finally:
            server = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True)
            for pid in (*map(int, server.stdout.split()), process.pid):
                os.kill(pid, signal.SIGKILL)
            subprocess.run(["umount", "-l", tmp_path], capture_output=True)


def bpf_links() -> int:
    """Descriptors of programs, maps and links of BPF, of all processes that tell."""
    found = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            for fd in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    found += os.readlink(f"/proc/{pid}/fd/{fd}").startswith("anon_inode:bpf")
    return found


def traced(command: list[str]) -> tuple[str, str]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_a_process_that_never_answers(command: str, silent: tuple[int, str], tmp_path: Path) -> None:
    out = tmp_path.parent / f"{tmp_path.name}.folded"
    pid, kind = silent
    said = "".join(traced([f"{ROOT}/.venv/bin/{command}", "-p", str(pid), "-d", str(SECONDS), "-o", str(out)]))
    assert TOLDS[kind] in said


def test_it_ends_at_once_by_ctrl_c(silent: tuple[int, str], tmp_path: Path) -> None:
    out = tmp_path.parent / f"{tmp_path.name}.folded"
    words = [f"{ROOT}/.venv/bin/trace-offcpu", "-p", str(silent[0]), "-d", "60", "-o", str(out)]
    before = bpf_links()
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        until = time.monotonic() + 30
        while bpf_links() == before:
            assert time.monotonic() < until
            time.sleep(0.05)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        begin = time.monotonic()
        process.communicate(timeout=30)
        took = time.monotonic() - begin
    assert took < 4, "2 s, and the time that a busy machine takes for the output"
    assert bpf_links() == before
