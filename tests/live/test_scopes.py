"""Scopes of a trace: every way to choose processes, and who comes and goes meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import (
    PATIENCE,
    Tracer,
    alive,
    check_counts,
    control_groups,
    load,
    new_group,
    run,
    traced_run,
    unique_copy,
)
from runner import Workload
from tracing import Traced, pids, tids

pytestmark = pytest.mark.usefixtures("live")


def test_list_of_processes(tmp_path: Path) -> None:
    """Exactly those of the list, whose waits are all there; the trace ends with the last of them."""
    path = tmp_path / "out.pb.gz"
    with (
        Workload("sleeps", 4, linger=True) as first,
        Workload("sleeps", 4, linger=True) as second,
        Workload("sleeps", 4, linger=True) as other,
        Tracer("-p", f"{first.pid},{second.pid}", "-o", path) as tracer,
    ):
        tracer.ready()
        for workload in (other, first):
            workload.release()
            workload.truth()
            workload.finish()
        tracer.wait_until(lambda: not alive(first.pid), "the first has ended")
        finished, truth = traced_run(second, tracer)
        assert finished.status == 0
        profile = load(path)
        assert pids(profile) == {first.pid, second.pid}
        check_counts(Traced(profile, truth))
        assert all(times.exited for times in profile.threads)
        assert Traced(profile, {}).blocks("sleep_10ms", first.pid) == 8


@pytest.mark.parametrize("option", ["-p", "--pid"])
def test_repeated_option(tmp_path: Path, option: str) -> None:
    path = tmp_path / "out.pb.gz"
    with (
        Workload("sleeps", 1, linger=True) as first,
        Workload("sleeps", 1, linger=True) as second,
    ):
        run(option, first.pid, option, second.pid, "-d", 0.3, "-o", path).check_succeeded()
        assert pids(load(path)) == {first.pid, second.pid}


def test_one_thread(tmp_path: Path) -> None:
    """One of two threads that take turns: so many that some must be waited for, even on two cores."""
    path = tmp_path / "out.pb.gz"
    with Workload("futex_pingpong", 20_000, linger=True) as workload:
        with Tracer("-t", workload.tids[1], "-o", path) as tracer:
            _, truth = traced_run(workload, tracer)
        (ping,) = [wait for wait in truth["waits"] if wait["function"] == "ping"]
        profile = load(path)
        assert tids(profile) == {ping["tid"]}
        assert pids(profile) == {workload.pid}
        check_counts(Traced(profile, truth), {"waits": [ping]})


def test_name_and_a_process_that_comes_later(tmp_path: Path) -> None:
    program = unique_copy("sleeps", tmp_path)
    path = tmp_path / "out.pb.gz"
    with (
        Workload(str(program), 4, linger=True) as first,
        Workload("sleeps", 1, linger=True) as other,
        Tracer("-n", f"^{program.name}$", "-o", path) as tracer,
    ):
        tracer.ready()
        with Workload(str(program), 60, linger=True) as later:
            later.release()
            first.release()
            first_truth = first.truth()
            later_truth = later.truth()
            finished = tracer.interrupt().finish().check_succeeded()
        traced = Traced(load(path), first_truth)
        assert pids(traced.profile) == {first.pid, later.pid}
        assert other.pid not in pids(traced.profile)
        check_counts(traced)
        for wait in later_truth["waits"]:
            assert 0 < traced.blocks(wait["function"], later.pid) <= wait["blocks"]
        assert f"2 × {program.name}" in finished.out


def test_name_that_nobody_has_yet(tmp_path: Path) -> None:
    """The name is waited for, and a terminal says so."""
    program = unique_copy("sleeps", tmp_path)
    path = tmp_path / "out.pb.gz"
    with Tracer("-n", f"^{program.name}$", "-o", path) as tracer:
        tracer.wait_until(lambda: b"waiting " in tracer._tty, "it waits")
        assert f"for a process that matches '^{program.name}$'".encode() in tracer._tty
        with Workload(str(program), 60, linger=True) as later:
            tracer.ready()
            later.release()
            truth = later.truth()
            tracer.interrupt().finish().check_succeeded()
    traced = Traced(load(path), truth)
    assert pids(traced.profile) == {later.pid}
    for wait in truth["waits"]:
        assert 0 < traced.blocks(wait["function"], later.pid) <= wait["blocks"]


@pytest.mark.parametrize("end", ["duration", "Ctrl-C"])
def test_name_that_nobody_ever_has(tmp_path: Path, end: str) -> None:
    path = tmp_path / "out.svg"
    with Tracer("-n", "nobody[_]has_it", "-o", path, *(["-d", 0.6] if end == "duration" else [])) as tracer:
        tracer.wait_until(lambda: b"waiting " in tracer._tty, "it waits")
        if end == "Ctrl-C":
            tracer.interrupt()
        cause, remedy = tracer.finish().check_failed()
    assert cause == "there was no process whose name or command line matches 'nobody[_]has_it'"
    assert "ps -e" in remedy
    assert not path.exists()


def test_name_matches_the_command_line(tmp_path: Path) -> None:
    mark = f"mark-{os.getpid()}-{time.monotonic_ns()}"
    path = tmp_path / "out.pb.gz"
    target = subprocess.Popen(["sh", "-c", "sleep 60 & wait", mark])
    try:
        run("-n", f"{mark}$", "-d", 0.3, "-o", path).check_succeeded()
        assert target.pid in pids(load(path))
        # The tracer carries the mark in its own command line.
        assert len(pids(load(path))) == 1
    finally:
        children = Path(f"/proc/{target.pid}/task/{target.pid}/children").read_text().split()
        for pid in [*map(int, children), target.pid]:
            os.kill(pid, 9)
        target.wait()


@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize("as_name", [False, True], ids=["path", "name"])
def test_cgroup_and_a_process_moved_in_later(tmp_path: Path, version: str, as_name: bool) -> None:
    hierarchies = control_groups()
    if version not in hierarchies:
        # A machine has the one, the other, or both; the other's absence is no failure.
        assert hierarchies, "no control groups are mounted"
        version = next(iter(hierarchies))
    path = tmp_path / "out.pb.gz"
    with (
        new_group(hierarchies[version]) as group,
        Workload("sleeps", 4, linger=True) as first,
        Workload("sleeps", 60, linger=True) as later,
        Workload("sleeps", 1, linger=True) as other,
    ):
        (group / "cgroup.procs").write_text(str(first.pid))
        with Tracer("--cgroup", group.name if as_name else group, "-o", path) as tracer:
            tracer.ready()
            (group / "below").mkdir()
            (group / "below" / "cgroup.procs").write_text(str(later.pid))
            later.release()
            first.release()
            first_truth, later_truth = first.truth(), later.truth()
            tracer.interrupt().finish().check_succeeded()
        traced = Traced(load(path), first_truth)
        assert pids(traced.profile) == {first.pid, later.pid}
        assert other.pid not in pids(traced.profile)
        check_counts(traced)
        for wait in later_truth["waits"]:
            assert 0 < traced.blocks(wait["function"], later.pid) <= wait["blocks"]


def test_all_but_the_tracer(tmp_path: Path) -> None:
    path = tmp_path / "out.pb.gz"
    with (
        Workload("sleeps", 4, linger=True) as workload,
        Tracer("-a", "-o", path) as tracer,
        Workload("sleeps", 4, linger=True) as second,
    ):
        tracer.ready()
        for each in (workload, second):
            each.release()
        truths = [workload.truth(), second.truth()]
        tracer.interrupt().finish().check_succeeded()
        profile = load(path)
        for truth in truths:
            check_counts(Traced(profile, truth))
        assert os.getpid() in pids(profile)
        assert tracer.pid not in pids(profile)
        assert tracer.pid not in tids(profile)
        assert profile.lost["intervals"] == 0


def test_duration(tmp_path: Path) -> None:
    path = tmp_path / "out.pb.gz"
    with Workload("sleeps", linger=True) as workload:
        run("-p", workload.pid, "-d", 0.5, "-o", path).check_succeeded()
        profile = load(path)
        assert 0.5e9 <= profile.duration_ns < PATIENCE * 1e9
        (times,) = profile.threads
        # It stood at its gate all the time: one wait that has not ended.
        (sample,) = profile.samples
        assert (sample.label("open"), sample.label("state")) == ("yes", "interruptible")
        assert sample.values[:2] == (times.wall, 1)
        assert times.wall == pytest.approx(profile.duration_ns, rel=0.05)


@pytest.mark.parametrize("option", [(), ("--children",)], ids=["alone", "children"])
def test_what_a_process_had_forked_before(tmp_path: Path, option: tuple[str, ...]) -> None:
    """The child is left out and that is said, or traced with `--children`; interpreters are told apart by their
    scripts."""
    path = tmp_path / "out.pb.gz"
    for name in ("load.py", "train.py"):
        (tmp_path / name).write_text("import time\nwhile True:\n    time.sleep(0.01)\n")
    script = f"cd {tmp_path}; python3 load.py & python3 train.py & echo; while :; do sleep 0.1; done"
    parent = subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert parent.stdout
        parent.stdout.readline()
        time.sleep(0.5)
        finished = run("-p", parent.pid, *option, "-d", 0.5, "-o", path).check_succeeded()
        told = "that -p had forked before the trace: not traced; --children traces them, too"
        assert (told in finished.out) is not bool(option)
        scripts = {"-c", "load.py", "train.py"} if option else {"-c"}
        found = {(each.process, each.script) for each in load(path).processes}
        assert {script for _, script in found if script} == scripts
        assert all(not script for process, script in found if process == "sleep")
        assert all((f"python3 {name}" in finished.out) is bool(option) for name in ("load.py", "train.py"))
    finally:
        os.killpg(parent.pid, signal.SIGKILL)
        parent.wait()
        parent.stdout.close()


@pytest.mark.parametrize("option", [(), ("--children",)], ids=["alone", "children"])
def test_what_a_process_with_a_name_had_forked_before(tmp_path: Path, option: tuple[str, ...]) -> None:
    """The child is left out as for `-p`; the recommended command has `--children`, for the child has run."""
    path = tmp_path / "out.pb.gz"
    (tmp_path / "load.py").write_text("import time\nwhile True:\n    time.sleep(0.01)\n")
    mark = f"mark-{os.getpid()}-{time.monotonic_ns()}"
    script = f"{sys.executable} {tmp_path}/load.py & echo; wait"
    parent = subprocess.Popen(["sh", "-c", script, mark], stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert parent.stdout
        parent.stdout.readline()
        (child,) = map(int, Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split())
        name = Path(sys.executable).name
        while Path(f"/proc/{child}/comm").read_text() != f"{name}\n":
            time.sleep(0.01)
        finished = run("-n", f"{mark}$", *option, "-d", 0.5, "-o", path).check_succeeded()
        assert pids(load(path)) == {parent.pid, *([child] if option else [])}
        told = f"1 process ({name}) forked by what -n matches before it was traced, but not matched: not traced"
        assert (told in finished.out) is not bool(option)
        wider = f"Next: trace-offcpu -n '{mark}$' --children -d 0.5  # also 1 process that was left out"
        assert (wider in finished.out) is not bool(option)
    finally:
        os.killpg(parent.pid, signal.SIGKILL)
        parent.wait()
        parent.stdout.close()
