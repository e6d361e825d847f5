"""Times for which a thread has run, and was blocked, up to any time: by the scheduler's events."""

from __future__ import annotations

import numpy as np

from .scheduling import OPEN, Array, Scheduling, Threads
from .states import PREEMPTED_BIT


class ThreadClocks:
    """Clocks of the threads of a recording, by their rows in ``scheduling.threads``."""

    def __init__(self, scheduling: Scheduling) -> None:
        self._begin, self._end = scheduling.begin, scheduling.end
        known = Threads(scheduling.threads)
        switches = scheduling.switches
        both = np.concatenate([switches["next_tid"], switches["prev_tid"]])
        times = np.concatenate([switches["time"], switches["time"]])
        goes_in = np.arange(len(both)) < len(switches)
        self._switches = _ByRow(known.rows(both, times), times, times, goes_in.astype(np.int64))
        waits = scheduling.blocked
        waits = waits[(waits["state"] & PREEMPTED_BIT) == 0]
        ends = np.where(waits["end"] == OPEN, scheduling.end, waits["end"])
        ends = np.where(waits["woken"] > 0, np.minimum(waits["woken"], ends), ends)
        begins = np.maximum(waits["begin"], scheduling.begin)
        self._waits = _ByRow(
            known.rows(waits["tid"], waits["begin"]), begins, begins, np.maximum(ends, begins), waits["stack"]
        )

    def on_cpu(self, row: int, times: Array) -> Array:
        """ns on a core from the recording's beginning to each of ``times``."""
        at, goes_in = self._switches.of(row)
        # What came before the first switch is the opposite of what it began. Without one, a thread that is known to
        # have done something never left its core.
        first = 1 - goes_in[:1] if len(goes_in) else np.ones(1, np.int64)
        at = np.concatenate([[self._begin], at, [self._end + 1]])
        sums = np.concatenate([[0], np.cumsum(np.diff(at) * np.concatenate([first, goes_in]))])
        return _at(times, at, sums)

    def blocked(self, row: int, times: Array) -> Array:
        """ns blocked: from switches out to wake-ups."""
        begins, ends, _ = self.waits(row)
        at = np.concatenate([[self._begin], np.stack([begins, ends], 1).ravel(), [self._end + 1]])
        lengths = np.diff(at) * (np.arange(len(at) - 1) % 2)
        return _at(times, at, np.concatenate([[0], np.cumsum(lengths)]))

    def waits(self, row: int) -> tuple[Array, Array, Array]:
        """Begins, ends and stacks (as in ``BLOCKED``) of the thread's waits, up to their wake-ups."""
        begins, ends, stacks = self._waits.of(row)
        return begins, ends, stacks


def _at(times: Array, at: Array, sums: Array) -> Array:
    """Exact: both are integers that a double has room for."""
    found: Array = np.rint(np.interp(times, np.maximum.accumulate(at), sums)).astype(np.int64)
    return found


class _ByRow:
    """Columns, those of one thread together, by time."""

    def __init__(self, rows: Array, times: Array, *columns: Array) -> None:
        order = np.lexsort((times, rows))
        distinct, firsts = np.unique(rows[order], return_index=True)
        ends = [*firsts.tolist(), len(order)][1:]
        self._places = {
            row: slice(*place) for row, *place in zip(distinct.tolist(), firsts.tolist(), ends, strict=True)
        }
        self._columns = [column[order] for column in columns]

    def of(self, row: int) -> list[Array]:
        place = self._places.get(row, slice(0, 0))
        return [column[place] for column in self._columns]
