"""Functions common to many different waits, which do not distinguish them: a program's own wait functions.

``ProcSleep → WaitLatch → WaitEventSetWait → epoll_wait`` is the same for a lock, a client and a sleep if all of
them call WaitLatch. What distinguishes them is the caller just outside of the shared functions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from heapq import nlargest
from itertools import pairwise
from typing import NamedTuple

from ..model import Frame, Stack
from . import thresholds

_STACKS = 4096
"""Callers are taken from this many stacks, those with the most time."""

Function = tuple[str, str]
"""(path of the module, name)"""


class Shared(NamedTuple):
    """Native functions of all waits of a profile."""

    called: frozenset[Function]
    """Functions with several callers."""
    forks: frozenset[Function]
    """Functions with several callees: the callee distinguishes waits."""

    def mark(self, frame: Frame) -> int:
        """`CALLED`, `FORKS`, both or none."""
        function = function_of(frame)
        return CALLED * (function in self.called) | FORKS * (function in self.forks)

    def telling(self, frames: Sequence[Frame]) -> int:
        """Number of ``frames``, outermost first, that come before the innermost function that only passes waits on."""
        inside = passed_on(map(self.mark, reversed(frames)))
        return len(frames) if inside is None else len(frames) - inside


CALLED, FORKS = 1, 2
"""Marks of a function that is in `Shared.called`, in `Shared.forks`."""


def passed_on(marks: Iterable[int]) -> int | None:
    """Number of frames up to the end of the innermost functions that only pass waits on; None if none do.

    ``marks``: those of the frames, innermost first (`Shared.mark`). Only as many as are needed are taken.
    """
    number, is_shared = 0, False
    for mark in marks:
        if is_shared and not mark & CALLED:
            return number
        if mark & FORKS and not is_shared:
            return None
        is_shared = is_shared or mark & CALLED != 0
        number += 1
    return number if is_shared else None


NOTHING_SHARED = Shared(frozenset(), frozenset())


def function_of(frame: Frame) -> Function:
    """Key that is equal for frames of the same function."""
    return frame.module.path if frame.module else "", frame.name


def shared_frames(stacks: Iterable[tuple[Stack, int]]) -> Shared:
    """``stacks``: those of all waits, outermost frame first, with times."""
    steps = _Steps()
    times: dict[tuple[_Step, _Step], int] = defaultdict(int)
    for stack, time in nlargest(_STACKS, stacks, key=lambda each: each[1]):
        # Each pair counts once per stack.
        for pair in set(pairwise(steps.of(stack))):
            times[pair] += time
    callers: dict[Function, dict[Function, int]] = defaultdict(lambda: defaultdict(int))
    callees: dict[Function, dict[Function, int]] = defaultdict(lambda: defaultdict(int))
    for (caller, callee), time in times.items():
        if caller.function == callee.function:
            continue  # direct recursion
        if callee.is_named:
            callers[callee.function][caller.function] += time
        if caller.is_named:
            callees[caller.function][callee.function] += time
    return Shared(_with_several(callers), _with_several(callees))


class _Step:
    """Stands for all equal frames; compared by identity."""

    __slots__ = ("function", "is_named")

    def __init__(self, frame: Frame) -> None:
        self.function = function_of(frame)
        self.is_named = _is_named(frame)


class _Steps:
    """Found by the identity of frames first: to hash one takes longer than all the rest."""

    def __init__(self) -> None:
        self._by_id: dict[int, _Step] = {}
        self._by_frame: dict[Frame, _Step] = {}

    def of(self, stack: Stack) -> list[_Step]:
        try:
            return list(map(self._by_id.__getitem__, map(id, stack)))
        except KeyError:
            return [self._add(frame) for frame in stack]

    def _add(self, frame: Frame) -> _Step:
        known = self._by_id.get(id(frame))
        if known is None:
            known = self._by_frame.get(frame)
            if known is None:
                known = self._by_frame[frame] = _Step(frame)
            self._by_id[id(frame)] = known
        return known


def _is_named(frame: Frame) -> bool:
    return frame.kind == "native" and not frame.name.startswith("[")


def _with_several(of: dict[Function, dict[Function, int]]) -> frozenset[Function]:
    return frozenset(function for function, times in of.items() if _several(times))


def _several(times: dict[Function, int]) -> bool:
    least = thresholds.PASSES_ON * sum(times.values())
    return sum(time > least for time in times.values()) > 1
