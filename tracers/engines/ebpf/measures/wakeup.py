"""Wake-ups: who ended the waits of a thread, and who had ended that one's own waits meanwhile."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from .....converters.model.losses import time_of
from ....kernel.bpfobject import Object
from ....kernel.entry_text import entry_text
from ....kernel.records import (
    BLOCKED,
    BY_NOBODY,
    BY_UNKNOWN,
    LOST,
    NEW,
    PREEMPTED,
    RECORD_CHAIN,
    STATES,
    Origin,
    Waker,
    parse_chain,
)
from ....measures.wakeup import WakeUp
from ...rows import Row
from .offcpu import filters, open_wait
from .protocol import SCHEDULER, Ended
from .summed import Summed

if TYPE_CHECKING:
    import numpy as np

_SUM = struct.Struct("<4Q")
_INTERRUPTS = ("irq_handler", "local_timer", "irq_work", "call_function", "call_function_single", "softirq")
"""Pairs of tracepoints, …_entry and …_exit."""
_PER_CHAIN = 400
"""Bytes of a chain in a dictionary, about."""
_UNKNOWN = (Waker(0, 0, 0, 0, 0, 0, BY_UNKNOWN),)
_NOBODY = (Waker(0, 0, 0, 0, 0, 0, BY_NOBODY),)


class _Sum(NamedTuple):
    time: int
    waits: int
    min: int
    max: int


class WakeUpCollector(Summed):
    """Adds up waits by place and chain of wakers, in the kernel."""

    name = WakeUp.name
    programs = (
        *SCHEDULER,
        "wakeup_waking",
        *(f"wakeup_{name}_{end}" for name in _INTERRUPTS for end in ("entry", "exit")),
    )
    entries = "new_wakeups"
    table = "wakeups"
    value_size = _SUM.size
    more = 1

    def __init__(self, measure: WakeUp) -> None:
        self.columns = measure.columns
        self.depth, self.states = measure.depth, measure.states
        self.shortest, self.longest = measure.shortest, measure.longest
        self._chains: dict[int, tuple[Waker, ...]] = {}
        self._met: set[int] = set()
        self._to_meet: set[int] = set()
        self._lost: dict[int, _Sum] = {}

    def knobs(self) -> Mapping[str, int]:
        return {
            "measure_wakeup": 1,
            "wait_objects": 1,
            "chain_depth": self.depth,
            **filters(self.shortest, self.longest, self.states),
        }

    def open(self, loaded: Object, entries: int) -> None:
        super().open(loaded, entries)
        for name, address in zip(("entries_begin", "entries_end"), entry_text(), strict=True):
            loaded.set_variable(name, address)
        self._chains, self._lost = {}, {}
        self._met, self._to_meet = set(), set()

    def ways(self) -> Sequence[np.ufunc]:
        import numpy as np

        return (np.add, np.add, np.minimum, np.maximum)

    def on_record(self, data: bytes) -> bool:
        if data[0] != RECORD_CHAIN:
            return False
        number, wakers = parse_chain(data)
        self._chains[number] = wakers
        new = {waker.tgid for waker in wakers if waker.tgid} - self._met
        self._met |= new
        self._to_meet |= new
        return True

    def newcomers(self) -> Iterable[int]:
        met, self._to_meet = self._to_meet, set()
        return met

    def stacks(self) -> Sequence[int]:
        """Stacks that are still used. Forgets the chains of rows that were folded."""
        used = set(self.totals().more().tolist())
        self._chains = {number: wakers for number, wakers in self._chains.items() if number in used}
        return [stack for wakers in self._chains.values() for waker in wakers for stack in waker[:2] if stack]

    def ended_by(self, others: Callable[[int], Collection[int]]) -> Counter[tuple[int, int]]:
        """ns of the drained waits that threads ended, by the thread that waited and the waker's process.

        ``others``: processes at the other end of an object with this id; empty if that is not known. Where they are
        known, only they end its waits: the kernel also lets other threads deliver what they have sent.
        """
        waited: Counter[tuple[int, int]] = Counter()
        known: dict[int, Collection[int]] = {}
        for tid, on, number, spent in self.totals().by_thread().tolist():
            tgid = self._chains.get(number, _UNKNOWN)[0].tgid
            if tgid and on not in known:
                known[on] = others(on)
            if tgid and (not known[on] or tgid in known[on]):
                waited[tid, tgid] += spent
        return waited

    def held(self) -> int:
        return _PER_CHAIN * len(self._chains)

    def read(self, loaded: Object) -> None:
        self.drain()
        lost = loaded.find_map("lost_wakeups")
        for state in range(len(STATES)):
            parts = [_Sum(*_SUM.unpack(value)) for value in lost.take_percpu(self.slot * len(STATES) + state)]
            if found := [part for part in parts if part.time or part.waits]:
                self._lost[state] = _Sum(
                    sum(part.time for part in found),
                    sum(part.waits for part in found),
                    min((part.min for part in found if part.waits), default=0),
                    max(part.max for part in found),
                )

    def next(self) -> None:
        super().next()
        self._lost = {}

    def rows(self, ended: Ended) -> list[Row]:
        rows = []
        for origin, (chain, *sums) in self.totals().take():
            total = _Sum(*sums)
            if not total.waits:
                total = total._replace(min=0)
            rows += self._row(origin, total, self._chains.get(chain, _UNKNOWN))
        for state, lost in self._lost.items():
            rows += self._row(Origin(LOST, 0, 0, 0, 0, 0, state), lost, _UNKNOWN)
        for record in ended.threads:
            if record.exited or record.thread.key.state in (PREEMPTED, NEW):
                continue
            if still := open_wait(record, self.shortest, self.longest):
                wakers = _NOBODY if record.thread.phase == BLOCKED else _UNKNOWN
                values = (still.blocked, still.waits, still.blocked, still.blocked)
                rows += self._row(record.thread.key, values, wakers, is_open=True)
        return rows

    def _row(
        self, origin: Origin, values: Sequence[int], wakers: tuple[Waker, ...], *, is_open: bool = False
    ) -> list[Row]:
        state = STATES[origin.state]
        if self.states is not None and state not in self.states:
            return []
        return [Row(origin, state, tuple(values[: len(self.columns)]), is_open, wakers=wakers)]

    def losses(self) -> Mapping[str, int]:
        return {
            "wake-ups": sum(lost.waits for lost in self._lost.values()),
            time_of("wake-ups"): sum(lost.time for lost in self._lost.values()),
        }

    def lost_so_far(self, counters: Mapping[str, int]) -> int:
        return counters["lost_wakeups"]
