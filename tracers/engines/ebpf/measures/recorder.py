"""Reads the rings of scheduler events, keeps the wanted ones in blocks of memory, and makes a `Scheduling` of them."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np

from .....converters.model import scheduling as model
from .....converters.model.scheduling import Array, Scheduling, Threads, in_order, keep
from .....converters.model.states import PREEMPTED_BIT
from ....kernel.records import BLOCKED, NEW, ON_CPU, PREEMPTED, Origin, ThreadRecord
from ...rows import Row
from .protocol import Ended, Recorded
from .recorded_samples import SAMPLE_EVENT, alike, mixed, sampled_in

EVENT = np.dtype(
    [
        ("time", "<i8"),
        ("out", "<i8"),
        ("woken", "<i8"),
        ("ustack", "<u8"),
        ("kstack", "<u8"),
        ("tid", "<i4"),
        ("other", "<i4"),
        ("what", "<u4"),
        ("lost", "<u4"),
        ("prio", "<i2"),
        ("cpu", "<u2"),
        ("left", "u1"),
        ("wait", "u1"),
        ("kind", "u1"),
        ("first", "u1"),
    ]
)
"""struct sched_event of bpf/include/records.h."""

RING = np.dtype([(name, "<u8") for name in ("head", "tail", "lost", "pending", "first", "slots", "_1", "_2")])
"""struct event_ring."""

SWITCHED, WOKEN, MADE, SAMPLED = range(4)
"""enum sched_event_kind."""

BITS = np.array([PREEMPTED_BIT, 0x01, 0x02, 0x04, 0x08, 0x80, 0x40, 0, 0, 0x10], np.uint16)
"""SWITCH's bits for an event's ``left`` and ``wait``: enum wait_state, RUNNING, LEFT_FOR_EVER."""

_BLOCK = 1 << 16
_FOREVER = np.iinfo(np.int64).max

_WAIT = np.dtype(
    [
        ("begin", "<i8"),
        ("woken", "<i8"),
        ("end", "<i8"),
        ("id", "<u8"),
        ("life", "<u4"),
        ("tid", "<i4"),
        ("state", "<u2"),
    ]
)
"""Layout like model.BLOCKED, with the id of a place, and the life of the thread."""


class Recorder:
    """Keeps about ``limit`` of the events read, the newest or the first; they are cut to ``limit`` in the end."""

    def __init__(self, events: Any, rings: Any, limit: int, kept: Literal["newest", "first"]) -> None:
        """``events`` and ``rings``: buffers with `EVENT` and `RING`."""
        self._events = np.frombuffer(events, EVENT)
        self._rings = np.frombuffer(rings, RING)
        self._tails = self._rings["tail"].copy()
        self._limit, self._kept = limit, kept
        self._blocks: deque[Array] = deque()
        """Each holds all events from some reads of the rings: they are newer than the events of earlier blocks."""
        self._fresh: list[Array] = []
        """Events of the next block."""
        self._fresh_count = self._stored = 0
        self._dropped = 0
        self._lost_outside = 0
        self._after, self._before = 0, _FOREVER
        """No event between these two times is dropped."""
        self._late_ends: list[Array] = []
        """Events that end waits begun before `_before`."""
        self.lost = self._lost_before = 0
        """Numbers of lost events: in the present interval, and before it."""
        self._pending: Array = np.zeros(0, model.LOSS)
        self._reading = threading.Lock()

    def take(self) -> None:
        """Reads the new events, and makes room for more. While a boundary passes, two threads do."""
        with self._reading:
            self._take()

    def _take(self) -> None:
        heads = self._rings["head"].copy()
        full = self._kept == "first" and self._stored >= self._limit
        for core in np.flatnonzero(heads != self._tails):
            first, slots = int(self._rings["first"][core]), int(self._rings["slots"][core])
            tail, count = int(self._tails[core]), int(heads[core] - self._tails[core])
            place = tail & (slots - 1)
            upto = min(place + count, slots)
            for part in (
                self._events[first + place : first + upto],
                self._events[first : first + count - (upto - place)],
            ):
                if full and len(part):
                    self._leave_out(part)
                else:
                    self._add(part)
            self._rings["tail"][core] = self._tails[core] = heads[core]
        self.lost = int(self._rings["lost"].sum()) - self._lost_before
        if self._fresh_count >= _BLOCK:
            self._seal()

    def close(self) -> None:
        """Releases the buffers: nothing is written any more."""
        lost = np.flatnonzero(self._rings["pending"])
        self._pending = np.zeros(len(lost), model.LOSS)
        self._pending["cpu"], self._pending["count"] = lost, self._rings["pending"][lost]
        self._events, self._rings = np.zeros(0, EVENT), np.zeros(0, RING)

    def within(self, begin: int, end: int) -> None:
        """Forgets the events that are not of an interval, as if they had not been read."""
        if self._fresh:
            self._seal()
        parts = [block[(block["time"] >= begin) & (block["time"] < end)] for block in self._blocks]
        self._blocks = deque(part for part in parts if len(part))
        self._stored = sum(map(len, self._blocks))

    def begin(self, at: int) -> None:
        """Begins an interval: what came before, and what is known of it, is forgotten."""
        self.within(at, _FOREVER)
        self._after, self._before = 0, _FOREVER
        self._dropped = self._lost_outside = 0
        self._late_ends = []
        self._lost_before = int(self._rings["lost"].sum())
        self.lost = 0

    def _add(self, events: Array) -> None:
        if len(events):
            self._fresh.append(events.copy())
            self._fresh_count += len(events)
            self._stored += len(events)

    def _seal(self) -> None:
        """Ends a block; older blocks beyond the limit are dropped."""
        self._blocks.append(np.concatenate(self._fresh))
        self._fresh, self._fresh_count = [], 0
        while self._kept == "newest" and self._stored - len(self._blocks[0]) >= self._limit:
            block = self._blocks.popleft()
            self._stored -= len(block)
            self._count_dropped(block)
            self._after = max(self._after, int(block["time"].max()))

    def _leave_out(self, events: Array) -> None:
        self._count_dropped(events)
        self._before = min(self._before, int(events["time"].min()))
        ends = (events["kind"] == SWITCHED) & (events["out"] > 0) & (events["out"] < self._before)
        if ends.any():
            self._late_ends.append(events[ends])

    def _count_dropped(self, events: Array) -> None:
        kinds = events["kind"]
        self._dropped += len(events) + int((kinds == MADE).sum()) - int((kinds == SAMPLED).sum())
        self._lost_outside += int(events["lost"].sum())

    def finish(self, ended: Ended, exits: bytes, seeded: int, *, every_switch: bool) -> Recorded:
        """The events left after the cut. ``exits``: rows of `model.EXIT`. ``seeded``: the threads had been listed by
        then, later ones are new. All times here are CLOCK_MONOTONIC."""
        parts = _Parts(seeded, ended.began)
        if self._fresh:
            self._seal()
        while self._blocks:
            parts.add(self._within(self._blocks.popleft()))
        for events in self._late_ends:
            parts.add_waits(events[events["out"] < self._before])
        began = ended.began
        exited = np.frombuffer(exits, model.EXIT).copy()
        times = exited["time"]
        inside = (times > self._after) & (times < self._before)
        self._dropped += len(exited) - int(inside.sum())
        exited = exited[inside]
        exited["time"] -= began
        created = parts.array("created", model.CREATION)
        lives, threads = _lives(ended, created, seeded)
        numbers = np.array([record.thread.key.tgid for record in lives], np.int32)
        waits, where = _waits(parts.array("waits", _WAIT), parts.origins, threads, numbers, ended)
        samples = sampled_in(parts.array("samples", SAMPLE_EVENT), threads, numbers, where, ended)
        still = np.array(list(_open(ended, where, seeded)), model.BLOCKED)
        switches, wakeups = parts.array("switches", model.SWITCH), parts.array("wakeups", model.WAKE_UP)
        end = max(ended.stopped - began, int(switches["time"].max(initial=0)), int(wakeups["time"].max(initial=0)))
        self._pending["time"] = end
        before, boot, after = map(
            time.clock_gettime_ns, (time.CLOCK_MONOTONIC, time.CLOCK_BOOTTIME, time.CLOCK_MONOTONIC)
        )
        boottime = max(boot - (before + after) // 2, 0) + began
        found = Scheduling(
            min(end, self._before - 1 - began),
            max(0, self._after + 1 - began),
            switches,
            wakeups,
            created,
            exited,
            threads,
            np.concatenate([waits, still]),
            np.concatenate([parts.array("losses", model.LOSS), self._pending]),
            every_switch=every_switch,
            boottime=boottime,
            monotonic=began,
            kernel=os.uname().release,
            dropped=self._dropped,
            lost_outside=self._lost_outside,
            samples=samples,
        )
        found = _cut(keep(in_order(found), self._limit, self._kept))
        return Recorded(found, lives, where)

    def _within(self, block: Array) -> Array:
        inside = (block["time"] > self._after) & (block["time"] < self._before)
        if inside.all():
            return block
        self._count_dropped(block[~inside])
        return block[inside]


def _cut(found: Scheduling) -> Scheduling:
    """Resets ends and wake-ups of waits that come after the last event."""
    found.blocked["end"][found.blocked["end"] > found.end] = model.OPEN
    found.blocked["woken"][found.blocked["woken"] > found.end] = 0
    return found


class _Parts:
    """Arrays of the model, block by block. Their times are ns since ``began``."""

    def __init__(self, seeded: int, began: int) -> None:
        self._seeded, self._began = seeded, began
        self._parts: dict[str, list[Array]] = {}
        self.origins: dict[int, tuple[int, int]] = {}
        """User stack and kernel stack, by a hash of them."""

    def array(self, name: str, dtype: np.dtype[Any]) -> Array:
        """All rows of one kind."""
        parts = self._parts.pop(name, [])
        return np.concatenate(parts) if parts else np.zeros(0, dtype)

    def add(self, block: Array) -> None:
        kinds = block["kind"]
        self._add_switches(block[kinds == SWITCHED])
        self._add_wakeups(block[(kinds == WOKEN) | (kinds == MADE)])
        made = block[kinds == MADE]
        self._new("created", model.CREATION, made, time=made["out"] - self._began, cpu=made["cpu"], tid=made["tid"],
                  tgid=made["what"], parent=made["other"])  # fmt: skip
        sampled = block[kinds == SAMPLED]
        self._new("samples", SAMPLE_EVENT, sampled, time=sampled["time"] - self._began, tid=sampled["tid"],
                  life=sampled["what"], ustack=sampled["ustack"], kstack=sampled["kstack"])  # fmt: skip
        lost = block[block["lost"] > 0]
        self._new("losses", model.LOSS, lost, time=lost["time"] - self._began, count=lost["lost"], cpu=lost["cpu"])

    def _new(self, name: str, dtype: np.dtype[Any], events: Array, **columns: Array) -> None:
        rows = np.zeros(len(events), dtype)
        for column, values in columns.items():
            rows[column] = values
        self._parts.setdefault(name, []).append(rows)

    def _add_switches(self, events: Array) -> None:
        self._new("switches", model.SWITCH, events, time=events["time"] - self._began, cpu=events["cpu"],
                  prev_state=BITS[events["left"]], prev_tid=events["other"], next_tid=events["tid"],
                  next_prio=events["prio"])  # fmt: skip
        self.add_waits(events[events["out"] > 0])

    def add_waits(self, events: Array) -> None:
        """Adds the waits that these switches end."""
        began = self._began
        # A wait of a thread that existed at the start began earlier.
        before = (events["first"] > 0) & (events["out"] <= self._seeded)
        # One that began in an earlier interval began before this one, too.
        woken = np.where(events["woken"] > 0, np.maximum(events["woken"] - began, 1), 0)
        begin = np.where(before, -1, np.maximum(events["out"] - began, -1))
        ids = self._numbered(events["ustack"], events["kstack"])
        # A thread that was woken before it left did not wait.
        waited = before | (events["woken"] != events["out"])
        columns = {"begin": begin, "woken": woken, "end": events["time"] - began, "tid": events["tid"],
                   "life": events["what"], "state": BITS[events["wait"]], "id": ids}  # fmt: skip
        self._new("waits", _WAIT, events[waited], **{name: values[waited] for name, values in columns.items()})

    def _numbered(self, ustack: Array, kstack: Array) -> Array:
        """Hashes of places; as with stacks, an equal hash is taken as the same place."""
        hashes: Array = ustack * np.uint64(0x9E3779B97F4A7C15) ^ kstack * np.uint64(0xC2B2AE3D27D4EB4F)
        distinct, places = np.unique(hashes, return_index=True)
        for number, place in zip(distinct.tolist(), places.tolist(), strict=True):
            if number not in self.origins:
                self.origins[number] = int(ustack[place]), int(kstack[place])
        return hashes

    def _add_wakeups(self, events: Array) -> None:
        new = events["kind"] == MADE
        flags = np.where(new, model.NEW, np.where(events["first"] > 0, model.INTERRUPT, 0))
        self._new("wakeups", model.WAKE_UP, events, time=events["time"] - self._began,
                  cpu=np.where(new, events["cpu"], events["out"]), target_cpu=events["woken"], tid=events["tid"],
                  waker=events["other"], prio=events["prio"], flags=flags)  # fmt: skip


def _lives(ended: Ended, created: Array, seeded: int) -> tuple[list[ThreadRecord], Array]:
    """A row for each life of each thread id; ``name`` is the index of its record."""
    lives = sorted(ended.threads, key=lambda record: (record.thread.key.tid, record.thread.start))
    made = set(zip(created["tid"].tolist(), created["time"].tolist(), strict=True))
    threads = np.zeros(len(lives), model.THREAD)
    before = 0
    for i, record in enumerate(lives):
        key, start = record.thread.key, record.thread.start - ended.began
        # When the first life of an id began is unknown, unless it was created here. A command that is started for
        # the trace joins it later than the others, at its exec.
        late = record.thread.start > seeded
        begin = start if late or key.tid == before or (key.tid, start) in made else 0
        threads[i] = key.tid, ended.pids.get(key.tgid, key.tgid), begin, i, 0
        before = key.tid
    return lives, threads


def _waits(
    waits: Array, origins: dict[int, tuple[int, int]], threads: Array, numbers: Array, ended: Ended
) -> tuple[Array, list[Row]]:
    """Waits of traced threads in the form of the model; and their places, by the index of the stack.

    ``numbers``: of each thread's process."""
    rows = Threads(threads).rows(waits["tid"], waits["begin"])
    # The others are from our own helpers, or from threads whose last record was lost, which is counted elsewhere.
    waits, rows = waits[rows >= 0], rows[rows >= 0]
    spans = np.zeros(len(waits), model.BLOCKED)
    for name in ("begin", "woken", "end", "tid", "state"):
        spans[name] = waits[name]
    tgids = numbers[rows]
    lives = alike(waits["life"], ended)
    _, places, which = np.unique(mixed(waits["id"], tgids, lives), return_index=True, return_inverse=True)
    where: list[Row] = []
    numbers = np.full(len(places), model.NO_STACK, np.int32)
    for i, place in enumerate(places.tolist()):
        ustack, kstack = origins[int(waits["id"][place])]
        if ustack or kstack:
            numbers[i] = len(where)
            where.append(Row(Origin(ustack, kstack, 0, 0, int(tgids[place]), int(lives[place]), 1), "", ()))
    spans["stack"] = numbers[which]
    return spans, where


def _open(ended: Ended, where: list[Row], seeded: int) -> Iterable[tuple[int, int, int, int, int, int]]:
    """Waits that had not ended when the trace did; their places are added to ``where``."""
    for record in ended.threads:
        thread = record.thread
        if record.exited or thread.phase == ON_CPU or not thread.out or thread.key.state in (PREEMPTED, NEW):
            continue
        woken = thread.woken if thread.phase != BLOCKED else 0
        if woken == thread.out:
            continue
        stack = model.NO_STACK
        if thread.key.ustack or thread.key.kstack:
            stack = len(where)
            where.append(Row(thread.key, "", (), True))
        # A thread that waited when the trace began has waited for longer.
        before = thread.out == thread.start and thread.out <= seeded
        begin = -1 if before else thread.out - ended.began
        state = int(BITS[thread.key.state])
        yield begin, woken and woken - ended.began, model.OPEN, thread.key.tid, stack, state
