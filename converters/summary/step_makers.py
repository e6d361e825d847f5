"""Threads that make what another thread waits for in each of its steps: a loader's threads and processes.

They are found by who ends these waits. A thread that only passes on what others make is replaced by these.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..facts import thresholds
from ..facts.wait_functions import TAKE_GIL
from ..facts.wait_kinds import SLEEP
from ..model.scheduling import Array, Scheduling
from ..model.steps import Maker, Reader
from .ended_waits import NOBODY, Ended, EndedWaits

_HOPS = 3
"""Number of threads that pass a batch on, at most: a queue's feeder, and one that copies it to pinned memory."""


class Makers:
    """Makers of what threads of a recording wait for."""

    def __init__(self, scheduling: Scheduling, waits: EndedWaits) -> None:
        self._scheduling, self._waits = scheduling, waits
        self._threads = scheduling.threads

    def of(self, row: int, places: Array, number: int, window: tuple[int, int]) -> Reader | None:
        """The threads that end these waits of a thread; None if others than threads do, or it is not known.
        ``places``: indices of the waits among those of the thread; ``number``: of its steps; ``window``: begin of the
        first one and end of the last one, in ns."""
        ended = self._waits.of(row)
        by, counts = np.unique(ended.wakers[places], return_counts=True)
        known = {maker: int(count) for maker, count in zip(by.tolist(), counts.tolist(), strict=True) if maker >= 0}
        if sum(known.values()) < thresholds.MOSTLY * len(places):
            return None
        rows = self._behind(row, _most(known), window)
        if not rows or len(rows) > thresholds.MAKERS:
            return None
        made = sorted((self._maker(row, maker, window) for maker in rows), key=lambda each: (-each.work, each.tid))
        return Reader(tuple(made), number, window[1] - window[0])

    def _behind(self, consumer: int, rows: Iterable[int], window: tuple[int, int]) -> list[int]:
        """Threads that make it, behind those that only pass it on."""
        seen = {consumer}
        rows = list(rows)
        for _ in range(_HOPS):
            seen.update(rows)
            following: dict[int, None] = {}
            for row in rows:
                beyond = [each for each in self._passes_on(row, window) if each not in seen]
                following.update(dict.fromkeys(beyond or [row]))
            if list(following) == rows:
                break
            rows = list(following)
        return [row for row in rows if row != consumer]

    def _passes_on(self, row: int, window: tuple[int, int]) -> list[int]:
        """Threads for which this one waits nearly all of the time; [] if it does something else, too."""
        ended, inside = self._inside(row, window)
        by, which = np.unique(ended.wakers, return_inverse=True)
        times = dict(zip(by.tolist(), np.bincount(which, inside, len(by)).tolist(), strict=True))
        times.pop(NOBODY, None)
        if sum(times.values()) < thresholds.PASSES_BATCHES_ON * (window[1] - window[0]):
            return []
        return _most(times)

    def _maker(self, consumer: int, row: int, window: tuple[int, int]) -> Maker:
        thread, names = self._threads[row], self._scheduling.names
        begin = max(window[0], int(thread["begin"]))
        ended, inside = self._inside(row, window)
        idle = self._is_idle(consumer, row, ended)
        work = max(window[1] - begin - int(inside[idle].sum()), 0)
        return Maker(names[thread["process"]], int(thread["tgid"]), names[thread["name"]], int(thread["tid"]), work)

    def _is_idle(self, consumer: int, row: int, ended: Ended) -> Array:
        """True for waits for the one that takes what is made: that it, or its process, ends; and for those that a timer
        ends because nobody else did."""
        pid = int(self._threads[consumer]["tgid"])
        of_pid = self._threads["tgid"] == pid
        is_apart = int(self._threads[row]["tgid"]) != pid
        wakers = ended.wakers
        taken = (wakers == consumer) | ((wakers >= 0) & of_pid[wakers] & is_apart)
        stacks, which = np.unique(ended.stacks, return_inverse=True)
        known = [self._waits.wait(stack) for stack in stacks.tolist()]
        sleeps = np.array([wait.kind == SLEEP for wait in known], bool)[which]
        for_gil = np.array([wait.lock == TAKE_GIL for wait in known], bool)[which]
        found: Array = (taken | (ended.timed & ~sleeps)) & ~for_gil
        return found

    def _inside(self, row: int, window: tuple[int, int]) -> tuple[Ended, Array]:
        """Waits of a thread, and the ns of each in the window."""
        ended = self._waits.of(row)
        inside = np.minimum(ended.ends, window[1]) - np.maximum(ended.begins, window[0])
        return ended, np.maximum(inside, 0)


def _most(numbers: dict[int, int]) -> list[int]:
    """Keys that have nearly all of the numbers together, those with most first."""
    whole, found = sum(numbers.values()), []
    rest = whole
    for key in sorted(numbers, key=lambda key: (-numbers[key], key)):
        if rest <= (1 - thresholds.MAKES_BATCHES) * whole:
            break
        found.append(key)
        rest -= numbers[key]
    return found
