"""Traces to which anything happens: signals, a killed tracer, no room for the outputs. Nothing half-done stays
behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import (
    PATIENCE,
    Tracer,
    alive,
    check_counts,
    children_of,
    command_line,
    load,
    program_exists,
    program_ids,
    run,
)
from interrupted_imports import InterruptedImports
from runner import Workload
from tracing import Traced

pytestmark = pytest.mark.usefixtures("live")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_one_signal_stops_and_reports(tmp_path: Path, number: int) -> None:
    paths = [tmp_path / "out.svg", tmp_path / "out.pb.gz"]
    with (
        Workload("sleeps", 4, linger=True) as workload,
        Tracer("-p", workload.pid, "-o", paths[0], "-o", paths[1]) as tracer,
    ):
        tracer.ready()
        workload.release()
        truth = workload.truth()
        finished = tracer.interrupt(number).finish().check_succeeded()
        assert f"Traced sleeps (pid {workload.pid})" in finished.out
        assert sorted(tmp_path.iterdir()) == sorted(paths)
        check_counts(Traced(load(paths[1]), truth))
        workload.finish()  # unharmed


def test_ctrl_c_without_a_target_that_ends(tmp_path: Path) -> None:
    path = tmp_path / "out.pb.gz"
    with Tracer("-a", "-o", path) as tracer:
        tracer.ready().interrupt().finish().check_succeeded()
    assert load(path).samples


@pytest.mark.parametrize("delay", [0, 0.01, 0.05, 0.1, 0.2, 0.4])
def test_second_ctrl_c_stops_at_once(tmp_path: Path, delay: float) -> None:
    """The second Ctrl-C may come anywhere while the results are made: the outputs are there or not, and nothing else
    is."""
    path = tmp_path / "out.svg"
    with Tracer("-a", "-o", path) as tracer:
        tracer.ready().interrupt()
        time.sleep(delay)
        finished = tracer.interrupt().finish()
    assert "Traceback" not in finished.err
    assert "Exception" not in finished.err
    # A shell says 130 also of a process that died of SIGINT.
    assert finished.status in (0, 130, -signal.SIGINT), finished.err
    assert list(tmp_path.iterdir()) in ([], [path])
    if finished.status == 0:
        assert path.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("delay", [0, 0.005, 0.01, 0.02, 0.03, 0.05])
def test_signal_while_the_probes_are_loaded(tmp_path: Path, number: int, delay: float) -> None:
    """The signal must not get lost: without it this trace would not end."""
    with Tracer("-p", os.getpid(), "-o", tmp_path / "out.svg") as tracer:
        maps = Path(f"/proc/{tracer.pid}/maps")
        tracer.wait_until(lambda: "/libbpf.so" in maps.read_text(), "libbpf is loaded")
        time.sleep(delay)
        finished = tracer.interrupt(number).finish()
    assert "Traceback" not in finished.err
    assert "Exception" not in finished.err
    assert finished.status in (0, 128 + number, -number), finished.err


def test_ctrl_c_at_any_stage_says_nothing(tmp_path: Path) -> None:
    """Ctrl-C ends the process, or the trace; what there is of the outputs is whole."""
    (tmp_path / "python").mkdir()
    imports = InterruptedImports(tmp_path / "python", "stallscope.tracers.offcpu")
    options = ("-p", os.getpid(), "-d", 0.1, "-o")
    by = imports.run_by()
    run(*options, tmp_path / "all.svg", prefix=tuple(by), **imports.at("never")).check_succeeded()
    count = imports.count
    seen = set()
    for stage in range(10):
        path = tmp_path / f"{stage}.svg"
        finished = run(*options, path, prefix=tuple(by), **imports.at(count * stage // 10))
        assert finished.err == "", stage
        # A shell says 130 also of a process that died of SIGINT.
        assert finished.status in (0, 130, -signal.SIGINT), stage
        assert path.exists() or finished.status
        assert not path.exists() or path.read_text().endswith("</svg>\n")
        seen.add(finished.status)
    assert len(seen) > 1  # it came before the trace, and during it


def test_no_signal_is_taken_that_was_ignored(tmp_path: Path) -> None:
    """The terminal's end does not end the trace under nohup."""
    path = tmp_path / "out.pb.gz"
    prefix = ("sh", "-c", 'trap "" HUP; exec "$@"', "sh")
    with (
        Workload("sleeps", 4, linger=True) as workload,
        Tracer("-p", workload.pid, "-o", path, prefix=prefix) as tracer,
    ):
        tracer.ready().interrupt(signal.SIGHUP)
        workload.release()
        truth = workload.truth()
        workload.finish()
        tracer.finish().check_succeeded()
        check_counts(Traced(load(path), truth))


@pytest.mark.parametrize("scope", ["pid", "command"])
def test_killed_tracer_leaves_no_probe(tmp_path: Path, scope: str) -> None:
    with Workload("sleeps", 20, linger=True) as workload:
        target = ["-p", workload.pid] if scope == "pid" else ["--", "sleep", 60]
        with Tracer("-o", tmp_path / "out.svg", *target) as tracer:
            tracer.ready()
            commands, helpers = children_of(tracer.pid)
            assert len(commands) == (scope == "command")
            assert helpers
            programs = program_ids(tracer.pid)
            assert len(programs) >= 3
            assert all(map(program_exists, programs))
            workload.release()
            tracer.interrupt(signal.SIGKILL)
            assert tracer.process.wait() == -signal.SIGKILL
            deadline = time.monotonic() + PATIENCE  # the kernel frees them when every CPU has let go of them
            while any(map(program_exists, programs)):
                assert time.monotonic() < deadline, "programs are still there"
                time.sleep(0.02)
        truth = workload.truth()
        assert sum(wait["calls"] for wait in truth["waits"]) == 140
        workload.finish()
        assert list(tmp_path.iterdir()) == []
        for child in commands:
            assert alive(child)
            os.kill(child, signal.SIGKILL)
        deadline = time.monotonic() + PATIENCE
        while any(map(alive, helpers)):
            assert time.monotonic() < deadline, "helpers go on"
            time.sleep(0.02)


def test_killed_before_the_command_began(tmp_path: Path) -> None:
    """A command that waits for the trace never runs without it."""
    marker = tmp_path / "marker"
    with Tracer("-o", tmp_path / "out.svg", "--", "touch", marker) as tracer:
        tracer.wait_until(lambda: bool(children_of(tracer.pid)[0]), "the command waits")
        (child,), _ = children_of(tracer.pid)
        tracer.process.send_signal(signal.SIGKILL)
        tracer.process.wait()
        tracer.wait_until(lambda: not alive(child), "the command is gone")
    assert not marker.exists()


@contextlib.contextmanager
def small_file_system(folder: Path, size: int) -> Iterator[Path]:
    """A tmpfs of so many bytes."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def test_full_disk(tmp_path: Path) -> None:
    """Nothing half-written, what has room is written, and the summary was not lost."""
    other = tmp_path / "out.pb.gz"
    with small_file_system(tmp_path / "small", 4096) as small:
        finished = run("-o", small / "out.svg", "-o", other, "--", "sleep", 0.1)
        cause, remedy = finished.err.splitlines()
        assert finished.status == 1
        assert cause == f"trace-offcpu: {small / 'out.svg'} was not written: no space is left on its file system"
        assert remedy == "free some space, or choose a folder on another file system"
        assert list(small.iterdir()) == []
    assert "Traced sleep" in finished.out
    assert finished.out.splitlines()[-1] == f"wrote {other}"
    assert load(other).samples


def test_full_disk_and_the_graph(tmp_path: Path) -> None:
    """The graph is an output like the others: it is tried, and told, also after one that failed."""
    with small_file_system(tmp_path / "small", 4096) as small:
        (small / "fill").write_bytes(bytes(4096))
        graph = small / "x.dot"
        both = run("--wakers", "-o", small / "out.svg", "--graph", graph, "--", "sleep", 0.1)
        full = "was not written: no space is left on its file system"
        cause = f"2 of 2 outputs were not written: {small / 'out.svg'} {full}; {graph} {full}"
        assert both.err.splitlines()[0] == f"trace-offcpu: {cause}"
        other = tmp_path / "x.dot"
        run("--wakers", "-o", small / "out.svg", "--graph", other, "--", "sleep", 0.1)
        assert other.read_text().startswith("digraph")


def test_full_disk_keeps_the_file_that_was_there(tmp_path: Path) -> None:
    with small_file_system(tmp_path / "small", 8192) as small:
        old = small / "out.svg"
        old.write_text("old")
        run("--force", "-o", old, "--", "sleep", 0.1).check_failed()
        assert old.read_text() == "old"
        assert list(small.iterdir()) == [old]


def test_full_disk_under_standard_output() -> None:
    with Path("/dev/full").open("wb") as full:
        command = command_line("-o", "-", "--", "sleep", 0.1)
        finished = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert finished.returncode == 1
    assert "Traceback" not in finished.stderr
    cause, remedy = finished.stderr.splitlines()[-2:]
    assert cause == "trace-offcpu: standard output cannot be written: No space left on device"
    assert remedy


def test_file_size_limit(tmp_path: Path) -> None:
    path = tmp_path / "out.svg"
    prefix = ("prlimit", "--fsize=2000", "--")
    finished = run("-o", path, "--", "sleep", 0.1, prefix=prefix)
    assert finished.status == 1
    assert f"{path} was not written: the file size limit is reached" in finished.err
    assert list(tmp_path.iterdir()) == []
