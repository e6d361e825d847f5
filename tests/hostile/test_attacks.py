"""Each attack on the commands: they trace, end at Ctrl-C, keep their memory, and leave nothing behind."""

from __future__ import annotations

import os
import re
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

import pytest
from attackers import ATTACKS, Attacker
from neighbours import Neighbour
from watching import Command, Outcome, command_path, watch

pytestmark = pytest.mark.usefixtures("hostile")

EVERYTHING = os.environ.get("HOSTILE") == "all"
COMMANDS: dict[str, tuple[str, ...]] = {
    "offcpu": ("trace-offcpu",),
    "wall": ("trace-wall",),
    "oncpu": ("trace-oncpu",),
    "wakeup": ("trace-wakeup",),
    "ioctl": ("trace-ioctl",),
    "cuda": ("trace-cuda",),
    "func": ("trace-func", "libc.so.6:malloc_trim"),
    "wall perf": ("trace-wall", "--engine", "perf"),
    "wall bcc": ("trace-wall", "--engine", "bcc"),
    "wall eu-stack": ("trace-wall", "--engine", "eu-stack"),
}
NONE = {("wall eu-stack", "-a"), ("wall perf", "-a")}
"""Commands and scopes that do not go together."""
SILENT = r"memory or files of \d+ process(es)?( and \d+ folders?)? could not be read in time"
LEFT_OUT = r"symbols of .* are left out"
TOLD = {
    **{f"{what} on fuse of root": SILENT for what in ("stack", "args", "lock", "root", "tmp", "code")},
    "stack on userfaultfd": "memory not readable",
    "many files": r"processes of uid \d+ map many files",
    "many mappings": r"maps of \d+ process(es)? are too long",
    "perf maps": r"[\d,]+ lines of JIT maps that were left out",
    "file overlapping_tables": LEFT_OUT,
    "file sparse": LEFT_OUT,
}
"""Remarks of the engine libbpf on what it has left out. Symbols are for stacks of waits."""
LOCKED = "kept its address space locked"
"""Words of whoever would put a probe on a file, or remove it."""
LOCKS = {"lock on fuse", "hold on fuse", "fork on fuse"}
OF_WAITS = {"offcpu", "wall", "wakeup"}
OF_RUNNING = {"offcpu", "wall"}
"""Commands that show where a thread runs which never waits for anybody."""
ONLY_OF_WAITS = {"stack on userfaultfd", "root on fuse of root", "tmp on fuse of root"}
"""Other commands read no stack of a thread that waits all the time, and look for no name in it."""
ONLY_OF_ONE = {"root on fuse of root", "tmp on fuse of root"}
"""Attacks on one process. On the whole host nothing is asked for there: files are opened without their paths."""
GIVEN_UP = "was given up: eu-stack did not answer"
"""Words on what eu-stack could not look at, which has no stacks: if that is all, the command fails, and says why."""
ALWAYS = {
    "many threads": (
        ("cuda", "-p"),
        ("oncpu", "-p"),
        ("oncpu", "-a"),
        ("ioctl", "-p"),
        ("func", "-p"),
    )
}
"""Commands for an attack, instead of all: what others find out about the waits of thousands of threads takes longer to
write than the time that is allowed here."""
LATER = {("many threads", "wall perf"): 2.0}
"""Seconds that the end takes longer: what perf has recorded of thousands of threads is still read, as text."""
END, MEMORY_MB, FIRST = 2.0, 512, 60.0
"""Seconds from Ctrl-C to the end, as promised; the memory; seconds until a trace has begun, if nothing is known."""


def _matrix() -> list[tuple[str, str, str]]:
    """Attack, command, and scope: all of them, or each attack once, by commands and scopes in turn."""
    if EVERYTHING:
        pairs = [(attack, command) for attack in ATTACKS for command in COMMANDS]
        return [(*pair, scope) for pair in pairs for scope in ("-p", "-a") if (pair[1], scope) not in NONE]
    scopes = [("-a", "-p")[(i + i // len(COMMANDS)) % 2] for i in range(len(ATTACKS))]
    turns = zip(ATTACKS, cycle(COMMANDS), scopes, strict=False)
    found = [(attack, command, "-p" if (command, scope) in NONE else scope) for attack, command, scope in turns]
    return [(attack, *pair) for attack, command, scope in found for pair in ALWAYS.get(attack, ((command, scope),))]


@pytest.fixture(scope="module")
def quiet() -> dict[str, Outcome]:
    """Outcomes of the commands without an attack, by command and scope."""
    return {}


def _command(command: str, scope: str, pid: int, outputs: Path) -> list[object]:
    program, *options = COMMANDS[command]
    target = ["-a"] if scope == "-a" else ["-p", pid]
    paths = ["-o", outputs / "out.pb.gz", "-o", outputs / "out.folded", "--force"]
    return [command_path(program), *options, *target, *paths]


def _without_attack(quiet: dict[str, Outcome], command: str, scope: str, pid: int, outputs: Path) -> Outcome:
    key = f"{command} {scope}"
    if key not in quiet:
        quiet[key] = watch(*_command(command, scope, pid, outputs), patience=FIRST)
        assert quiet[key].began is not None, quiet[key].text
        assert quiet[key].ended is not None, quiet[key].text
        for path in outputs.iterdir():
            path.unlink()
    return quiet[key]


class Case(NamedTuple):
    """One of the matrix."""

    attack: str
    command: str
    scope: str


def _told(case: Case) -> str:
    """Words that the command has to say, as a regular expression; "" for nothing that is known."""
    if (case.command, case.scope) == ("func", "-a") and case.attack in LOCKS:
        return LOCKED  # of other processes it knows which files they map
    words = TOLD.get(case.attack, "")
    only_of_waits = case.attack in ONLY_OF_WAITS and case.command not in OF_WAITS
    not_shown = words == LEFT_OUT and case.command not in OF_RUNNING
    if "--engine" in COMMANDS[case.command] or only_of_waits or not_shown:
        return ""
    if case.attack in ONLY_OF_ONE and case.scope == "-a":
        return ""
    return words


def check(outcome: Outcome, before: Outcome, told: str = "", later: float = 0.0) -> None:
    """Checks what is promised of a command under attack. ``told``: what its output has to match; ``later``: seconds."""
    facts = f"began {outcome.began}, ended {outcome.ended}, status {outcome.status}, {outcome.peak_mb:.0f} MB"
    wrong = []
    is_given_up = outcome.status == 1 and GIVEN_UP in outcome.text
    if outcome.ended is None or outcome.ended > END + later + 2 * (before.ended or 0):
        wrong.append("it does not end at Ctrl-C")
    if outcome.began is None and not is_given_up:
        wrong.append("it does not trace")
    if outcome.peak_mb > MEMORY_MB:
        wrong.append("it takes too much memory")
    if "Traceback" in outcome.text or "internal error" in outcome.text:
        wrong.append("it fails")
    if outcome.ended is not None and outcome.status not in (0, 130) and not is_given_up:
        wrong.append("it reports a failure")
    if not re.search(told, outcome.text):
        wrong.append("it does not tell what it has left out")
    assert not wrong, (wrong, facts, outcome.text[-1500:])


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("case", [Case(*each) for each in _matrix()], ids=", ".join)
def test_attack(case: Case, attacker: Attacker, bystander: Neighbour, quiet: dict[str, Outcome], outputs: Path) -> None:
    before = _without_attack(quiet, case.command, case.scope, bystander.process.pid, outputs)
    assert before.began is not None
    pid = ATTACKS[case.attack](attacker)
    with Command(*_command(case.command, case.scope, pid, outputs)) as running:
        began = running.traced_after(10 + 3 * before.began)
        running.read(0.7)
        bystander.check()
        ended = running.interrupt()
        outcome = running.outcome(began, ended)
    check(outcome, before, _told(case), LATER.get((case.attack, case.command), 0))
    bystander.check()
    assert b"\x1b]0;owned" not in outcome.raw
    if outcome.status == 1:
        return  # without stacks there is no output
    convert = watch(command_path("trace-convert"), outputs / "out.pb.gz", "--to", "table", patience=30, seconds=30)
    assert convert.status == 0 or "the input has no samples" in convert.text, convert.text[-1000:]
    assert convert.peak_mb < MEMORY_MB
