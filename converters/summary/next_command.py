"""The one command that would show more than the first sentence of a summary."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .answer import NO_WAIT, Answer
from .figures import NextStep, Process
from .finding import CPU
from .identity import kernel_ids
from .wait_kinds import CHILD, HALTED, PEER

_FEW = 4
"""Maximum number of processes given by id."""
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")
"""Names that need no escaping in a shell or regular expression."""


def next_command(told: Answer, has_samples: bool, processes: Sequence[Process]) -> NextStep | None:
    """None if no command shows more. ``has_samples``: what runs is known already. ``processes``: all traced."""
    if not processes or told.kind == HALTED:
        return None
    whom = _scope(processes)
    if told.deadlock:
        return NextStep(f"trace-offcpu {whom} -d 1 --per-thread -o stacks.html", "whole stacks")
    if told.kind in (CPU, NO_WAIT) and not has_samples:
        return NextStep(f"trace-wall {whom} -d 5", "what runs on the cores, too")
    if told.kind in (PEER, CHILD) and not told.explained and whom != "-a":
        return NextStep("trace-offcpu -a -d 5", "what the others do meanwhile")
    return NextStep(f"trace-offcpu {whom} -d 2 -o when.pftrace", "who wakes whom, and when")


def _scope(processes: Sequence[Process]) -> str:
    pids = kernel_ids(pid for process in processes for pid in process.pids)
    if pids and len(pids) <= _FEW and not any(process.ended for process in processes):
        return f"-p {','.join(map(str, pids))}"
    first = processes[0]
    name = first.command or first.name
    alike = len(processes) == 1 or all(process.command == name for process in processes)
    return f"-n '^{name}$'" if alike and _PLAIN.fullmatch(name) else "-a"
