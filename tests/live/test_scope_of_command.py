"""A command that the tracer starts: its first instruction, its children, its end."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from commands import Tracer, alive, check_counts, children_of, command_truth, load, program_ids, run, traced_run
from runner import FOLDER, Workload
from tracing import Traced, pids

pytestmark = pytest.mark.usefixtures("live")


def test_command_from_its_first_instruction_to_its_exit(tmp_path: Path) -> None:
    path = tmp_path / "out.pb.gz"
    finished = run("-o", path, "--", FOLDER / "sleeps", 4).check_succeeded()
    truth = command_truth(finished.out)
    traced = Traced(load(path), truth)
    check_counts(traced)
    (times,) = traced.profile.threads
    assert times.exited
    assert (times.process, times.pid) == ("sleeps", truth["waits"][0]["pid"])
    assert truth["end_ns"] - truth["begin_ns"] <= times.wall <= traced.profile.duration_ns
    # Before exec it waited in pipe_read(), and was a copy of the tracer.
    for sample in traced.profile.samples:
        assert not any("pipe_read" in frame.name for frame in sample.stack)
        assert not any(frame.module and "python" in frame.module.path for frame in sample.stack)
    assert sum(count for count in (traced.blocks(name) for name in ("sleep_1ms", "sleep_10ms", "sleep_25ms"))) == 28


def test_command_that_cannot_be_run(tmp_path: Path) -> None:
    path = tmp_path / "out.svg"
    cause, remedy = run("-o", path, "--", "/no/such", "--flag").check_failed()
    assert cause == "cannot run '/no/such': No such file or directory"
    assert "after `--`" in remedy
    no_program = tmp_path / "data"
    no_program.write_text("text")
    cause, _ = run("-o", path, "--", no_program).check_failed()
    assert cause == f"cannot run '{no_program}': Permission denied"
    assert not path.exists()


@pytest.mark.parametrize(
    ("script", "status", "said"),
    [
        ("sleep 0.05; exit 3", 3, "the command ended with status 3"),
        ("sleep 0.05; kill -SEGV $$", 128 + signal.SIGSEGV, "the command was ended by SIGSEGV"),
    ],
)
def test_status_of_a_command_is_that_of_the_trace(tmp_path: Path, script: str, status: int, said: str) -> None:
    path = tmp_path / "out.pb.gz"
    finished = run("-o", path, "--", "sh", "-c", script)
    assert (finished.status, finished.err) == (status, "")
    assert said in finished.out
    assert load(path).samples


def test_command_that_the_end_of_the_trace_ends_has_no_status(tmp_path: Path) -> None:
    run("-d", 0.2, "-o", tmp_path / "a.svg", "--", "sleep", 60).check_succeeded()
    with Tracer("-o", tmp_path / "b.svg", "--", "sleep", 60) as tracer:
        tracer.ready()
        (child,), _ = children_of(tracer.pid)
        os.kill(child, signal.SIGINT)  # as a terminal does it
        tracer.interrupt().finish().check_succeeded()


def test_command_does_not_hold_what_the_tracer_holds(tmp_path: Path) -> None:
    with Tracer("-o", tmp_path / "out.svg", "--", "sleep", 60) as tracer:
        tracer.ready()
        (child,), _ = children_of(tracer.pid)
        assert program_ids(tracer.pid)
        assert not program_ids(child)
        handled = Path(f"/proc/{child}/status").read_text()
        ignored = [line.split()[1] for line in handled.splitlines() if line.startswith(("SigIgn", "SigCgt", "SigBlk"))]
        assert [int(mask, 16) & ~(1 << 31) for mask in ignored] == [0, 0, 0]
        tracer.interrupt().finish().check_succeeded()
        tracer.wait_until(lambda: not alive(child), "the command was ended")


@pytest.mark.parametrize("command", [False, True], ids=["pid", "command"])
@pytest.mark.parametrize("follow", [True, False], ids=["children", "no-children"])
def test_children(tmp_path: Path, command: bool, follow: bool) -> None:
    path = tmp_path / "out.pb.gz"
    options = ["-o", path] + ([] if follow else ["--no-children"])
    if command:
        truth = command_truth(run(*options, "--", FOLDER / "fork_storm", "--exec", 20).check_succeeded().out)
    else:
        with (
            Workload("fork_storm", "--exec", 20, linger=True) as workload,
            Tracer("-p", workload.pid, *options) as tracer,
        ):
            _, truth = traced_run(workload, tracer)
    (reap,) = [wait for wait in truth["waits"] if wait["function"] == "reap"]
    traced = Traced(load(path), truth)
    assert traced.blocks("reap", reap["tid"]) == reap["blocks"]
    assert traced.blocks("exec_child_sleep") == (20 if follow else 0)
    assert len(pids(traced.profile)) == (21 if follow else 1)
    if not follow:
        assert pids(traced.profile) == {reap["pid"]}


def test_threads_are_followed_without_children(tmp_path: Path) -> None:
    """--no-children leaves out processes, not threads that a traced process creates."""
    path = tmp_path / "out.pb.gz"
    finished = run("--no-children", "-o", path, "--", FOLDER / "futex_pingpong", 200).check_succeeded()
    traced = Traced(load(path), command_truth(finished.out))
    check_counts(traced)
    assert len(traced.profile.threads) == 3


def test_children_that_outlive_the_command(tmp_path: Path) -> None:
    """The trace ends with the command; its child is counted up to then and lives on."""
    path = tmp_path / "out.pb.gz"
    finished = run("-o", path, "--", "sh", "-c", "sleep 50 >&- 2>&- & echo child $!; sleep 0.2").check_succeeded()
    child = int(finished.out.split()[1])
    try:
        assert alive(child)
        profile = load(path)
        (times,) = [times for times in profile.threads if times.tid == child]
        assert not times.exited
        assert times.process == "sleep"
        still = [s for s in profile.samples if s.label("tid") == child and s.label("open") == "yes"]
        assert sum(s.values[0] for s in still) > 0.5 * times.wall
        assert profile.duration_ns < 40e9
    finally:
        os.kill(child, 9)


def test_duration_ends_a_command(tmp_path: Path) -> None:
    path = tmp_path / "out.pb.gz"
    finished = run("-d", 0.3, "-o", path, "--", "sh", "-c", "echo child $$; exec sleep 50").check_succeeded()
    assert not alive(int(finished.out.split()[1]))
    assert load(path).duration_ns >= 0.3e9
