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

_SHARE = 50
"""A caller or a callee counts if it has 1/this of the function's time."""

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

    def is_called(self, frame: Frame) -> bool:
        """Whether the function of ``frame`` has several callers."""
        return function_of(frame) in self.called

    def telling(self, frames: Sequence[Frame]) -> int:
        """How many of ``frames``, outermost first, come before the innermost function that only passes waits on."""
        i = len(frames)
        while i and function_of(frames[i - 1]) not in self.forks:
            i -= 1
            if self.is_called(frames[i]):
                while i and self.is_called(frames[i - 1]):
                    i -= 1
                return i
        return len(frames)


NOTHING_SHARED = Shared(frozenset(), frozenset())


def function_of(frame: Frame) -> Function:
    """What makes frames of the same function equal."""
    return frame.module.path if frame.module else "", frame.name


def shared_frames(stacks: Iterable[tuple[Stack, int]]) -> Shared:
    """``stacks``: those of all waits, outermost frame first, with times."""
    callers: dict[Function, dict[Function, int]] = defaultdict(lambda: defaultdict(int))
    callees: dict[Function, dict[Function, int]] = defaultdict(lambda: defaultdict(int))
    for stack, time in nlargest(_STACKS, stacks, key=lambda each: each[1]):
        # Each pair counts once per stack; direct recursion is ignored.
        for caller, callee in {pair for pair in pairwise(stack) if function_of(pair[0]) != function_of(pair[1])}:
            if _is_named(callee):
                callers[function_of(callee)][function_of(caller)] += time
            if _is_named(caller):
                callees[function_of(caller)][function_of(callee)] += time
    return Shared(_with_several(callers), _with_several(callees))


def _is_named(frame: Frame) -> bool:
    return frame.kind == "native" and not frame.name.startswith("[")


def _with_several(of: dict[Function, dict[Function, int]]) -> frozenset[Function]:
    return frozenset(function for function, times in of.items() if _several(times))


def _several(times: dict[Function, int]) -> bool:
    least = sum(times.values()) / _SHARE
    return sum(time > least for time in times.values()) > 1
