"""--every: each interval is a profile by itself, and together they are the whole trace."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from commands import Tracer, load, run
from runner import Workload
from stallscope.converters.model import Profile
from tracing import RUNNABLE, Traced

pytestmark = pytest.mark.usefixtures("live")

NAME = "x-%Y%m%d-%H%M%S.pb.gz"


def profiles(folder: Path) -> list[Profile]:
    found = [load(path) for path in sorted(folder.iterdir())]
    for before, after in zip(found, found[1:], strict=False):
        assert abs(before.start_ns + before.duration_ns - after.start_ns) <= 1_000, "a gap"
    return found


def check_interval(profile: Profile) -> None:
    """Checks that its accounts add up to its length, and its rows to the accounts."""
    assert not any(profile.lost[kind] for kind in ("intervals", "stacks", "threads", "exit and exec records"))
    off: Counter[tuple[int, int]] = Counter()
    for thread in profile.threads:
        assert thread.on_cpu + thread.runnable + sum(thread.blocked.values()) == thread.wall
        assert thread.wall <= profile.duration_ns
        off[thread.pid, thread.tid] += thread.wall - thread.on_cpu
    rows: Counter[tuple[object, object]] = Counter()
    for sample in profile.samples:
        if sample.label("state") != "running":
            rows[sample.label("pid"), sample.label("tid")] += sample.values[0]
    assert {who: time for who, time in rows.items() if time} == {who: time for who, time in off.items() if time}


@pytest.mark.parametrize("command", ["trace-offcpu", "trace-wall"])
def test_intervals_are_whole(command: str, tmp_path: Path) -> None:
    with (
        Workload("many_stacks", 3, 18_000, 500, 200, linger=True) as workload,
        Tracer(
            *("--every", "1s", "-p", workload.pid, "-o", tmp_path / NAME),
            command=str(Path(sys.executable).with_name(command)),
        ) as tracer,
    ):
        tracer.ready()
        workload.release()
        truth = workload.truth()
        tracer.interrupt().finish().check_succeeded()
    found = profiles(tmp_path)
    assert len(found) >= 4
    for profile in found:
        check_interval(profile)
        assert len({thread.tid for thread in profile.threads}) == len(profile.threads)
    for profile in found[1:-1]:
        # The main thread only waits: it has no event in most of them.
        (main,) = [thread for thread in profile.threads if thread.tid == workload.pid]
        assert main.wall == profile.duration_ns
    for wait in truth["waits"]:
        each = [Traced(profile, truth) for profile in found]
        unseen = sum(traced.unseen for traced in each)
        assert abs(sum(traced.blocks("leaf", wait["tid"]) for traced in each) - wait["blocks"]) <= unseen + 1
        waited = sum(
            sample.values[0]
            for traced in each
            for sample in traced.samples("leaf", wait["tid"])
            if sample.label("state") not in ("running", RUNNABLE[1])
        )
        assert waited <= wait["ns"]
        assert waited > 0.7 * wait["ns"]
    names = {frame.name for profile in found[1:] for sample in profile.samples for frame in sample.stack}
    assert "[stack lost]" not in names
    assert {"leaf", "left", "right"} <= names


def test_threads_come_and_go(tmp_path: Path) -> None:
    """A storm of processes, each of which has an account in one interval, or in two."""
    with (
        Workload("fork_storm", 2500, 4, linger=True) as workload,
        Tracer("--every", "1s", "-p", workload.pid, "-o", tmp_path / NAME) as tracer,
    ):
        tracer.ready()
        workload.release()
        workload.truth()
        time.sleep(1.2)
        tracer.interrupt().finish().check_succeeded()
    found = profiles(tmp_path)
    ended = 0
    for profile in found:
        check_interval(profile)
        ended += sum(thread.exited for thread in profile.threads)
    assert ended == 2500


def test_a_command(tmp_path: Path) -> None:
    program = "import threading, time; threading.Thread(target=time.sleep, args=(3.4,)).start(); time.sleep(3.5)"
    command = ("--", sys.executable, "-c", program)
    run("--every", "1s", "-o", tmp_path / NAME, *command).check_succeeded()
    found = profiles(tmp_path)
    assert len(found) >= 3
    for profile in found:
        check_interval(profile)
        # A wait that crosses a boundary is one row in each interval.
        assert all(sample.values[0] for sample in profile.samples if sample.label("open") == "yes")
    others = [thread for profile in found for thread in profile.threads if thread.tid != thread.pid]
    assert len(others) >= 3
    assert [bool(thread.creator) for thread in others] == [True, *[False] * (len(others) - 1)]


def test_what_cannot_be_written_does_not_end_the_trace(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    with Tracer("--every", "1s", "-p", os.getpid(), "-o", tmp_path / "there" / NAME) as tracer:
        tracer.ready()
        tracer.wait_until(lambda: len(list((tmp_path / "there").iterdir())) >= 1, "an interval was written")
        (tmp_path / "there").rename(tmp_path / "elsewhere")
        time.sleep(2.5)
        (tmp_path / "elsewhere").rename(tmp_path / "there")
        finished = tracer.interrupt(signal.SIGINT).finish()
    assert finished.status == 1
    assert "Traceback" not in finished.err
    assert str(tmp_path / "there") in finished.err
    assert len(list((tmp_path / "there").iterdir())) >= 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--every", "1s"), "--every needs a name for each interval"),
        (("--every", "1s", "-o", "x.pb.gz"), "x.pb.gz is always the same"),
        (("--every", "1s", "-o", "%H.pb.gz"), "%H.pb.gz is always the same"),
        (("--every", "1s", "-o", "-"), "--every needs a name for each interval"),
        (("--every", "0", "-o", NAME), "is not a time from 1s to 24h"),
        (("--every", "1s", "-o", "%S.pftrace"), "have no timeline"),
    ],
)
def test_usage(options: tuple[str, ...], said: str, tmp_path: Path) -> None:
    cause, _ = run(*options, "-p", os.getpid(), cwd=tmp_path).check_failed(2)
    assert said in cause
