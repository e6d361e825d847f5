"""The scheduler's events in columns: millions of them fit in memory and are written in bulk.

Times are ns since the recording began. Every array is sorted by time (`in_order` sorts). A thread id identifies a
thread only together with a time, because ids are reused: `Threads` finds the row of `Scheduling.threads`. Thread id 0
is the idle task, of which every core has its own. A thread without a row is not traced: only its id is known.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from .samples import Stack

Array = npt.NDArray[Any]

SWITCH = np.dtype(
    [
        ("time", "<i8"),
        ("cpu", "<u2"),
        ("prev_state", "<u2"),  # a key of states.BY_BITS, or a sum of them
        ("prev_tid", "<i4"),
        ("next_tid", "<i4"),
        ("next_prio", "<i2"),  # the kernel's: 0 to 139, -1 for deadline tasks
    ]
)
"""A core goes from one thread to another: sched_switch."""

WAKE_UP = np.dtype(
    [
        ("time", "<i8"),
        ("cpu", "<u2"),  # the core that woke it
        ("target_cpu", "<u2"),  # the core on which it will run
        ("tid", "<i4"),
        ("waker", "<i4"),  # the thread on the core `cpu`
        ("prio", "<i2"),  # as in SWITCH, of the thread that is woken
        ("flags", "<u2"),  # NEW, INTERRUPT
    ]
)
"""A thread becomes runnable: sched_waking or sched_wakeup; for the first time: sched_wakeup_new."""

NEW, INTERRUPT = 1, 2
"""Flags of a `WAKE_UP`: the thread is new; it was woken by an interrupt, not by the code of ``waker``."""

CREATION = np.dtype([("time", "<i8"), ("cpu", "<u2"), ("tid", "<i4"), ("tgid", "<i4"), ("parent", "<i4")])
"""task_newtask; ``parent`` is the thread that created it, 0 when unknown."""

EXIT = np.dtype([("time", "<i8"), ("cpu", "<u2"), ("tid", "<i4"), ("tgid", "<i4")])
"""sched_process_exit, which precedes the last switch of the thread."""

THREAD = np.dtype([("tid", "<i4"), ("tgid", "<i4"), ("begin", "<i8"), ("name", "<i4"), ("process", "<i4")])
"""A traced thread; ``begin`` is its creation, 0 or less if it existed before the recording; ``name`` and
``process`` are indices of `Scheduling.names`. Rows may be in any order."""

BLOCKED = np.dtype(
    [
        ("begin", "<i8"),  # its switch out; less than Scheduling.begin if it was earlier
        ("woken", "<i8"),  # 0 if unknown or not woken
        ("end", "<i8"),  # its switch in, OPEN if it is still to come
        ("tid", "<i4"),
        ("stack", "<i4"),  # index of Scheduling.stacks, NO_STACK
        ("state", "<u2"),  # like SWITCH's prev_state
    ]
)
"""A thread off its core, with the stack at its switch out; sorted by ``begin``. One thread's do not overlap."""

CALL = np.dtype(
    [
        ("begin", "<i8"),
        ("end", "<i8"),  # OPEN if it is still to come
        ("tid", "<i4"),
        ("name", "<i4"),  # index of Scheduling.call_names
        ("level", "u1"),
        ("stack", "<i4"),  # at its begin: index of Scheduling.stacks, NO_STACK
    ]
)
"""A timed call of a thread, from its begin to its return. A call with a higher ``level`` can be inside one with a lower
level."""

SAMPLE = np.dtype([("time", "<i8"), ("tid", "<i4"), ("stack", "<i4")])
"""Layout of samples: what a thread runs when a clock interrupts it. ``stack``: index of Scheduling.stacks, NO_STACK."""

OPEN = -1
NO_STACK = -1


class CallName(NamedTuple):
    """Name of what was called; hostile. ``kind``: ``call`` of a function, ``ioctl``, ``step``: a call that the user
    named as a step."""

    name: str
    kind: Literal["call", "ioctl", "step"] = "call"
    unwatched: tuple[tuple[int, int, int], ...] = ()
    """Processes in which calls of a step were not seen, with begin and end of that time in ns, as those of events."""


LOSS = np.dtype([("time", "<i8"), ("count", "<i8"), ("cpu", "<u2")])
"""``count`` lost events of a core, all of them before ``time`` and after the last event before that."""

_EVENTS = ("switches", "wakeups", "created", "exited")


@dataclass(slots=True, eq=False)
class Scheduling:
    """The events from ``begin`` to ``end``, both in ns since the recording began."""

    end: int
    begin: int = 0
    """Greater than 0 if older events were dropped."""
    switches: Array = field(default_factory=lambda: np.zeros(0, SWITCH))
    wakeups: Array = field(default_factory=lambda: np.zeros(0, WAKE_UP))
    created: Array = field(default_factory=lambda: np.zeros(0, CREATION))
    exited: Array = field(default_factory=lambda: np.zeros(0, EXIT))
    threads: Array = field(default_factory=lambda: np.zeros(0, THREAD))
    blocked: Array = field(default_factory=lambda: np.zeros(0, BLOCKED))
    losses: Array = field(default_factory=lambda: np.zeros(0, LOSS))
    names: list[str] = field(default_factory=list)
    """Names of threads and processes, each once. Hostile."""
    stacks: list[Stack] = field(default_factory=list)
    calls: Array = field(default_factory=lambda: np.zeros(0, CALL))
    """Sorted by ``begin``, outer calls before inner ones."""
    call_names: list[CallName] = field(default_factory=list)
    calls_lost: int = 0
    """Number of calls that are missing because they were not read in time."""
    calls_dropped: int = 0
    """Number of calls that are missing because there were more than are kept."""
    every_switch: bool = True
    """False when only switches from or to traced threads were recorded: it is unknown which threads ran in between."""
    boottime: int = 0
    """CLOCK_BOOTTIME, CLOCK_MONOTONIC when the recording began, in ns; 0 when unknown. See also
    `Profile.start_ns`."""
    monotonic: int = 0
    kernel: str = ""
    """The kernel's release, as in ``uname -r``."""
    kept: Literal["", "newest", "first"] = ""
    """Choice of the events that were kept, if others were dropped because of a limit; "": none were."""
    dropped: int = 0
    """Number of dropped events."""
    lost_outside: int = 0
    """Number of lost events in times that were dropped."""
    samples: Array = field(default_factory=lambda: np.zeros(0, SAMPLE))

    def count(self) -> int:
        """Number of switches, wake-ups, creations and exits."""
        return sum(len(getattr(self, name)) for name in _EVENTS)

    def lost(self) -> dict[str, int]:
        """Numbers of what is missing, by kind, as in `Profile.lost`."""
        found = {"scheduler events": int(self.losses["count"].sum()) + self.lost_outside}
        if self.kept:
            side = "older" if self.kept == "newest" else "newer"
            found[f"{side} scheduler events beyond the limit"] = self.dropped
        if len(self.calls) or self.calls_lost or self.calls_dropped:
            found["spans of calls"] = self.calls_lost
        if self.calls_dropped:
            found["spans of calls beyond the limit"] = self.calls_dropped
        strange = int((Threads(self.threads).rows(self.blocked["tid"], self.blocked["begin"]) < 0).sum())
        if strange:
            found["waits of unknown threads"] = strange
        return found


def in_order(scheduling: Scheduling) -> Scheduling:
    """A copy with all arrays sorted by time; the sort is stable."""
    keys = dict.fromkeys((*_EVENTS, "losses", "samples"), "time")
    changed = {}
    for name, key in {**keys, "blocked": "begin"}.items():
        array = getattr(scheduling, name)
        if (array[key][1:] < array[key][:-1]).any():
            changed[name] = array[np.argsort(array[key], kind="stable")]
    return replace(scheduling, **changed) if changed else scheduling


def keep(scheduling: Scheduling, limit: int, kept: Literal["newest", "first"]) -> Scheduling:
    """Keeps at most ``limit`` (> 0) events, the newest or the first ones, and everything within their time.

    May be called again with more events: the number of dropped ones accumulates. Spans, threads and losses outside
    of the remaining time are dropped, too.
    """
    scheduling = in_order(scheduling)
    excess = scheduling.count() - limit
    if excess <= 0:
        return replace(scheduling, kept=kept)
    arrays = [getattr(scheduling, name) for name in _EVENTS]
    times = np.concatenate([array["time"] for array in arrays])
    order = np.argsort(times, kind="stable")
    chosen = np.zeros(len(times), bool)
    chosen[order[excess:] if kept == "newest" else order[:limit]] = True
    left = times[chosen]
    begin, end = scheduling.begin, scheduling.end
    if kept == "newest":
        begin = int(left.min())
    else:
        end = int(left.max())
    parts = np.split(chosen, np.cumsum([len(array) for array in arrays])[:-1])
    events = {name: array[part] for name, array, part in zip(_EVENTS, arrays, parts, strict=True)}
    within = replace(scheduling, begin=begin, end=end, kept=kept, dropped=scheduling.dropped + excess, **events)
    return _without_what_is_outside(within, scheduling.exited)


def _without_what_is_outside(scheduling: Scheduling, exited: Array) -> Scheduling:
    begin, end = scheduling.begin, scheduling.end
    spans = scheduling.blocked
    spans = spans[((spans["end"] == OPEN) | (spans["end"] >= begin)) & (spans["begin"] <= end)].copy()
    # Spans that end, or threads woken, after the last event are still open at that time.
    spans["end"][spans["end"] > end] = OPEN
    spans["woken"][spans["woken"] > end] = 0
    lost = (scheduling.losses["time"] >= begin) & (scheduling.losses["time"] <= end)
    outside = scheduling.lost_outside + int(scheduling.losses["count"][~lost].sum())
    threads = scheduling.threads
    gone = np.zeros(len(threads), bool)
    rows = Threads(threads).rows(exited["tid"], exited["time"])
    gone[rows[(rows >= 0) & (exited["time"] < begin)]] = True
    # The last switch of a thread comes after its exit, and a process is identified by its first thread.
    used = np.unique(np.concatenate([scheduling.switches["prev_tid"], scheduling.switches["next_tid"], spans["tid"]]))
    gone &= ~np.isin(threads["tid"], used) & (threads["tid"] != threads["tgid"])
    gone |= threads["begin"] > end
    losses, times = scheduling.losses[lost], scheduling.samples["time"]
    samples = scheduling.samples[(times >= begin) & (times <= end)]
    left = {"blocked": spans, "losses": losses, "threads": threads[~gone], "samples": samples}
    return replace(scheduling, lost_outside=outside, **left)


class Threads:
    """Finds the row in a table of threads for a thread id at a given time."""

    def __init__(self, threads: Array) -> None:
        self._begins = np.unique(threads["begin"])
        keys = _key(threads["tid"], np.searchsorted(self._begins, threads["begin"], side="right"))
        self._order = np.argsort(keys, kind="stable").astype(np.int32)
        self._keys = keys[self._order]
        self._tids = threads["tid"][self._order]

    def rows(self, tids: Array, times: Array) -> Array:
        """Row of the last thread with each of ``tids`` created before each of ``times``; -1: none.

        Times before the first thread with an id are attributed to that thread: clocks of cores differ a little.
        """
        if not len(self._keys):
            return np.full(len(tids), -1, np.int32)
        wanted = _key(tids, np.searchsorted(self._begins, times, side="right"))
        places = np.searchsorted(self._keys, wanted, side="right") - 1
        later = np.minimum(places + 1, len(self._keys) - 1)
        places = np.maximum(places, 0)
        places = np.where(self._tids[places] == tids, places, later)
        return np.where(self._tids[places] == tids, self._order[places], np.int32(-1))


def _key(tids: Array, ranks: Array) -> Array:
    """A key that sorts by thread id, then by time. There are fewer than 2^32 different times."""
    return tids.astype(np.int64) << 32 | ranks.astype(np.int64)
