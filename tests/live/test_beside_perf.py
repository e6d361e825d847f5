"""perf beside our traces: a program at a tracepoint must not take its events away from others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from commands import Tracer
from runner import Workload

pytestmark = pytest.mark.usefixtures("live")

MEANWHILE = "print('perf counts', flush=True); input()"
SWITCHES, IOCTLS = "sched:sched_switch", "syscalls:sys_enter_ioctl"


@pytest.mark.parametrize(
    ("command", "options", "workload", "event"),
    [
        ("trace-offcpu", ("--engine", "bcc"), ("slow_producer", 200, 10_000), SWITCHES),
        ("trace-offcpu", ("--engine", "libbpf"), ("slow_producer", 200, 10_000), SWITCHES),
        ("trace-ioctl", (), ("ioctls", "tty", 1, 2_000), IOCTLS),
        ("trace-func", (f"t:{SWITCHES}",), ("slow_producer", 200, 10_000), SWITCHES),
        ("trace-func", (f"t:{SWITCHES}", "--where", "next_pid == 1"), ("slow_producer", 200, 10_000), SWITCHES),
    ],
    ids=["bcc", "libbpf", "ioctl", "events", "question"],
)
def test_perf_gets_its_events(
    command: str,
    options: tuple[str, ...],
    workload: tuple[str | int, ...],
    event: str,
    tmp_path: Path,
) -> None:
    program = Path(sys.executable).with_name(command)
    with (
        Workload(*workload, linger=True) as running,
        Tracer(*options, "-p", running.pid, "-o", tmp_path / "x.pb.gz", command=str(program)) as tracer,
    ):
        tracer.ready()
        counted = ["perf", "stat", "-x", ",", "-e", event, "-a", "--", sys.executable, "-c", MEANWHILE]
        pipe = subprocess.PIPE
        with subprocess.Popen(counted, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as perf:
            assert perf.stdout
            assert perf.stdout.readline() == "perf counts\n"
            running.release()
            running.truth()
            told = perf.communicate("\n")[1]
        tracer.interrupt().finish().check_succeeded()
    assert int(told.split(",")[0]) >= 200, told
