"""Waits for Python's interpreter lock (GIL): who waits, who has it when a wait begins, and in which functions."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ....kernel.bpfobject import Object
from ....kernel.records import BLOCKED, STATES, Origin
from ....measures.locks import Gil
from ...rows import Row
from .protocol import Ended, GilWait, LockSum
from .summed import Summed

if TYPE_CHECKING:
    import numpy as np

SUM = struct.Struct("<3Q")
"""struct gil_sum of bpf/gil.bpf.c."""
WAITING = struct.Struct("<4Q")
"""struct gil_wait."""
_ENDED = (1 << 64) - 1
_WAITING = 1 << 15
"""Threads that can wait at a time."""
_SLEEPING = STATES.index("interruptible")
UNREAD = "functions of threads that had Python's interpreter lock"
"""A kind of loss for which no table is too small."""
LOSSES = ("waits for Python's interpreter lock", UNREAD)
"""enum gil_loss, in its order."""


class GilCollector(Summed):
    """Has no rows: its result is `GilWait`, beside the rows of others. It counts nothing in a trace without Python."""

    name = Gil.name
    columns = ()
    programs = ()
    entries = "new_gil_waits"
    table = "gil_sums"
    value_size = SUM.size
    more = 1

    def __init__(self, _: Gil) -> None:
        self._waiting: dict[int, tuple[int, ...]] = {}
        self._lost = dict.fromkeys(LOSSES, 0)
        self._lost_before = dict(self._lost)

    def knobs(self) -> Mapping[str, int]:
        return {"measure_gil": 1}

    def sizes(self, entries: int) -> Mapping[str, int]:
        return {"gil_waiting": _WAITING}

    def ways(self) -> Sequence[np.ufunc]:
        import numpy as np

        return (np.add, np.add, np.maximum)

    def read(self, loaded: Object) -> None:
        self.drain()
        self._waiting = {
            int.from_bytes(key, "little"): WAITING.unpack(value)
            for key, value in loaded.find_map("gil_waiting").items()
        }
        losses = loaded.find_map("gil_losses")
        self._lost = {kind: losses.lookup_percpu_u64(i) for i, kind in enumerate(LOSSES)}

    def next(self) -> None:
        super().next()
        self._waiting = {}
        self._lost_before = self._lost

    def rows(self, ended: Ended) -> list[Row]:
        return []

    def gil(self, ended: Ended) -> list[GilWait]:
        found = []
        for origin, (holder, *sums) in self.totals().take():
            total = LockSum(*sums)
            found.append(GilWait(Row(origin, STATES[_SLEEPING], tuple(total)), holder, total))
        for record in ended.threads:
            thread = record.thread
            switches, out, stack, holder = self._waiting.get(thread.key.tid, (_ENDED, 0, 0, 0))
            # The wait may have gone on from an interval before.
            is_same = switches != _ENDED and thread.out in (out, ended.began)
            if record.exited or thread.phase != BLOCKED or not is_same:
                continue
            time = record.end - max(thread.out, ended.began)
            who = thread.key
            origin = Origin(stack, 0, 0, who.tid, who.tgid, who.life, _SLEEPING)
            total = LockSum(time, 1, time)
            found.append(GilWait(Row(origin, STATES[_SLEEPING], tuple(total), is_open=True), holder, total))
        return found

    def losses(self) -> Mapping[str, int]:
        return {kind: number - self._lost_before[kind] for kind, number in self._lost.items()}
