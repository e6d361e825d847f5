"""A trace that is ended by SIGKILL, or whose helpers are, leaves nothing behind, and harms no process."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from pathlib import Path

import pytest
from attackers import ATTACKS, Attacker, of_user
from neighbours import Neighbour
from stallscope.tracers.base import procfs
from watching import Command, command_path, family

pytestmark = pytest.mark.usefixtures("hostile", "nothing_left")

_EVERYTHING = os.environ.get("HOSTILE") == "all"
_COMMANDS: dict[str, tuple[str, ...]] = {
    "wall": ("trace-wall",),
    "func": ("trace-func", "libc.so.6:malloc_trim"),
    "perf": ("trace-wall", "--engine", "perf"),
    "bcc": ("trace-wall", "--engine", "bcc"),
    "eu-stack": ("trace-wall", "--engine", "eu-stack"),
}


def states(uid: int) -> set[str]:
    """States of all threads of a user."""
    found = set()
    for pid in of_user(uid):
        for tid in procfs.tids(pid):
            with contextlib.suppress(OSError):
                text = Path(f"/proc/{pid}/task/{tid}/stat").read_text("utf-8", "replace")
                found.add(text.rpartition(")")[2].split()[0])
    return found


def wait_until_nobody_is_stopped(uid: int) -> None:
    deadline = time.monotonic() + 10
    while stopped := states(uid) & {"T", "t"}:
        assert time.monotonic() < deadline, stopped
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("name", "whole"),
    [(name, whole) for i, name in enumerate(_COMMANDS) for whole in (False, True) if _EVERYTHING or i % 2 == whole],
)
def test_killed(name: str, whole: bool, attacker: Attacker, bystander: Neighbour, outputs: Path) -> None:
    """The command is killed at some moment; with all of its helpers, or alone."""
    program, *options = _COMMANDS[name]
    pid = ATTACKS["many threads"](attacker)
    with Command(command_path(program), *options, "-p", pid, "-o", outputs / "out.pb.gz") as running:
        running.read(random.uniform(0.2, 4))
        if whole:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.process.pid, signal.SIGKILL)
        else:
            running.process.kill()
        running.process.wait()
        running.read(1)
        deadline = time.monotonic() + 10
        while left := [each for each in running.seen if each in family(os.getpid())]:
            assert time.monotonic() < deadline, f"helpers go on: {left}"
            time.sleep(0.05)
    wait_until_nobody_is_stopped(attacker.uid)
    bystander.check()


@pytest.mark.parametrize("name", _COMMANDS)
def test_helpers_are_killed(name: str, attacker: Attacker, bystander: Neighbour, outputs: Path) -> None:
    """The command ends at Ctrl-C all the same, and says what it lacks."""
    program, *options = _COMMANDS[name]
    pid = ATTACKS["names"](attacker)
    with Command(command_path(program), *options, "-p", pid, "-o", outputs / "out.pb.gz") as running:
        began = running.traced_after(60)
        for _ in range(10):
            for each in set(family(running.process.pid)) - {running.process.pid}:
                with contextlib.suppress(OSError):
                    os.kill(each, signal.SIGKILL)
            running.read(0.1)
        outcome = running.outcome(began, running.interrupt())
    assert outcome.ended is not None
    assert "Traceback" not in outcome.text
    assert "internal error" not in outcome.text
    wait_until_nobody_is_stopped(attacker.uid)
    bystander.check()
