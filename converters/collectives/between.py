"""Times of ranks' threads from the end of a call to their next one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..model.states import BY_BITS, STOPPED, TRACED
from .meetings import OPEN, Calls, Meetings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..model.scheduling import Scheduling
    from ..model.steps import Spent
    from ..summary.steps import StepThread

    Times = NDArray[np.int64]
    _Spent = tuple[Spent | None, Spent | None, Spent | None]

_STOPPED = [bits for bits, state in BY_BITS.items() if state in (STOPPED, TRACED)]


class Between:
    """Times of threads from the end of a meeting to their next arrival."""

    def __init__(self, scheduling: Scheduling) -> None:
        from ..model.scheduling import Threads
        from ..model.thread_clocks import ThreadClocks
        from ..summary.steps import StepPlaces

        self._scheduling, self._clocks = scheduling, ThreadClocks(scheduling)
        self._threads, self._places = Threads(scheduling.threads), StepPlaces(scheduling)

    def of(self, tid: int, calls: Calls, found: Meetings, column: int, of_kind: NDArray[np.bool_] | None) -> _Spent:
        """Times before all meetings but the first; of ``of_kind``, or of all, before those to which this member came
        last; and before all ``of_kind``, None if it is."""
        whole = (found.began != OPEN).all(axis=1)
        nexts = np.flatnonzero(whole[1:] & whole[:-1]) + 1
        if not len(nexts):
            return None, None, None
        begin = int(np.flatnonzero(found.began[:, column] != OPEN)[0])
        done = np.where(calls.done == OPEN, calls.ended, calls.done)[nexts - 1 - begin]
        arrivals = found.began[nexts, column]
        thread = self._thread(tid, arrivals[:1])
        if thread is None:
            return None, None, None
        fit = (done >= 0) & (done <= arrivals)
        mine = fit if of_kind is None else fit & of_kind[nexts]
        last = mine & (found.last()[nexts] == column)
        before = None if of_kind is None else thread.spent(done[mine], arrivals[mine])
        return thread.spent(done[fit], arrivals[fit]), thread.spent(done[last], arrivals[last]), before

    def calls(self, tid: int, parts: Sequence[Calls]) -> Spent | None:
        """Times from the end of each call of a thread to its next one; None if they are not known."""
        began, done = (np.concatenate(each) for each in zip(*map(_inside, parts), strict=True))
        order = np.argsort(began, kind="stable")
        begins, ends = np.maximum.accumulate(done[order])[:-1], began[order][1:]
        fit = (begins >= 0) & (begins <= ends)
        thread = self._thread(tid, ends[fit][:1]) if fit.any() else None
        return thread.spent(begins[fit], ends[fit]) if thread else None

    def since(self, tid: int, begin: int, end: int) -> Spent | None:
        """Times of a thread from then on; None if it is not known."""
        window = np.array([[begin], [end]])
        thread = self._thread(tid, window[0])
        return thread.spent(*window) if thread else None

    def stopped(self, tid: int, begin: int, end: int) -> int:
        """ns for which a thread is stopped in that time."""
        blocked = self._scheduling.blocked
        mine = blocked[(blocked["tid"] == tid) & np.isin(blocked["state"], _STOPPED)]
        ends = np.where(mine["end"] == OPEN, end, mine["end"])
        return int(np.maximum(np.minimum(ends, end) - np.maximum(mine["begin"], begin), 0).sum())

    def _thread(self, tid: int, time: Times) -> StepThread | None:
        from ..summary.steps import StepThread

        (row,) = self._threads.rows(np.array([tid]), time).tolist()
        return StepThread(self._scheduling, self._clocks, self._places, row) if row >= 0 else None


def _inside(calls: Calls) -> tuple[Times, Times]:
    """Begins and ends of the times in which a thread is in calls, `OPEN` for no end: those that only begin an operation
    take no time, those that complete it do."""
    done = np.where(calls.done == OPEN, calls.ended, calls.done)
    if calls.waits is None:
        return calls.began, done
    later = (calls.waits != OPEN) & (calls.waits > calls.began)
    only_begins = later | (calls.waits == OPEN)
    began = np.concatenate([calls.began, calls.waits[later]])
    return began, np.concatenate([np.where(only_begins, calls.began, done), done[later]])
