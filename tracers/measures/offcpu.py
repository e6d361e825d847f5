"""Off-CPU time: each interval between a thread's switch-out and its switch-in, blocked or waiting for a core."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...converters.model import ValueType
from ...converters.model.states import PREEMPTED, WOKEN
from ..kernel.bpfobject import Object
from ..kernel.records import BLOCKED, COUNTERS, NEW, ON_CPU, STATES, Origin, ThreadRecord, WaitSum, parse_wait
from ..kernel.records import PREEMPTED as SWITCHED_OUT
from .protocol import SCHEDULER, Ended, Measure, Row

FOREVER = (1 << 64) - 1
_ANY_STATE = (1 << 32) - 1


class OffCpu(Measure):
    """Columns: time, count, min and max of intervals."""

    name = "offcpu"
    programs = SCHEDULER

    def __init__(
        self,
        shortest: int = 0,
        longest: int = FOREVER,
        states: frozenset[str] | None = None,
        *,
        time: str = "off-cpu",
    ) -> None:
        """Intervals from ``shortest`` to ``longest`` ns, and parts of them in ``states`` (None: all).

        ``time``: the name of the time column; columns of this name of other measures are added to it.
        """
        self.columns = (
            ValueType(time, "nanoseconds"),
            ValueType("count", "count"),
            ValueType("min", "nanoseconds", "min"),
            ValueType("max", "nanoseconds", "max"),
        )
        self._shortest, self._longest, self._states = shortest, longest, states
        self._waits: dict[Origin, WaitSum] = {}
        self._lost = 0

    def knobs(self) -> Mapping[str, int]:
        return {
            "measure_offcpu": 1,
            "min_wait": self._shortest,
            "max_wait": self._longest,
            "state_mask": _state_mask(self._states),
        }

    def sizes(self, entries: int) -> Mapping[str, int]:
        return {"waits": entries}

    def read(self, loaded: Object) -> None:
        self._waits = dict(parse_wait(key, value) for key, value in loaded.find_map("waits").items())
        self._lost = loaded.find_map("counters").lookup_percpu_u64(COUNTERS.index("lost_waits"))

    def rows(self, ended: Ended) -> list[Row]:
        waits = [(origin, total, False) for origin, total in self._closed(ended).items()]
        for record in ended.threads:
            if not record.exited and (still := self._open(record)):
                waits.append((record.thread.key, still, True))
        return [
            Row(origin, state, values, is_open)
            for origin, total, is_open in waits
            for state, values in _parts(origin, total)
            if self._states is None or state in self._states
        ]

    def losses(self) -> Mapping[str, int]:
        return {"intervals": self._lost}

    def lost_so_far(self, counters: Mapping[str, int]) -> int:
        return counters["lost_waits"]

    def _closed(self, ended: Ended) -> dict[Origin, WaitSum]:
        """The map of waits, plus the sums that existing threads had not written to it yet."""
        waits = dict(self._waits)
        for record in ended.threads:
            thread = record.thread
            if not record.exited and thread.sum.waits:
                origin = thread.sum_key
                waits[origin] = waits[origin] + thread.sum if origin in waits else thread.sum
        return waits

    def _open(self, record: ThreadRecord) -> WaitSum | None:
        """The interval that was open when the trace ended, counted up to there."""
        thread = record.thread
        if thread.phase == ON_CPU or not thread.out:
            return None
        whole = record.end - thread.out
        if not self._shortest <= whole <= self._longest:
            return None
        blocked = 0
        if thread.phase == BLOCKED:
            blocked = whole
        elif thread.key.state not in (SWITCHED_OUT, NEW) and thread.woken:
            blocked = thread.woken - thread.out
        runnable = whole - blocked
        return WaitSum(1, blocked, blocked, blocked, runnable, runnable, runnable)


def _parts(origin: Origin, total: WaitSum) -> Iterator[tuple[str, tuple[int, int, int, int]]]:
    """The blocked and the runnable part of waits: state and values."""
    runnable = (total.runnable, total.waits, total.runnable_min, total.runnable_max)
    if origin.state in (SWITCHED_OUT, NEW):
        yield PREEMPTED if origin.state == SWITCHED_OUT else WOKEN, runnable
        return
    yield STATES[origin.state], (total.blocked, total.waits, total.blocked_min, total.blocked_max)
    if total.runnable:
        yield WOKEN, runnable


def _state_mask(states: frozenset[str] | None) -> int:
    """The `enum wait_state` values that can lead to rows in ``states``; the rows are filtered further."""
    if not states or WOKEN in states:
        return _ANY_STATE
    names = {"preempted" if state == PREEMPTED else state for state in states}
    return sum(1 << i for i, state in enumerate(STATES) if state in names)
