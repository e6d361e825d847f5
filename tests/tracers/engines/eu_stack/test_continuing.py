"""Processes that eu-stack has stopped, when it and we are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from stallscope.tracers.base import procfs
from stallscope.tracers.engines.eu_stack.continuing import Guard

PATIENCE = 30
Fake = Callable[[str], Path]
Sleeper = subprocess.Popen[bytes]
HOLD = """
import sys
from stallscope.tracers.engines.eu_stack.walker import Walker
walker = Walker(sys.argv[1])
walker.walk(int(sys.argv[2]), lambda: print("looks", file=sys.stderr, flush=True))
print("done", flush=True)
sys.stdin.read()
"""


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def ours(path: Path, pid: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", HOLD, str(path), str(pid)]
    return subprocess.Popen(
        command, start_new_session=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


@pytest.mark.parametrize("was_stopped", [False, True])
def test_both_are_killed(fake_eu_stack: Fake, sleeper: Sleeper, tmp_path: Path, was_stopped: bool) -> None:
    """The process goes on, unless somebody else had stopped it."""
    if was_stopped:
        sleeper.send_signal(signal.SIGSTOP)
        wait_for(lambda: procfs.state(sleeper.pid) == "T")
    path = fake_eu_stack(f"kill -STOP $2; echo $$ > {tmp_path}/new; mv {tmp_path}/new {tmp_path}/pid; exec sleep 60")
    with ours(path, sleeper.pid) as tracer:
        wait_for((tmp_path / "pid").exists)
        eu_stack = int((tmp_path / "pid").read_text())
        others = {tracer.pid, eu_stack}
        wait_for(lambda: len(procfs.descendants([tracer.pid]) - others) == 1)  # mv has ended
        (guard,) = procfs.descendants([tracer.pid]) - others
        assert len({os.getsid(each) for each in (tracer.pid, eu_stack, guard)}) == 3
        os.killpg(tracer.pid, signal.SIGKILL)
        os.killpg(eu_stack, signal.SIGKILL)
    wait_for(lambda: not Path(f"/proc/{guard}").exists() or procfs.state(guard) == "Z")
    wait_for(lambda: procfs.state(sleeper.pid) == ("T" if was_stopped else "S"))


@pytest.mark.parametrize("was_stopped", [False, True])
def test_eu_stack_ends_with_us(fake_eu_stack: Fake, sleeper: Sleeper, tmp_path: Path, was_stopped: bool) -> None:
    if was_stopped:
        sleeper.send_signal(signal.SIGSTOP)
        wait_for(lambda: procfs.state(sleeper.pid) == "T")
    path = fake_eu_stack(f"echo $$ > {tmp_path}/new; mv {tmp_path}/new {tmp_path}/pid; exec sleep 300")
    with ours(path, sleeper.pid) as tracer:
        wait_for((tmp_path / "pid").exists)
        assert tracer.stderr and tracer.stderr.readline() == b"looks\n"  # the guard has been told
        tracer.kill()
    wait_for(lambda: not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists())
    assert procfs.state(sleeper.pid) == ("T" if was_stopped else "S")


def test_what_is_stopped_after_the_walk_is_not_ours(fake_eu_stack: Fake, sleeper: Sleeper) -> None:
    with ours(fake_eu_stack("exit 0"), sleeper.pid) as tracer:
        assert tracer.stdout is not None
        assert tracer.stdout.readline() == b"done\n"
        (guard,) = procfs.descendants([tracer.pid]) - {tracer.pid}
        sleeper.send_signal(signal.SIGSTOP)
        wait_for(lambda: procfs.state(sleeper.pid) == "T")
        tracer.kill()
    wait_for(lambda: not Path(f"/proc/{guard}").exists() or procfs.state(guard) == "Z")
    assert procfs.state(sleeper.pid) == "T"


def test_another_process_with_the_same_id_is_left_alone(sleeper: Sleeper, monkeypatch: pytest.MonkeyPatch) -> None:
    guard = Guard()
    sleeper.send_signal(signal.SIGSTOP)
    wait_for(lambda: procfs.state(sleeper.pid) == "T")
    monkeypatch.setattr(procfs, "began", lambda pid, tid: 1)
    guard._say(sleeper.pid, sleeper.pid)
    guard.close()
    assert procfs.state(sleeper.pid) == "T"


def test_it_is_no_loss_when_the_guard_is_killed(sleeper: Sleeper) -> None:
    guard = Guard()
    os.kill(guard.pid, signal.SIGKILL)
    os.waitid(os.P_PID, guard.pid, os.WEXITED | os.WNOWAIT)
    with guard.over(sleeper.pid):
        pass
    guard.close()
