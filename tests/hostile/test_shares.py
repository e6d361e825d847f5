"""Costs of one user's silent processes for others."""

from __future__ import annotations

from pathlib import Path

import pytest
from attackers import Attacker
from neighbours import neighbour
from watching import Command, command_path

pytestmark = pytest.mark.usefixtures("hostile", "nothing_left")

_MANY = 10
_UNTIL_SILENT = 4.0
"""Seconds in which eight of them are given up: the waits for answers are 2.1 s."""


def test_a_user_does_not_use_up_what_others_have(attacker: Attacker, python: Path, outputs: Path) -> None:
    """All of the user's processes have been silent when the other one begins."""
    for _ in range(_MANY):
        attacker.stuck("lock", "fuse of root")
    command = (command_path("trace-offcpu"), "-a", "--no-python", "-o", outputs / "out.folded")
    with Command(*command) as running:
        assert running.traced_after(60) is not None
        running.read(_UNTIL_SILENT)
        with neighbour(python) as other:
            running.read(1)
            ended = running.interrupt()
            pid = other.process.pid
        outcome = running.outcome(0, ended)
    assert outcome.status == 0, outcome.text
    lines = (outputs / "out.folded").read_text().splitlines()
    times = {stack: int(time) for stack, _, time in (line.rpartition(" ") for line in lines) if f"-{pid};" in stack}
    whole = sum(time for stack, time in times.items() if "Py_RunMain" in stack)
    assert whole > sum(times.values()) / 2, sorted(times.items(), key=lambda each: -each[1])[:3]
    assert f"could not be read in time, of user {attacker.uid}" in outcome.text
    assert f"nothing more was read of user {attacker.uid}" in outcome.text
    assert ended is not None
    assert ended < 4, "2 s, and the time that a busy machine takes for the output"
