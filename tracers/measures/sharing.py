"""Who was inside a call at the same time: from the begin and the end of each call, and of each wait in it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...converters.model.sharing import SharedCall
from .recorder import RING
from .spans import Spans

Array = NDArray[Any]
EVENT = np.dtype(
    [
        ("begin", "<i8"),
        ("end", "<i8"),
        ("number", "<u4"),
        ("tgid", "<u4"),
        ("tid", "<u4"),
        ("is_wait", "<u4"),
    ]
)
"""struct ioctl_event of bpf/ioctl.bpf.c."""
_MOST = 1 << 19
"""Events that are kept while a call goes on that began before them; then it is taken as if it ended and began again."""
_WAITERS = 64
"""Processes whose waits are told apart, for one call."""


@dataclass(slots=True)
class _State:
    """Of one call, between two times up to which it is worked on."""

    upto: int = 0
    last_exit: int = 0
    events: Array = field(default_factory=lambda: np.zeros(0, EVENT))
    """Those of which something may still be needed."""


class Sharing:
    """The events of all cores, worked on while the trace runs."""

    SETTLED_FROM = 1 << 16
    """So many events are read before they are worked on."""

    def __init__(self, events: Any, rings: Any, spans: Spans | None = None, level: int = 0) -> None:
        """``events`` and ``rings``: buffers with `EVENT` and `RING`. ``spans`` gets the calls, with this level."""
        self._spans, self._level = spans, level
        self._events, self._rings = np.frombuffer(events, EVENT), np.frombuffer(rings, RING)
        self._tails = self._rings["tail"].copy()
        self._fresh: list[Array] = []
        self._states: defaultdict[int, _State] = defaultdict(_State)
        self.found: defaultdict[int, SharedCall] = defaultdict(lambda: SharedCall("", ""))
        """By number of the target; without names."""
        self.lost = 0
        """Number of calls and waits that are missing."""

    def take(self) -> int:
        """Reads the new events; returns how many are to be worked on."""
        heads = self._rings["head"].copy()
        for ring in np.flatnonzero(heads != self._tails):
            first, slots = int(self._rings["first"][ring]), int(self._rings["slots"][ring])
            tail, count = int(self._tails[ring]), int(heads[ring] - self._tails[ring])
            place = tail & (slots - 1)
            upto = min(place + count, slots)
            self._add(self._events[first + place : first + upto].copy())
            self._add(self._events[first : first + count - (upto - place)].copy())
            self._rings["tail"][ring] = self._tails[ring] = heads[ring]
        self.lost = int(self._rings["lost"].sum())
        return sum(map(len, self._fresh))

    def _add(self, events: Array) -> None:
        self._fresh.append(events)
        if self._spans:
            calls = events[events["is_wait"] == 0]
            self._spans.add(calls["begin"], calls["end"], calls["tid"], calls["number"], self._level)

    def close(self) -> None:
        """Releases the buffers: nothing is written any more."""
        self._events, self._rings = np.zeros(0, EVENT), np.zeros(0, RING)

    def settle(self, now: int, going_on: Mapping[tuple[int, int], int], *, final: bool = False) -> None:
        """Works on the events up to ``now``. To be called after `take`.

        ``going_on``: by number and process, the begin of calls that had not returned ``now``. Up to the earliest of
        them all calls are known; if ``final``, they are taken as if they were over.
        """
        events = np.concatenate([*self._fresh, *(state.events for state in self._states.values())] or [_NONE])
        self._fresh = []
        for state in self._states.values():
            state.events = _NONE
        still = _as_events(going_on, now)
        numbers = np.unique(np.concatenate([events["number"], still["number"]]))
        for number in numbers.tolist():
            state, mine = self._states[number], events[events["number"] == number]
            here = still[still["number"] == number]
            upto = min(now, int(here["begin"].min())) if len(here) else now
            if final or len(mine) > _MOST:
                upto = now
            if upto > state.upto:
                self._work(state, self.found[number], np.concatenate([mine, here]), upto)
            # Of calls that go on, the next call of this has the latest.
            _keep(state, mine)

    def _work(self, state: _State, found: SharedCall, events: Array, upto: int) -> None:
        calls, waits = events[events["is_wait"] == 0], events[events["is_wait"] == 1]
        begins, ends = _merged(calls)
        _count_inside(found, np.clip(begins, state.upto, upto), np.clip(ends, state.upto, upto))
        done = calls[(calls["end"] > state.upto) & (calls["end"] <= upto) & (calls["tid"] > 0)]
        done = done[np.argsort(done["end"], kind="stable")]
        if len(done):
            latencies = done["end"] - done["begin"]
            gone = np.searchsorted(np.sort(ends), done["begin"], "right")
            others = np.searchsorted(np.sort(begins), done["end"]) - gone
            found.count += len(done)
            found.time += int(latencies.sum())
            found.alone += int((others <= 1).sum())
            found.alone_time += int(latencies[others <= 1].sum())
            before = np.concatenate([[state.last_exit], done["end"][:-1]])
            _add_turns(found, waits, done, np.maximum(done["begin"], before))
            state.last_exit = int(done["end"][-1])
        state.upto = upto


_NONE = np.zeros(0, EVENT)


def _as_events(going_on: Mapping[tuple[int, int], int], now: int) -> Array:
    """Calls that end ``now``; their thread is 0."""
    made = np.zeros(len(going_on), EVENT)
    for i, ((number, tgid), begin) in enumerate(going_on.items()):
        made[i] = (begin, now, number, tgid, 0, 0)
    return made


def _keep(state: _State, events: Array) -> None:
    """Those that end later, and those at the same time as one of them."""
    unfinished = events[(events["end"] > state.upto) & (events["is_wait"] == 0)]
    since = min([state.upto, state.last_exit, *unfinished["begin"].tolist()])
    state.events = events[events["end"] > since]


def _merged(events: Array) -> tuple[Array, Array]:
    """When the processes were inside: begins and ends, which do not overlap within a process."""
    if not len(events):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    events = events[np.lexsort((events["begin"], events["tgid"]))]
    first = np.ones(len(events), bool)
    changes = events["tgid"][1:] != events["tgid"][:-1]
    # Ends of a process are moved behind all those of the one before.
    group = np.concatenate([[0], np.cumsum(changes)])
    base = int(events["begin"].min())
    span = int(events["end"].max()) - base + 1
    latest = np.maximum.accumulate(events["end"] - base + group * span)
    first[1:] = changes | (events["begin"][1:] - base + group[1:] * span > latest[:-1])
    last = np.concatenate([np.flatnonzero(first)[1:] - 1, [len(events) - 1]])
    return events["begin"][first], latest[last] - group[last] * span + base


def _count_inside(found: SharedCall, begins: Array, ends: Array) -> None:
    """Adds the times in which so many processes were inside."""
    times = np.concatenate([begins, ends])
    order = np.argsort(times, kind="stable")
    inside = np.cumsum(np.concatenate([np.ones(len(begins), np.int64), -np.ones(len(ends), np.int64)])[order])[:-1]
    lengths = np.diff(times[order])
    found.busy += int(lengths[inside >= 1].sum())
    found.shared += int(lengths[inside >= 2].sum())
    found.inside += int((lengths * inside).sum())


def _add_turns(found: SharedCall, waits: Array, done: Array, begins: Array) -> None:
    """``done``: calls in the order of their ends, whose turns begin at ``begins``."""
    holders, whose = np.unique(done["tgid"], return_inverse=True)
    lengths = np.bincount(whose, weights=done["end"] - begins).round().astype(np.int64)
    for pid, ns in zip(holders.tolist(), lengths.tolist(), strict=True):
        found.turns[pid] = found.turns.get(pid, 0) + ns
    waiters, counts = np.unique(waits["tgid"], return_counts=True)
    for waiter in waiters[np.argsort(-counts, kind="stable")[:_WAITERS]].tolist():
        starts, stops = _merged(waits[waits["tgid"] == waiter])
        points = np.stack([starts, stops], axis=1).ravel()
        waited = np.concatenate([[0], np.cumsum(stops - starts)])
        known = np.stack([waited[:-1], waited[1:]], axis=1).ravel()
        base = int(points[0])  # so that floats are exact
        during = np.interp(done["end"] - base, points - base, known) - np.interp(begins - base, points - base, known)
        by_holder = np.bincount(whose, weights=during).round().astype(int)
        for pid, ns in zip(holders.tolist(), by_holder.tolist(), strict=True):
            if ns > 0 and pid != waiter:
                found.waits[waiter, pid] = found.waits.get((waiter, pid), 0) + ns
