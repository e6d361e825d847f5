"""Times and errors of the calls of each function by each thread: taken out of the kernel's tables meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .....converters.model.calls import BUCKETS
from ....kernel.records import ORIGIN, RUNNING, Origin
from .totals import Moved, Totals

KEY = np.dtype([("who", "<u4", 3), ("function", "<u4")])
"""struct call_key."""
FIGURES = 11
SUM = np.dtype([("figures", "<u8", FIGURES), ("latencies", "<u4", BUCKETS)])
"""struct call_sum."""
FAILURE = np.dtype([("who", "<u4", 3), ("function", "<u4"), ("result", "<i4"), ("pad", "<u4")])
"""struct call_failure."""
PART = np.dtype([("who", "<u4", 3), ("function", "<u4"), ("number", "<u4"), ("pad", "<u4")])
"""struct call_ioctl_key and struct call_copy_key."""
_TOTAL, _MIN, _MAX = 1, 5, 6
"""Places of figures."""
_TID = 6
"""Place of the thread's id in struct origin, in fields of 4 bytes: before the tgid, the life and the state."""
_LOW = 0xFFFFFFFF
_MOST = 1 << 15
"""Functions of threads; beyond, the rare ones of a thread are added up."""
OTHER = -1
"""The function that stands for these."""
_NEVER = (1 << 64) - 1


class Sum(NamedTuple):
    """Sums of one function's calls by a thread; times in ns."""

    returned: int
    total: int
    own: int
    """Time without the calls that were made inside."""
    blocked: int
    runnable: int
    min: int
    max: int
    left: int
    open: int
    open_time: int
    open_inner: int
    latencies: tuple[int, ...]


class CallSums:
    """The sums of a trace, or of an interval of one."""

    def __init__(self) -> None:
        ways: list[np.ufunc] = [np.add] * (FIGURES + BUCKETS)
        ways[_MIN], ways[_MAX] = np.minimum, np.maximum
        self._sums = Totals(ways, (_TOTAL,), more=1)
        self._failures = Totals((np.add,), (0,), more=1)

    def add(self, keys: bytes, values: bytes) -> None:
        """Adds what the table of sums had."""
        of, sums = np.frombuffer(keys, KEY), np.frombuffer(values, SUM)
        figures = sums["figures"].copy()
        figures[figures[:, 0] == 0, _MIN] = _NEVER
        rows = np.hstack([figures, sums["latencies"].astype(np.uint64)])
        self._sums.add(_keys(of["who"], of["function"].astype(np.uint64) + np.uint64(1)), rows.tobytes())
        _bound(self._sums)

    def add_failures(self, keys: bytes, values: bytes) -> None:
        """Adds what the table of errors had."""
        failed = np.frombuffer(keys, FAILURE)
        result = failed["result"].astype(np.int64).astype(np.uint64) & np.uint64(_LOW)
        self._failures.add(_keys(failed["who"], failed["function"].astype(np.uint64) << np.uint64(32) | result), values)
        _bound(self._failures)

    def move(self, moved: Moved) -> None:
        """Rows of these lives get other ids."""
        self._sums.move(moved)
        self._failures.move(moved)

    def clear(self) -> None:
        """The next interval begins."""
        self._sums.clear()
        self._failures.clear()

    def sums(self) -> Iterator[tuple[Origin, int, Sum]]:
        """Thread, function or `OTHER`, and what its calls took; they are forgotten."""
        for origin, (function, *values) in self._sums.take():
            if values[_MIN] == _NEVER:
                values[_MIN] = 0
            yield origin, function - 1, Sum._make((*values[:FIGURES], tuple(values[FIGURES:])))

    def failures(self) -> Iterator[tuple[Origin, int, int, int]]:
        """Thread, function, result, number of calls; they are forgotten. The result is 0 if errors of several functions
        were added up."""
        for origin, (what, number) in self._failures.take():
            yield origin, what >> 32 if what else OTHER, (what & _LOW ^ 1 << 31) - (1 << 31), number


class PartSums:
    """Sums of what calls made, ioctls or copies, of a trace or of an interval of one."""

    def __init__(self, figures: int, weight: int) -> None:
        """``figures``: words of a value. ``weight``: the one that says how important it is."""
        self._totals = Totals((np.add,) * figures, (weight,), more=1)

    def add(self, keys: bytes, values: bytes) -> None:
        """Adds what the table had."""
        of = np.frombuffer(keys, PART)
        what = (of["function"].astype(np.uint64) + np.uint64(1)) << np.uint64(32) | of["number"].astype(np.uint64)
        self._totals.add(_keys(of["who"], what), values)
        _bound(self._totals)

    def move(self, moved: Moved) -> None:
        """Rows of these lives get other ids."""
        self._totals.move(moved)

    def clear(self) -> None:
        """The next interval begins."""
        self._totals.clear()

    def sums(self) -> Iterator[tuple[Origin, int, int, list[int]]]:
        """Thread, function or `OTHER`, number of the ioctl's target or direction of the copy, and the figures; they are
        forgotten."""
        for origin, (what, *figures) in self._totals.take():
            yield origin, (what >> 32) - 1, what & _LOW, figures


def _bound(totals: Totals) -> None:
    if len(totals) > _MOST:
        totals.fold(_MOST // 2)


def _keys(who: NDArray[np.uint32], more: NDArray[np.uint64]) -> bytes:
    """struct origin of these threads (tid, tgid, life), without stacks, and the word behind it."""
    made = np.zeros((len(who), ORIGIN.size // 4 + 2), np.uint32)
    made[:, _TID : _TID + 3], made[:, _TID + 3] = who, RUNNING
    made[:, -2:] = more.view(np.uint32).reshape(-1, 2)
    return made.tobytes()
