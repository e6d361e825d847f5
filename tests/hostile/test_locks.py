"""A user keeps the lock of his process's address space, for which the kernel waits when a probe is put on a file that
the process maps, or removed, and all forks of the host with it (tracers/holder/locked.py)."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from attackers import Attacker
from leftovers import bpf_ids
from neighbours import Neighbour
from stallscope.tracers.holder import client
from stallscope.tracers.holder.client import Holder, Withheld
from stallscope.tracers.holder.links import Place
from stallscope.tracers.kernel.uprobes import _load_nothing
from test_attacks import END
from watching import Command, command_path

FUNC = ("trace-func", "libc.so.6:malloc_trim")
PATIENCE = 20
"""Seconds for a fork, which takes one thousandth of that."""


def forks_go_on() -> None:
    """Another process forks. A shell is not forked itself where it is started."""
    subprocess.run(["sh", "-c", "(exit 0); (exit 0)"], check=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)


def traced(running: Command) -> None:
    assert running.traced_after(60) is not None, running.outcome(None, None).text


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("how", ["lock", "hold", "fork"])
def test_no_probe_is_made_while_it_is_locked(how: str, attacker: Attacker, bystander: Neighbour, outputs: Path) -> None:
    stuck = attacker.stuck(how, "fuse")
    with Command(command_path(FUNC[0]), FUNC[1], "-p", bystander.process.pid, "-o", outputs / "out.folded") as running:
        traced(running)
        running.read(0.5)
        forks_go_on()
        ended = running.interrupt()
        outcome = running.outcome(None, ended)
    assert ended is not None and ended < END
    assert outcome.status == 0, outcome.text
    assert "libc.so.6 was not traced: the kernel would wait for a process that keeps its address space locked" in (
        outcome.text
    )
    assert f"process {stuck} (stuck) of user {attacker.uid} kept its address space locked" in outcome.text
    bystander.check()


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("how", ["lock", "hold", "fork"])
def test_no_probe_is_removed_while_it_is_locked(
    how: str, attacker: Attacker, bystander: Neighbour, outputs: Path
) -> None:
    """The command ends; the probes are removed as soon as that is possible."""
    before = bpf_ids("link")
    with Command(command_path(FUNC[0]), FUNC[1], "-p", bystander.process.pid, "-o", outputs / "out.folded") as running:
        traced(running)
        running.read(0.3)
        attacker.stuck(how, "fuse")
        ended = running.interrupt()
        outcome = running.outcome(None, ended)
        left = bpf_ids("link") - before
        forks_go_on()
    assert ended is not None and ended < END
    assert outcome.status == 0, outcome.text
    assert "probes on files will be removed when that ends" in outcome.text
    assert left, "those that nothing can remove now"
    bystander.check()


@pytest.mark.usefixtures("nothing_left")
def test_a_killed_command_removes_none_either(attacker: Attacker, bystander: Neighbour, outputs: Path) -> None:
    with Command(command_path(FUNC[0]), FUNC[1], "-p", bystander.process.pid, "-o", outputs / "out.folded") as running:
        traced(running)
        running.read(0.3)
        attacker.stuck("hold", "fuse")
        running.process.kill()
        running.process.wait(PATIENCE)
        forks_go_on()
    bystander.check()


@pytest.mark.usefixtures("nothing_left")
def test_one_that_was_locked_after_the_look_is_not_waited_for(
    attacker: Attacker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel waits then: whoever asked for the probe goes on, and no more are made. Without the iterator, nothing
    is seen."""
    monkeypatch.setattr(client, "_PATIENCE", 0.5)
    attacker.stuck("hold", "fuse")
    holder = Holder()
    # Nobody but the attacker has this file, in case the kernel puts the probe after all.
    program, file = _load_nothing(0), os.open(attacker.programs / "stuck", os.O_RDONLY)
    try:
        for _ in range(2):
            with pytest.raises(Withheld):
                holder.attach(None, 0, [(program, 0)], file, [Place(0x1400, 0)])
        (said, later) = holder.remarks()
        assert said.startswith("a process kept its address space locked")
        assert later == "probes on files will be removed when that ends"
        holder.end()
    finally:
        os.close(program)
        os.close(file)
