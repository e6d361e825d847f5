"""Off-CPU time: each interval between a thread's switch-out and its switch-in, blocked or waiting for a core."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from .....converters.model.losses import time_of
from .....converters.model.states import PREEMPTED, WOKEN
from ....kernel.bpfobject import Object
from ....kernel.records import BLOCKED, LOST, NEW, ON_CPU, STATES, WAIT_SUM, Origin, ThreadRecord, WaitSum
from ....kernel.records import PREEMPTED as SWITCHED_OUT
from ....measures.offcpu import OffCpu
from ...rows import Row
from .protocol import SCHEDULER, Ended
from .summed import Summed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .slices import SlicedWaits, Slices
    from .totals import Moved

_ANY_STATE = (1 << 32) - 1
_CONTEXTS = 6
"""Entries of scratch maps, up to CONTEXT_FORK: enum context of bpf/include/maps.bpf.h."""


class OffCpuCollector(Summed):
    """Adds up intervals by place, in the kernel."""

    name = OffCpu.name
    programs = SCHEDULER
    entries = "new_waits"
    table = "waits"
    value_size = WAIT_SUM.size
    weights = (1, 4)

    def __init__(self, measure: OffCpu) -> None:
        self.columns = measure.columns
        self.shortest, self.longest, self.states = measure.shortest, measure.longest, measure.states
        self._waits: dict[Origin, WaitSum] = {}
        self._creations = measure.creations
        self._sliced: SlicedWaits | None = None
        if measure.slice:
            from .slices import SlicedWaits

            self._sliced = SlicedWaits(measure.slice)

    def knobs(self) -> Mapping[str, int]:
        more = {"slice_ns": self._sliced.length} if self._sliced else {}
        more |= {"creation_stacks": 1} if self._creations else {}
        return {"measure_offcpu": 1, "wait_objects": 1, **filters(self.shortest, self.longest, self.states), **more}

    def sizes(self, entries: int) -> Mapping[str, int]:
        if not self._creations:
            return super().sizes(entries)
        scratch = dict.fromkeys(("stack_scratch", "walk_scratch", "rule_caches"), _CONTEXTS)
        return {**super().sizes(entries), **scratch}

    def open(self, loaded: Object, entries: int) -> None:
        super().open(loaded, entries)
        self._waits = {}
        if self._sliced:
            self._sliced.open(loaded)

    def consume(self) -> None:
        if self._sliced:
            self._sliced.poll()

    def drain(self) -> None:
        assert self._table, "it was not opened"
        keys, values = self._table.drain(self.slot)
        self.totals().add(*(self._sliced.split(keys, values) if self._sliced else (keys, values)))

    def move(self, moved: Moved) -> None:
        super().move(moved)
        if self._sliced:
            self._sliced.move(moved)

    def added_up(self, life: int, times: NDArray[np.uint64], began: int) -> None:
        if self._sliced:
            self._sliced.ended(life, times, began)

    def joined(self, life: int, into: int) -> None:
        if self._sliced:
            self._sliced.joined(life, into)

    def held(self) -> int:
        return self._sliced.held if self._sliced else 0

    def slices(self, ended: Ended) -> Slices | None:
        if self._sliced is None:
            return None
        from .slices import open_part

        there = [record for record in ended.threads if not record.exited]
        sums = [(record.thread.sum_key, record.thread.sum) for record in there if record.thread.sum.waits]
        opens = ((record, open_wait(record, self.shortest, self.longest)) for record in there)
        still = [open_part(record, wait) for record, wait in opens if wait]
        return self._sliced.take(ended.began, ended.stopped, sums, still)

    def ways(self) -> Sequence[np.ufunc]:
        import numpy as np

        one = (np.add, np.minimum, np.maximum)
        return (np.add, *one, *one)

    def read(self, loaded: Object) -> None:
        self.drain()
        lost = loaded.find_map("lost_waits")
        for state in range(len(STATES)):
            values = lost.take_percpu(self.slot * len(STATES) + state)
            parts = [WaitSum(*WAIT_SUM.unpack(value)) for value in values]
            if found := [part for part in parts if part.waits]:
                self._waits[Origin(LOST, 0, 0, 0, 0, 0, state)] = functools.reduce(operator.add, found)

    def next(self) -> None:
        super().next()
        self._waits = {}

    def rows(self, ended: Ended) -> list[Row]:
        self._waits |= {origin: WaitSum(*values) for origin, values in self.totals().take()}
        waits = [(origin, total, False) for origin, total in self._closed(ended).items()]
        for record in ended.threads:
            if not record.exited and (still := open_wait(record, self.shortest, self.longest)):
                waits.append((record.thread.key, still, True))
        return [
            Row(origin, state, values, is_open)
            for origin, total, is_open in waits
            for state, values in _parts(origin, total)
            if self.states is None or state in self.states
        ]

    def losses(self) -> Mapping[str, int]:
        lost = [total for origin, total in self._waits.items() if origin.ustack == LOST]
        return {
            "intervals": sum(total.waits for total in lost),
            time_of("intervals"): sum(total.blocked + total.runnable for total in lost),
        }

    def lost_so_far(self, counters: Mapping[str, int]) -> int:
        return counters["lost_waits"]

    def _closed(self, ended: Ended) -> dict[Origin, WaitSum]:
        """The map of waits, plus the sums that existing threads had not written to it yet."""
        waits = dict(self._waits)
        for record in ended.threads:
            thread = record.thread
            if not record.exited and thread.sum.waits:
                origin = self._sliced.without_slice(thread.sum_key) if self._sliced else thread.sum_key
                waits[origin] = waits[origin] + thread.sum if origin in waits else thread.sum
        return waits


def filters(shortest: int, longest: int, states: frozenset[str] | None) -> dict[str, int]:
    """Knobs: which intervals count; see `measures.offcpu`."""
    return {"min_wait": shortest, "max_wait": longest, "state_mask": _state_mask(states)}


def open_wait(record: ThreadRecord, shortest: int, longest: int) -> WaitSum | None:
    """The interval that was open when the trace ended, counted up to there, if it counts."""
    thread = record.thread
    if thread.phase == ON_CPU or not thread.out:
        return None
    whole = record.end - thread.out
    if not shortest <= whole <= longest:
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
