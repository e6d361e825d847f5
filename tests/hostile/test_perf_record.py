"""perf record itself opens none of the files that traced processes map."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from attackers import Attacker
from watching import Command, command_path

pytestmark = pytest.mark.usefixtures("hostile", "nothing_left")


def test_a_library_on_a_file_system_that_never_answers(
    attacker: Attacker, outputs: Path, require: Callable[[bool, str], None]
) -> None:
    require(shutil.which("perf") is not None, "there is no perf")
    pid = attacker.stuck("code", "fuse of root")
    target = ("-p", f"{pid},{os.getpid()}")
    with Command(command_path("trace-oncpu"), "--engine", "perf", *target, "-o", outputs / "out.folded") as running:
        began = running.traced_after(30)
        outcome = running.outcome(began, running.interrupt())
    assert outcome.began is not None, outcome.text
    assert outcome.ended is not None, outcome.text
    assert outcome.status in (0, 130), outcome.text
