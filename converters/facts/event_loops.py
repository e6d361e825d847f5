"""Waits inside event loops: a callback that waits keeps the loop from all that it serves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from ..model import Frame, Stack
from ..model.states import RUNNABLE, RUNNING
from . import thresholds
from .facts import Facts
from .identity import kernel_id
from .ownership import is_own
from .wait_sums import Thread

_SCRIPTS = re.compile(r"(.*/)?(asyncio/base_events\.py|tornado/ioloop\.py|trio/_core/_run\.py)")
_RUNS = re.compile(r"(.*\.)?(_run_once|run_forever|unrolled_run)")
"""Functions of Python's event loops that call what is due, by their files: asyncio's (Lib/asyncio/base_events.py),
Tornado's (tornado/ioloop.py), Trio's (trio/_core/_run.py)."""
_COLUMNS = ("wall", "off-cpu")


def times_in_loops(facts: Facts) -> Mapping[tuple[int, int], int]:
    """ns for which threads (the kernel's pid and tid) wait in a function of the program that an event loop has called.
    Empty if stacks were not kept beside who ended waits."""
    facts = facts.whole or facts
    profile = facts.recorded.profile if facts.recorded else None
    names = [each.name for each in profile.value_types] if profile else []
    column = next((names.index(name) for name in _COLUMNS if name in names), -1)
    found: dict[tuple[int, int], int] = {}
    known: dict[int, bool] = {}
    for sample in profile.samples if profile and column >= 0 else ():
        time, state = sample.values[column], str(sample.label("state"))
        if time <= 0 or state == RUNNING or state.startswith(RUNNABLE):
            continue
        if id(sample.stack) not in known:
            known[id(sample.stack)] = is_in_loop(sample.stack)
        pid, tid = sample.label("pid"), sample.label("tid")
        if known[id(sample.stack)] and isinstance(pid, int) and isinstance(tid, int):
            found[pid, tid] = found.get((pid, tid), 0) + time
    return MappingProxyType(found)


def is_in_loop(stack: Sequence[Frame] | Stack) -> bool:
    """Whether a function of the program is below an event loop on a stack: not the loop itself waits."""
    inside = False
    for frame in stack:
        if frame.kind == "kernel":
            break
        if frame.kind == "python" and _RUNS.fullmatch(frame.name) and _SCRIPTS.fullmatch(frame.file):
            inside = True
        elif inside and frame.kind == "python" and is_own(frame):
            return True
    return False


def are_in_loops(facts: Facts, threads: Iterable[Thread], time: int) -> bool:
    """Whether these threads wait mostly so, for ``time`` ns."""
    found = (facts.whole or facts).once(times_in_loops)
    inside = sum(found.get((kernel_id(pid), kernel_id(tid)), 0) for pid, tid in threads)
    return inside >= thresholds.MOSTLY * time > 0
