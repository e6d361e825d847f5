"""Waits of all threads, each with the thread that ended it: by the scheduler's events."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..facts.wait_kinds import EVENTS, LOCK, SLEEP, THREAD, UNKNOWN, WORK
from ..facts.waits import Wait, Waits
from ..model.scheduling import INTERRUPT, NO_STACK, OPEN, Array, Scheduling, Threads
from ..model.states import BY_BITS, INTERRUPTIBLE, PREEMPTED_BIT

NOBODY = -1
_TIMED_OUT = frozenset((THREAD, EVENTS, LOCK, WORK, UNKNOWN))
"""Kinds of waits that a timer has ended if an interrupt has: those of others end with a disk, a GPU or a network, too.
Events that come from another host are taken for a timer: nobody here has made them."""
_NOTHING_KNOWN = Wait(UNKNOWN)


class Ended(NamedTuple):
    """Waits of one thread, in their order: columns of the same length. Times in ns."""

    begins: Array
    ends: Array
    """Times of the wake-ups, where these are known."""
    stacks: Array
    wakers: Array
    """Rows of the threads that ended them; `NOBODY` for interrupts, and threads that are not known."""
    timed: Array
    """True if a timer ended it."""
    over: Array
    """True if it ended during the recording."""

    @property
    def lengths(self) -> Array:
        """ns of each."""
        found: Array = self.ends - self.begins
        return found


class EndedWaits:
    """Waits of the threads of a recording, by their rows in ``scheduling.threads``."""

    def __init__(self, scheduling: Scheduling) -> None:
        self._scheduling, self._waits = scheduling, Waits()
        self._known: dict[int, Wait] = {NO_STACK: _NOTHING_KNOWN}
        threads = Threads(scheduling.threads)
        waits = scheduling.blocked[(scheduling.blocked["state"] & PREEMPTED_BIT) == 0]
        rows = threads.rows(waits["tid"], waits["begin"])
        order = np.lexsort((waits["begin"], rows))
        self._table, rows = waits[order], rows[order]
        self._rows, firsts = np.unique(rows, return_index=True)
        self._bounds = np.append(firsts, len(rows))
        self._states = np.zeros(len(scheduling.stacks) + 1, np.uint16)
        self._states[self._table["stack"]] = self._table["state"]
        self._ends_with, self._interrupted = self._wakers(threads, rows)

    def _wakers(self, threads: Threads, rows: Array) -> tuple[Array, Array]:
        """The row of the waker of each wait, and whether it was an interrupt: of the last wake-up before it ended."""
        waits, woken = self._table, self._scheduling.wakeups
        if not len(woken):
            return np.full(len(waits), NOBODY), np.zeros(len(waits), bool)
        targets = threads.rows(woken["tid"], woken["time"])
        order = np.lexsort((woken["time"], targets))
        woken, targets = woken[order], targets[order]
        times = np.unique(woken["time"])
        keys = _key(targets, np.searchsorted(times, woken["time"]))
        ends = np.where(waits["end"] == OPEN, self._scheduling.end, waits["end"])
        wanted = _key(rows, np.searchsorted(times, ends, side="right") - 1)
        places = np.maximum(np.searchsorted(keys, wanted, side="right") - 1, 0)
        hit = (targets[places] == rows) & (woken["time"][places] >= waits["begin"])
        interrupted = hit & ((woken["flags"][places] & INTERRUPT) > 0)
        by = threads.rows(woken["waker"][places], woken["time"][places])
        return np.where(hit & ~interrupted & (woken["waker"][places] > 0), by, NOBODY), interrupted

    def rows(self, least: int) -> list[int]:
        """Threads with so many waits at least."""
        enough = np.diff(self._bounds) >= least
        return [row for row in self._rows[enough].tolist() if row >= 0]

    def of(self, row: int) -> Ended:
        """Waits of a thread."""
        at = int(np.searchsorted(self._rows, row))
        if at == len(self._rows) or self._rows[at] != row:
            own = slice(0, 0)
        else:
            own = slice(int(self._bounds[at]), int(self._bounds[at + 1]))
        waits, (begin, end) = self._table[own], (self._scheduling.begin, self._scheduling.end)
        over = (waits["end"] != OPEN) & (waits["end"] >= begin)
        ends = np.where(waits["end"] == OPEN, end, waits["end"])
        ends = np.where(waits["woken"] > 0, np.minimum(waits["woken"], ends), ends)
        begins = np.maximum(waits["begin"], begin)
        ended = Ended(begins, np.maximum(ends, begins), waits["stack"], self._ends_with[own], over, over)
        return ended._replace(timed=self._timed(waits, self._interrupted[own]))

    def _timed(self, waits: Array, interrupted: Array) -> Array:
        stacks, which = np.unique(waits["stack"], return_inverse=True)
        kinds = [self.wait(stack).kind for stack in stacks.tolist()]
        sleeps = np.array([kind == SLEEP for kind in kinds], bool)[which]
        may_time_out = np.array([kind in _TIMED_OUT for kind in kinds], bool)[which]
        found: Array = sleeps | (may_time_out & interrupted)
        return found

    def wait(self, stack: int) -> Wait:
        """Kind of a wait with this stack, and what shows it. ``stack``: an index, or `NO_STACK`."""
        if stack not in self._known:
            state = BY_BITS.get(int(self._states[stack]), INTERRUPTIBLE)
            self._known[stack] = self._waits.of(self._scheduling.stacks[stack], state)
        return self._known[stack]


def _key(rows: Array, ranks: Array) -> Array:
    return rows.astype(np.int64) << 32 | ranks.astype(np.int64)
