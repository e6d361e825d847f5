"""Breakpoints of root's, if a process says where to put them."""

from __future__ import annotations

from pathlib import Path

import pytest
from attackers import Attacker
from neighbours import neighbour
from watching import Command, command_path

_PYTHON_HOME = {"PYTHONHOME": "/usr"}


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("command", ["trace-offcpu", "trace-oncpu"])
@pytest.mark.parametrize("kind", ["inside_instruction", "inside_function"])
def test_a_process_does_not_choose_the_place(
    kind: str, command: str, attacker: Attacker, python: Path, outputs: Path
) -> None:
    """Memory that it has overwritten harms nobody who runs the same file."""
    with neighbour(python) as bystander:
        pid = attacker.run(python, attacker.programs / "interpreter.py", kind, environment=_PYTHON_HOME)
        with Command(command_path(command), "-p", pid, "-o", outputs / "out.pb.gz") as running:
            assert running.traced_after(60) is not None
            running.read(1)
            strange = bystander.code.strange(bystander.process.pid)
            places = bystander.code.breakpoints(bystander.process.pid)
            unharmed = bystander.goes_on()
            ended = running.interrupt()
            outcome = running.outcome(None, ended)
        assert strange == []
        assert places <= set(bystander.code.functions)
        assert unharmed
        assert outcome.status == 0, outcome.text
        bystander.check()


def test_the_check_finds_what_is_strange(python: Path, hostile: None) -> None:
    """A breakpoint in the middle of an instruction, and one where there should be none at all."""
    with neighbour(python) as bystander:
        code, pid = bystander.code, bystander.process.pid
        bystander.process.send_signal(19)
        start = next(at for at in code.functions if code.is_instruction(at) and not code.is_instruction(at + 1))
        offset, address = code.place(pid, start)
        before = code.data[offset : offset + 2]
        with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
            for changed, found in ((b"\xcc", 0), (before[:1] + b"\xcc", 1), (b"\x90" + before[1:], 1)):
                memory.seek(address)
                memory.write(changed)
                assert len(code.strange(pid)) == found
                memory.seek(address)
                memory.write(before)
        assert code.strange(pid) == []
