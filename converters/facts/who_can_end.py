"""Threads that can end a wait for another thread of the process: who waits in Python's own locks needs one that runs
Python."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from ..model import Stack
from . import thresholds
from .facts import Facts
from .identity import is_sum
from .wait_functions import PYTHON_LOCKS, QUEUE_FILES, QUEUES
from .wait_kinds import LOCK, THREAD
from .wait_sums import Place, Thread
from .wakers import TIMEOUT

ALONE, NO_PYTHON = "alone", "no-python"
"""Evidence that nobody can: no other thread of the process was traced; none of these runs Python."""


class _Threads(NamedTuple):
    """Threads of a process that live."""

    alive: list[Thread]
    run_python: list[Thread]
    """Threads with functions of Python on a stack."""
    unclear: list[Thread]
    """Threads of whose time too little is known."""
    changes: bool
    """Whether threads of it ended while the trace went on, as new ones may begin."""


def nobody(facts: Facts, thread: Thread, place: Place) -> str:
    """`ALONE` or `NO_PYTHON`, if no traced thread of the process can end this wait, and none did; else ""."""
    if place.kind not in (THREAD, LOCK) or place.wait.nowhere or not _is_endless(facts, thread, place):
        return ""
    of = facts.once(_Processes).of(thread[0])
    if of.changes or thread not in of.alive:
        return ""
    if place.kind == THREAD and of.alive == [thread]:
        return ALONE
    others = {*of.run_python, *of.unclear} - {thread}
    return NO_PYTHON if waits_in_python(place.stack) and not others else ""


def _is_endless(facts: Facts, thread: Thread, place: Place) -> bool:
    """Whether the waits there had not ended with the trace, or ended with a timeout of their own."""
    total = facts.waits_of(thread)[place]
    by_nobody = total.time if thread in facts.roles.still else total.open_time + total.wakers.get(TIMEOUT, 0)
    return by_nobody >= thresholds.MOSTLY * total.time


def others_of(facts: Facts, thread: Thread, place: Place) -> list[Thread]:
    """Traced threads of the process that may end a wait for one of them: of a wait in Python, those that run Python."""
    of = facts.once(_Processes).of(thread[0])
    may = [*of.run_python, *of.unclear] if waits_in_python(place.stack) else of.alive
    return [each for each in may if each != thread]


def waits_in_python(stack: Stack) -> bool:
    """Whether a thread waits in one of CPython's own locks: for a lock, a queue, a condition of a script."""
    script = max((number for number, frame in enumerate(stack) if frame.kind == "python"), default=-1)
    below = (frame for frame in stack[script + 1 :] if script >= 0 and frame.kind == "native")
    return any(
        frame.name.startswith((*PYTHON_LOCKS, *QUEUES))
        or (frame.module is not None and QUEUE_FILES.fullmatch(frame.module.path))
        for frame in below
    )


class _Processes:
    """Threads of processes, looked at once each."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._members: dict[int, list[Thread]] = defaultdict(list)
        for thread in facts.own:
            self._members[thread[0]].append(thread)
        self._known: dict[int, _Threads] = {}

    def of(self, pid: int) -> _Threads:
        found = self._known.get(pid)
        return found or self._known.setdefault(pid, self._find(self._members[pid]))

    def _find(self, threads: list[Thread]) -> _Threads:
        alive = [each for each in threads if not is_sum(each[1]) and not self._facts.threads[each].exited]
        python = [each for each in alive if self._runs_python(each)]
        unclear = [each for each in alive if each not in python and not self._is_known(each)]
        return _Threads(alive, python, unclear, len(alive) < len(threads))

    def _runs_python(self, thread: Thread) -> bool:
        return any(frame.kind == "python" for place in self._facts.waits_of(thread) for frame in place.stack)

    def _is_known(self, thread: Thread) -> bool:
        """Whether the stacks of nearly all of its time are known, so that one of Python would have been seen."""
        told = sum(total.time for place, total in self._facts.waits_of(thread).items() if not place.wait.nowhere)
        return 0 < self._facts.threads[thread].wall * thresholds.STACKS_KNOWN <= told
