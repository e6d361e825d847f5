"""Traces in a mount namespace where tracefs is not mounted, as in containers: they work, and mount nothing there."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import load
from runner import FOLDER, Workload

pytestmark = pytest.mark.usefixtures("live")

BIN = Path(sys.executable).parent
WITHOUT = """
umount -l /sys/kernel/tracing 2>/dev/null; umount -l /sys/kernel/debug 2>/dev/null
[ -z "$(ls -A /sys/kernel/tracing)" ] || { echo "tracefs is still there"; exit 99; }
before=$(cat /proc/self/mountinfo); "$@"; status=$?
[ "$before" = "$(cat /proc/self/mountinfo)" ] || { echo "mounts have changed"; exit 98; }
exit $status
"""
NO_ADMIN = ("setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin")


def run_without(*command: object) -> str:
    """Output of the command where tracefs is not mounted, after it has succeeded and mounted nothing."""
    mounts = Path("/proc/self/mountinfo").read_bytes()
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", WITHOUT, "sh", *map(str, command)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert Path("/proc/self/mountinfo").read_bytes() == mounts
    return done.stdout


def test_ioctls(tmp_path: Path) -> None:
    out = tmp_path / "x.pb.gz"
    run_without(BIN / "trace-ioctl", "-o", out, "--", FOLDER / "ioctl_loop", "1", "200", "1")
    profile = load(out)
    assert sum(sample.values[1] for sample in profile.samples) >= 200


def test_ioctls_inside_calls(tmp_path: Path) -> None:
    out = tmp_path / "x.pb.gz"
    said = run_without(BIN / "trace-cuda", "-o", out, "--", FOLDER / "cuda_calls", "plain", "1", "20")
    assert "not told apart" not in said
    assert {each.name for each in load(out).call_ioctls} >= {"cudaMalloc"}


def test_tracepoints_by_name(tmp_path: Path) -> None:
    assert "sched:sched_switch of kernel was seen" in run_without(
        BIN / "trace-func", "t:sched:sched_switch", "-o", tmp_path / "x.folded", "--", "sleep", "0.3"
    )
    assert "t:sched:sched_process_exit  comm: char[16]" in run_without(
        BIN / "trace-func", "--list", "t:sched:sched_process_ex*"
    )


@pytest.mark.parametrize("engine", ["libbpf", "bcc", "perf"])
def test_waits(engine: str, tmp_path: Path, require: Callable[[bool, str], None]) -> None:
    require(engine != "perf" or shutil.which("perf") is not None, "there is no perf")
    out = tmp_path / "x.pb.gz"
    with Workload("sleeps", linger=True) as workload:
        workload.release()
        said = run_without(BIN / "trace-offcpu", "--engine", engine, "-o", out, "-d", "0.5", "-p", workload.pid)
    assert load(out).samples
    assert "whether a wait was interruptible" not in said


def test_where_it_may_not_be_mounted_it_is_said(tmp_path: Path) -> None:
    """Root without CAP_SYS_ADMIN."""
    out, timed = tmp_path / "x.pb.gz", ("--lib", "libc.so.6", "--sym", "^clock_nanosleep$")
    said = run_without(*NO_ADMIN, BIN / "trace-cuda", *timed, "-o", out, "--", "sleep", "0.2")
    assert "ioctls in the calls are not told apart" in said
    assert "cannot mount it" in said
    assert [call.count for call in load(out).calls] == [1]
    said = run_without("sh", "-c", '"$@" || true', "sh", *NO_ADMIN, BIN / "trace-ioctl", "-a", "-d", "1")
    assert "tracefs is not mounted" in said
    assert "mount -t tracefs" in said
    assert "Traceback" not in said
