"""Calls on the timeline: within a time, and nested as they were."""

from __future__ import annotations

import numpy as np

from .scheduling import OPEN, Array, Scheduling, Threads


def within(calls: Array, begin: int, end: int) -> Array:
    """Calls of which a part is from ``begin`` to ``end``; ends after that are still to come. Sorted by begin, outer
    calls before inner ones."""
    calls = calls[((calls["end"] == OPEN) | (calls["end"] >= begin)) & (calls["begin"] <= end)].copy()
    calls["end"][calls["end"] > end] = OPEN
    return calls[np.lexsort((calls["level"], calls["begin"]))]


def of_threads(scheduling: Scheduling, known: Threads) -> tuple[Array, Array]:
    """The calls of traced threads with their rows in ``scheduling.threads``. Every call has an end: one that is still
    to come is after that of the recording. None begins before it, and each ends within the one around it. Sorted by
    begin, outer calls before inner ones."""
    calls = scheduling.calls
    rows = known.rows(calls["tid"], calls["begin"])
    calls, rows = calls[rows >= 0].copy(), rows[rows >= 0]
    calls["begin"] = np.maximum(calls["begin"], scheduling.begin)
    calls["end"] = np.where(calls["end"] == OPEN, scheduling.end + 1, calls["end"])
    calls["end"] = np.maximum(calls["end"], calls["begin"])
    cut_to_outer(calls, rows)
    order = np.lexsort((calls["level"], calls["begin"]))
    return calls[order], rows[order]


def cut_to_outer(calls: Array, rows: Array) -> None:
    """No span of a thread ends after one of a lower level in which it begins, or after the next one of its level
    begins. ``rows``: of each one's thread. Clocks of cores differ a little, so that this is not so by itself."""
    levels = np.unique(calls["level"])
    for i, level in enumerate(levels):
        inner = np.flatnonzero(calls["level"] == level)
        inner = inner[np.lexsort((calls["begin"][inner], rows[inner]))]
        following = np.roll(calls["begin"][inner], -1)
        same = np.append(rows[inner][1:] == rows[inner][:-1], [False] * (len(inner) > 0))
        calls["end"][inner] = np.where(same, np.minimum(calls["end"][inner], following), calls["end"][inner])
        for lower in levels[:i]:
            _cut(calls, rows, inner, np.flatnonzero(calls["level"] == lower))


def _cut(calls: Array, rows: Array, inner: Array, outer: Array) -> None:
    """The spans ``inner`` (places) to the last of ``outer`` that begins before."""
    outer = outer[np.lexsort((calls["begin"][outer], rows[outer]))]
    # Numbers in the order of thread and time, the outer one first.
    both = np.concatenate([outer, inner])
    order = np.lexsort((np.arange(len(both)) >= len(outer), calls["begin"][both], rows[both]))
    before = np.cumsum(order < len(outer)) - 1
    last = np.zeros(len(both), np.int64)
    last[order] = before
    last = last[len(outer) :]
    found = outer[np.maximum(last, 0)]
    inside = (last >= 0) & (rows[found] == rows[inner]) & (calls["end"][found] > calls["begin"][inner])
    ends = np.minimum(calls["end"][inner], calls["end"][found])
    calls["end"][inner] = np.where(inside, ends, calls["end"][inner])


def nested_levels(calls: Array) -> Array:
    """Number of other calls of its thread that are going on when each begins: a level that leaves every call its time,
    for `cut_to_outer`. ``calls`` have ``begin``, ``end``, ``tid`` and ``life``."""
    ends = np.where(calls["end"] == OPEN, np.iinfo(np.int64).max, calls["end"])
    order = np.lexsort((-ends, calls["level"], calls["begin"], calls["life"], calls["tid"]))
    ordered = calls[order]
    changes = (np.diff(ordered["tid"]) != 0) | (np.diff(ordered["life"]) != 0)
    levels = np.zeros(len(calls), np.int64)
    for own in np.split(order, np.flatnonzero(changes) + 1):
        levels[own] = np.arange(len(own)) - np.searchsorted(np.sort(ends[own]), calls["begin"][own], side="right")
    return np.clip(levels, 0, np.iinfo(calls["level"].dtype).max)
