"""Answers of captures, which are those of the traces."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from commands import Tracer, environment, traced_run
from runner import Workload

pytestmark = pytest.mark.usefixtures("live")

PID = "PID"
"""Stands for the id of the program."""
CASES = [
    ("trace-offcpu", "lock_holder", ()),
    ("trace-wall", "work_and_rest", ()),
    ("trace-wakeup", "pipe_chain", ()),
    ("trace-wakeup", "pipe_chain", ("--idle",)),
    ("trace-oncpu", "work_and_rest", ()),
    ("trace-ioctl", "ioctls", ("--sort", "p99", "--by", "thread")),
    ("trace-offcpu", "mutexes", ("-v",)),
    ("trace-wakeup", "pipe_chain", ("--critical", PID)),
    ("trace-wakeup", "mutexes", ("--critical", PID, "-v")),
    ("trace-offcpu", "lock_holder", ("--children", "--per-thread")),
    ("trace-offcpu", "lock_holder", ("--merge",)),
]


def command_path(name: str) -> str:
    return str(Path(sys.executable).with_name(name))


def again(path: Path, *options: str) -> str:
    made = subprocess.run(
        [command_path("trace-convert"), "--answer", *options, path],
        capture_output=True, text=True, check=True, env=environment(), stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert made.stderr == ""
    return made.stdout


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize(("command", "program", "options"), CASES)
def test_the_capture_answers_like_the_trace(
    command: str, program: str, options: tuple[str, ...], tmp_path: Path, *, as_json: bool
) -> None:
    path = tmp_path / "out.pb.gz"
    chosen = ("--json", *options) if as_json else options
    with (
        Workload(program, linger=True) as workload,
        Tracer(
            "-p",
            workload.pid,
            *(workload.pid if each == PID else each for each in chosen),
            "-o",
            path,
            command=command_path(command),
        ) as tracer,
    ):
        finished, _ = traced_run(workload, tracer)
    told = finished.out.replace(f"wrote {path}\n", "")
    assert again(path, *(["--json"] if as_json else []), *(["--whole"] if "-v" in options else [])) == told
