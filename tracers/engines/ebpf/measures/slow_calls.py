"""Calls of which only slow ones count: what is known of the others, and of those that had not ended."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from .....converters.base.text import printable
from .....converters.base.units import duration, plural
from ....kernel.bpfobject import Object
from ....kernel.records import Origin
from ....kernel.sum_table import SumTable
from .call_parts import KEY
from .open_calls import Open
from .protocol import Ended

if TYPE_CHECKING:
    from .call_sums import PartSums
    from .totals import Moved

_FAST = 16
"""Bytes of struct call_fast: count, total."""
_NAMED = 3
"""Number of functions that a remark names."""


class SlowCalls:
    """Does nothing if all calls count."""

    def __init__(self, over: int) -> None:
        """``over``: calls that take longer than so many ns count; 0: all."""
        self.over = over
        self.judged = bool(over)
        """Whether it is known at its return if a call counts: its waits are then told of together."""
        self._table: SumTable | None = None
        self._sums: PartSums | None = None
        self._fast: Counter[int] = Counter()
        self._fast_time = 0
        self._lost = self._lost_before = 0

    def knobs(self) -> Mapping[str, int]:
        """Knobs as those of a `Collector`; so are the following."""
        if self.over:
            return {"call_over": self.over}
        return {"calls_judged": 1} if self.judged else {}

    def open(self, loaded: Object, entries: int) -> None:
        if self.over:
            self._table = SumTable(loaded, "call_fast", _FAST, entries, key_size=KEY.size)
            self._sums = None

    def _part_sums(self) -> PartSums:
        if self._sums is None:
            # It needs numpy, which takes longer to import than the probes to attach.
            from .call_sums import PartSums

            self._sums = PartSums(_FAST // 8, 1)
        return self._sums

    def drain(self, slot: int) -> None:
        if self._table:
            self._part_sums().add(*self._table.drain(slot))

    def move(self, moved: Moved) -> None:
        if self._table:
            self._part_sums().move(moved)

    def read(self, lost: int) -> None:
        """``lost``: fast calls of which nothing is known, since the trace began."""
        self._lost = lost

    def next(self) -> None:
        if self._table:
            self._part_sums().clear()
        self._fast, self._fast_time, self._lost_before = Counter(), 0, self._lost

    def close(self) -> None:
        if self._table:
            self._table.close()

    def take(self) -> None:
        """Adds up the fast calls by function; what was taken out of the table is forgotten."""
        if not self._table:
            return
        for _, function, _, (count, total) in self._part_sums().sums():
            self._fast[function] += count
            self._fast_time += total

    def remarks(self, names: Sequence[str]) -> Iterator[str]:
        """Remarks on how many did not count. ``names``: of the functions."""
        if not self.over:
            return
        number = self._fast.total()
        told = f"only calls of more than {duration(self.over)} count"
        if number:
            each = [f"{count:,} of {printable(names[i]) if i >= 0 else 'others'}" for i, count in self._most()]
            more = f", {len(self._fast) - len(each)} more" if len(self._fast) > len(each) else ""
            took = f"{duration(self._fast_time)} in all: {', '.join(each)}{more}"
            told += f": {plural(number, 'other call')} took {took}"
        yield told
        if lost := self._lost - self._lost_before:
            yield f"and {plural(lost, 'more call')} that did not count had no room in a table"

    def _most(self) -> list[tuple[int, int]]:
        return self._fast.most_common(_NAMED)

    def going_on(self, calls: Sequence[Open], ended: Ended) -> list[Open]:
        """The calls that had not ended, without those that do not count: these are parts of the calls around them."""
        if not self.over:
            return list(calls)
        ends = {record.thread.key.tid: record.end for record in ended.threads if not record.exited}
        by_thread: dict[int, list[Open]] = defaultdict(list)
        for call in calls:
            by_thread[call.tid].append(call)
        kept: list[Open] = []
        for tid, stack in by_thread.items():
            stack.sort(key=lambda call: call.depth)
            while stack and tid in ends and ends[tid] - stack[-1].began <= self.over:
                inner = stack.pop()
                if stack:
                    stack[-1] = _joined(stack[-1], inner)
            kept += stack
        return kept

    def waits(self, calls: Iterable[Open]) -> Iterator[tuple[Origin, int, int]]:
        """Places of the longest waits of calls that had not ended, with the blocked and runnable ns of all."""
        for call in calls if self.judged else ():
            if call.longest.weight:
                longest = call.longest
                place = Origin(longest.ustack, longest.kstack, 0, call.tid, 0, call.life, longest.state)
                yield place, call.blocked - call.slow_blocked, call.runnable - call.slow_runnable


def _joined(outer: Open, inner: Open) -> Open:
    return outer._replace(
        blocked=outer.blocked + inner.blocked,
        runnable=outer.runnable + inner.runnable,
        longest=max(outer.longest, inner.longest),
    )
