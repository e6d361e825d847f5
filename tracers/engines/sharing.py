"""Sharing of calls between processes at the same time: from the begin and the end of each call, and of each wait in
it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...converters.model.sharing import SharedCall

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
    """State of one device, between two times up to which it is worked on."""

    upto: int = 0
    forced: int = 0
    """Time before which calls began of which it is not known who else was inside."""
    last_exits: dict[int, int] = field(default_factory=dict)
    """Time of the last return, by number of the target."""
    events: Array = field(default_factory=lambda: np.zeros(0, EVENT))
    """Events of which something may still be needed."""


class Sharing:
    """Events, worked on while the trace runs."""

    def __init__(self, device: Callable[[int], Hashable]) -> None:
        """``device``: that of the number of a target; a call is alone if no other process is inside any call of its
        device."""
        self._device, self._devices = device, dict[int, Hashable]()
        self._fresh: list[Array] = []
        self._states: defaultdict[Hashable, _State] = defaultdict(_State)
        self.found: defaultdict[int, SharedCall] = defaultdict(lambda: SharedCall("", ""))
        """Sums by number of the target; without names."""

    def hand(self, events: Sequence[tuple[int, int, int, int, int, int]]) -> None:
        """Takes events with the fields of `EVENT`."""
        self._fresh.append(np.array(events, EVENT))

    def settle(self, now: int, going_on: Mapping[tuple[int, int], int], *, final: bool = False) -> None:
        """Works on the events up to ``now``. To be called when those before were handed in.

        ``going_on``: by number and process, the begin of calls that had not returned ``now``. Up to the earliest of
        them all calls are known; if ``final``, they are taken as if they were over.
        """
        kept = (state.events for state in self._states.values())
        events = np.concatenate([*self._fresh, *kept, _as_events(going_on, now)])
        self._fresh = []
        for state in self._states.values():
            state.events = _NONE
        for device, mine in self._by_device(events):
            state, here = self._states[device], mine[mine["tid"] == 0]
            upto = min(now, int(here["begin"].min())) if len(here) else now
            if final or len(mine) > _MOST:
                upto = now
            if upto > state.upto:
                self._work(state, mine, upto)
                state.upto = upto
            if final or len(mine) > _MOST:
                state.forced = now
            # Of calls that go on, the next call of this has the latest.
            _keep(state, mine[mine["tid"] > 0])

    def _by_device(self, events: Array) -> Iterator[tuple[Hashable, Array]]:
        numbers, which = np.unique(events["number"], return_inverse=True)
        ids: dict[Hashable, int] = {}
        for number in set(numbers.tolist()) - self._devices.keys():
            self._devices[number] = self._device(number)
        of = [ids.setdefault(self._devices[number], len(ids)) for number in numbers.tolist()]
        return zip(ids, _parts(events, np.array(of, np.int64)[which]), strict=True)

    def _work(self, state: _State, events: Array, upto: int) -> None:
        """``events``: of one device."""
        begins, ends = (np.sort(times) for times in _merged(events[events["is_wait"] == 0]))
        numbers, which = np.unique(events["number"], return_inverse=True)
        for number, mine in zip(numbers.tolist(), _parts(events, which), strict=True):
            found = self.found[number]
            calls, waits = mine[mine["is_wait"] == 0], mine[mine["is_wait"] == 1]
            _count_inside(found, *(np.clip(times, state.upto, upto) for times in _merged(calls)))
            done = calls[(calls["end"] > state.upto) & (calls["end"] <= upto) & (calls["tid"] > 0)]
            if not len(done):
                continue
            done = done[np.argsort(done["end"], kind="stable")]
            # Its own process is always one of them.
            others = np.searchsorted(begins, done["end"]) - np.searchsorted(ends, done["begin"], "right")
            _count(found, done["end"] - done["begin"], (others <= 1) & (done["begin"] >= state.forced))
            before = np.concatenate([[state.last_exits.get(number, 0)], done["end"][:-1]])
            _add_turns(found, waits, done, np.maximum(done["begin"], before))
            state.last_exits[number] = int(done["end"][-1])


_NONE = np.zeros(0, EVENT)


def _as_events(going_on: Mapping[tuple[int, int], int], now: int) -> Array:
    """Calls that end ``now``; their thread is 0."""
    made = np.zeros(len(going_on), EVENT)
    for i, ((number, tgid), begin) in enumerate(going_on.items()):
        made[i] = (begin, now, number, tgid, 0, 0)
    return made


def _keep(state: _State, events: Array) -> None:
    """Keeps events that end later, and those at the same time as one of them. No turn of another call begins
    earlier."""
    unfinished = events[(events["end"] > state.upto) & (events["is_wait"] == 0)]
    since = min([state.upto, *unfinished["begin"].tolist()])
    state.events = events[events["end"] > since]


def _parts(events: Array, which: Array) -> list[Array]:
    """The events of each index: ``which`` has those from 0 on, without a gap."""
    order = np.argsort(which, kind="stable")
    counts = np.bincount(which) if len(which) else np.zeros(0, np.int64)
    return np.split(events[order], np.cumsum(counts)[:-1]) if len(counts) else []


def _count(found: SharedCall, latencies: Array, alone: Array) -> None:
    """Adds calls that returned; ``alone``: which of them were."""
    found.count += len(latencies)
    found.time += int(latencies.sum())
    found.alone += int(alone.sum())
    found.alone_time += int(latencies[alone].sum())


def _merged(events: Array) -> tuple[Array, Array]:
    """Times in which the processes were inside: begins and ends, which do not overlap within a process."""
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
