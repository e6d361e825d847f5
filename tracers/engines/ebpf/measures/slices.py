"""Waits by slices of a trace: the kernel adds them up apart, so that they need not be recorded one by one.

A slice has a fixed length. Where it is not known how long a trace will take, the length doubles whenever there are too
many slices, and two become one.
"""

from __future__ import annotations

import itertools
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from .....converters.model.states import BLOCKED, PREEMPTED, WOKEN
from ....kernel.bpfobject import Object
from ....kernel.records import NEW, SLICE_DOUBLED_SHIFT, SLICE_SHIFT, STATES, Origin, ThreadRecord, WaitSum
from ....kernel.records import PREEMPTED as SWITCHED_OUT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .totals import Moved, Totals, Words

MOST = 20
"""Number of slices at which their length doubles."""
MOST_ROWS = 1 << 18
"""Number of rows; when there are more, the rarer half loses its stacks."""
_WHERE = 4
"""Index of the word of an origin whose upper half is the state."""
_WHO = 3
"""Index of the word with the ids of process and thread."""
_QUEUED = (SWITCHED_OUT, NEW)
_STATE_BITS = 32
_PLAIN = (1 << SLICE_DOUBLED_SHIFT) - 1
_DOUBLED = (1 << SLICE_SHIFT - SLICE_DOUBLED_SHIFT) - 1
_BLOCKED, _RUNNABLE = 1, 4
"""Indices of the values of a `WaitSum` that are added up."""


class Slices(NamedTuple):
    """Times of threads by slices. Slice i begins ``length`` times i ns after the trace did; the last one ends with
    it."""

    length: int
    number: int
    waits: dict[tuple[Origin, str], list[int]]
    """ns in each slice, by place and state (`converters.model.states`)."""
    lived: dict[int, list[int]]
    """ns in each slice for which threads of a sum lived, by the first life of the sum: of threads that ended, and were
    added up."""

    def overlap(self, begin: int, end: int) -> list[int]:
        """ns in each slice of a time from ``begin`` to ``end``, ns after the beginning of the trace."""
        return overlap(begin, end, self.length, self.number)


class SlicedWaits:
    """The waits of one trace."""

    def __init__(self, length: int) -> None:
        """``length`` of a slice, in ns, at first."""
        self.length = length
        self.doubled = 0
        self._totals: Totals | None = None
        self._loaded: Object | None = None
        self._seeded = 0
        self._lived: defaultdict[int, list[int]] = defaultdict(list)

    @staticmethod
    def without_slice(origin: Origin) -> Origin:
        """See `plain`."""
        return plain(origin)

    def open(self, loaded: Object) -> None:
        """A trace is going to begin."""
        self.doubled, self._totals, self._loaded, self._seeded = 0, None, loaded, 0
        self._lived.clear()
        loaded.set_variable("slice_doubled", 0)

    def poll(self) -> None:
        """Doubles the length when there are too many slices. To be called often while the trace runs."""
        now = time.monotonic_ns()
        self._seeded = self._seeded or now
        if now - self._seeded >= MOST * self.length << self.doubled and self._loaded:
            self.doubled += 1
            self._lived.update({life: _halved(times) for life, times in self._lived.items()})
            self._loaded.set_variable("slice_doubled", self.doubled)

    @property
    def held(self) -> int:
        """Bytes that the rows take."""
        return self._totals.bytes if self._totals else 0

    def split(self, keys: bytes, values: bytes) -> tuple[bytes, bytes]:
        """Takes in what was in a table: `ORIGIN` and `WaitSum` of each row. Returns the same without slices."""
        import numpy as np

        from .totals import Totals

        if self._totals is None:
            self._totals = Totals((np.add, np.add), (0, 1))
        words: Words = np.frombuffer(keys, np.uint64).reshape(-1, _WHERE + 1)
        sums = np.frombuffer(values, np.uint64).reshape(-1, len(WaitSum._fields))
        if not len(words):
            return keys, values
        times = np.ascontiguousarray(sums[:, [_BLOCKED, _RUNNABLE]])
        kept = _at_most(words, self.doubled)
        queued = np.isin(words[:, _WHERE] >> np.uint64(_STATE_BITS) & np.uint64(_PLAIN), _QUEUED)
        kept[queued, :_WHO] = 0  # where a thread waits for a core does not matter
        self._totals.add(kept.tobytes(), times.tobytes())
        if len(self._totals) > MOST_ROWS:
            self._totals.fold(MOST_ROWS // 2)
        return _plain(words).tobytes(), values

    def move(self, moved: Moved) -> None:
        """Rows of these lives get other ids: see `Totals.move`."""
        if self._totals:
            self._totals.move(moved)

    def ended(self, life: int, times: NDArray[np.uint64], began: int) -> None:
        """Threads that ended are added up under ``life``. ``times``: when the account of each began and ended."""
        if not self._seeded:
            return
        length = self.length << self.doubled
        last = int(times[:, 1].max()) - began
        have = self._lived[life]
        have += [0] * (last // length + 1 - len(have))
        for i in range(len(have)):
            low, high = began + i * length, began + (i + 1) * length
            have[i] += int((times[:, 1].clip(low, high) - times[:, 0].clip(low, high)).sum())

    def joined(self, life: int, into: int) -> None:
        """The threads of one sum are now in another one."""
        if life in self._lived:
            self._lived[into] = _added(self._lived[into], self._lived.pop(life))

    def take(self, began: int, stopped: int, waits: Sequence[tuple[Origin, WaitSum]], still: Sequence[Open]) -> Slices:
        """Times of the whole trace. ``waits``: sums that the kernel had not put into a table. ``still``: waits that had
        not ended."""
        length = self.length << self.doubled
        number = max(-(-(stopped - began) // length), 1)
        found: defaultdict[tuple[Origin, str], list[int]] = defaultdict(lambda: [0] * number)
        for origin, blocked, runnable in itertools.chain(
            self._rows(), ((key, of.blocked, of.runnable) for key, of in waits)
        ):
            at, place = self._place(origin)
            for state, ns in _by_state(at, blocked, runnable):
                found[at if state in BLOCKED else _bare(at), state][min(place, number - 1)] += ns
        for each in still:
            asleep = overlap(each.out - began, each.woken - began, length, number)
            queued = overlap(each.woken - began, each.end - began, length, number)
            for i in range(number):
                for state, ns in _by_state(each.origin, asleep[i], queued[i]):
                    found[each.origin if state in BLOCKED else _bare(each.origin), state][i] += ns
        lived = {life: _added([0] * number, times[:number]) for life, times in self._lived.items()}
        return Slices(length, number, dict(found), lived)

    def _rows(self) -> Iterator[tuple[Origin, int, int]]:
        if self._totals:
            for origin, (blocked, runnable) in self._totals.take():
                yield origin, blocked, runnable

    def _place(self, origin: Origin) -> tuple[Origin, int]:
        """The origin without its slice, and the index of that one now."""
        doubled = origin.state >> SLICE_DOUBLED_SHIFT & _DOUBLED
        place = origin.state >> SLICE_SHIFT >> max(self.doubled - doubled, 0)
        return plain(origin), place


class Open(NamedTuple):
    """A wait that had not ended. Times are CLOCK_MONOTONIC ns."""

    origin: Origin
    out: int
    woken: int
    """End of the time for which it was blocked."""
    end: int


def _bare(origin: Origin) -> Origin:
    """The origin without a place, and with one state: of waits for a core."""
    return origin._replace(ustack=0, kstack=0, object=0, state=SWITCHED_OUT)


def plain(origin: Origin) -> Origin:
    """The origin of a sum of waits, without its slice."""
    return origin._replace(state=origin.state & _PLAIN) if origin.state > _PLAIN else origin


def open_part(record: ThreadRecord, still: WaitSum) -> Open:
    """The wait in which a thread was when the trace ended. ``still``: its times."""
    thread = record.thread
    return Open(thread.key, thread.out, thread.out + still.blocked, thread.out + still.blocked + still.runnable)


def overlap(begin: int, end: int, length: int, number: int) -> list[int]:
    """ns in each of ``number`` slices of the time from ``begin`` to ``end``. What is beyond the last slice is in it."""
    begin = max(begin, 0)
    found = [0] * number
    while begin < end:
        i = min(begin // length, number - 1)
        upto = end if i == number - 1 else min(end, (i + 1) * length)
        found[i] += upto - begin
        begin = upto
    return found


def _by_state(origin: Origin, blocked: int, runnable: int) -> Iterator[tuple[str, int]]:
    """The parts of a wait that are not 0, by state."""
    if origin.state in _QUEUED:
        blocked, runnable, state = 0, blocked + runnable, PREEMPTED if origin.state == SWITCHED_OUT else WOKEN
    else:
        state = WOKEN
    if blocked:
        yield STATES[origin.state], blocked
    if runnable:
        yield state, runnable


def _plain(words: Words) -> Words:
    """Origins without slices."""
    import numpy as np

    made: Words = words.copy()
    made[:, _WHERE] &= np.uint64((1 << _STATE_BITS) - 1 | _PLAIN << _STATE_BITS)
    return made


def _at_most(words: Words, doubled: int) -> Words:
    """Origins whose slices have at least the present length: so there are never many of them."""
    import numpy as np

    states = words[:, _WHERE] >> np.uint64(_STATE_BITS)
    before = states >> np.uint64(SLICE_DOUBLED_SHIFT) & np.uint64(_DOUBLED)
    now = np.maximum(before, np.uint64(doubled))
    place = states >> np.uint64(SLICE_SHIFT) >> now - before
    states = place << np.uint64(SLICE_SHIFT) | now << np.uint64(SLICE_DOUBLED_SHIFT) | states & np.uint64(_PLAIN)
    made: Words = words.copy()
    made[:, _WHERE] = made[:, _WHERE] & np.uint64((1 << _STATE_BITS) - 1) | states << np.uint64(_STATE_BITS)
    return made


def _halved(times: Sequence[int]) -> list[int]:
    """The times of slices of twice the length."""
    return [sum(times[i : i + 2]) for i in range(0, len(times), 2)]


def _added(one: Sequence[int], other: Sequence[int]) -> list[int]:
    number = max(len(one), len(other))
    padded = ([*each, *[0] * (number - len(each))] for each in (one, other))
    return [a + b for a, b in zip(*padded, strict=True)]
