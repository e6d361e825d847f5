"""No output tells an absolute address of the kernel, unless it is asked for."""

from __future__ import annotations

import gzip
import re
import sys
from pathlib import Path

import pytest
from commands import load, run
from runner import Workload

pytestmark = pytest.mark.usefixtures("live")

SUFFIXES = ("svg", "html", "folded", "speedscope.json", "trace.json", "md", "pb.gz")
COMMANDS = ("trace-offcpu", "trace-oncpu", "trace-wall", "trace-wakeup", "trace-ioctl")
_ADDRESS = re.compile(rb"(?i)ffff[89a-f][0-9a-f]{11}")


def check(path: Path) -> None:
    data = path.read_bytes()
    data = gzip.decompress(data) if path.name.endswith(".gz") else data
    assert not _ADDRESS.search(data), path
    if path.name.endswith(".pb.gz"):
        frames = {frame for sample in load(path).samples for frame in sample.stack if frame.kind == "kernel"}
        assert all(frame.address < 1 << 47 for frame in frames), path


@pytest.mark.parametrize("command", COMMANDS)
def test_in_no_format_of_any_command(tmp_path: Path, command: str) -> None:
    paths = [tmp_path / f"out.{suffix}" for suffix in SUFFIXES]
    outputs = [word for path in paths for word in ("-o", path)]
    program = str(Path(sys.executable).with_name(command))
    with Workload("sleeps", 2, linger=True):
        finished = run("-a", "-d", 1, *outputs, "--json", command=program).check_succeeded()
    assert not _ADDRESS.search(finished.out.encode())
    for path in paths:
        check(path)


def test_they_are_told_when_asked_for(tmp_path: Path) -> None:
    default, asked = tmp_path / "default.pb.gz", tmp_path / "asked.pb.gz"
    with Workload("sleeps", 2, linger=True) as workload:
        run("-p", workload.pid, "-d", 1, "-o", default).check_succeeded()
        run("-p", workload.pid, "-d", 1, "-o", asked, "--kernel-addresses").check_succeeded()
    highest = [
        max(frame.address for sample in load(path).samples for frame in sample.stack if frame.kind == "kernel")
        for path in (default, asked)
    ]
    assert 0 < highest[0] < 1 << 47
    assert highest[1] >= 1 << 63


def test_private_files_from_the_first_byte_on(tmp_path: Path) -> None:
    """Files are readable by their owner only, unless another mode is asked for; also an existing one."""
    private, shared = tmp_path / "private.svg", tmp_path / "shared.svg"
    private.write_text("old")
    private.chmod(0o666)
    run("-o", private, "--force", "--", "sleep", 0.1).check_succeeded()
    run("-o", shared, "--mode", "0644", "--", "sleep", 0.1).check_succeeded()
    assert (private.stat().st_mode & 0o777, shared.stat().st_mode & 0o777) == (0o600, 0o644)


def test_each_interval_is_private(tmp_path: Path) -> None:
    run("-a", "-d", 2.2, "--every", "1s", "-o", tmp_path / "x-%H%M%S.pb.gz").check_succeeded()
    modes = {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes == {0o600}
