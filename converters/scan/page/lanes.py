"""Packs the scheduler's events for the page's lanes: what each thread did, and when.

The block is zlib data of, all little endian:

    u32             size in bytes of the JSON that follows, padded with spaces to a multiple of 8 less 4
    JSON            see `_about`
    planes          the columns of ``about.columns``, one after the other: u8 and u32; of u32 first all lowest bytes,
                    then all second ones, and so on, which packs better

Times are in units of ``about.unit`` ns since the first event. A thread's phases follow each other without a gap, so
that only the time since the one before is written: the first one's is since the first event.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...base.text import printable
from ...facts.wait_functions import COLLECTIVE
from ...facts.wait_kinds import (
    CHILD,
    EVENTS,
    HALTED,
    HELD,
    LOCK,
    PEER,
    SLEEP,
    THREAD,
    WORK,
)
from ...facts.waits import Waits
from ...model import Frame, Stack
from ...model.phases import NOBODY, STATES, phases
from ...model.scheduling import NO_STACK, Array, Scheduling, Threads, in_order
from ...model.states import BLOCKED, IDLE, RUNNABLE_STATES, RUNNING, STOPPED, TRACED
from ...rules.place_kinds import kind_of_wait
from ...rules.verdict import DATABASE_LOCK, DRIVER, FILE_LOCK, GIL, GPU, IO, MEMORY, SLOW_LOADER
from .groups import Groups

NOT_KNOWN = "not known"
KINDS = (
    "running",
    "runnable",
    LOCK,
    GIL,
    DATABASE_LOCK,
    FILE_LOCK,
    IO,
    MEMORY,
    DRIVER,
    GPU,
    COLLECTIVE,
    SLOW_LOADER,
    PEER,
    THREAD,
    CHILD,
    EVENTS,
    SLEEP,
    HALTED,
    WORK,
    HELD,
    NOT_KNOWN,
)
"""Names of what a thread does in a phase, by the number in the block."""
_RUNNING, _RUNNABLE, _NOT_KNOWN = 0, 1, len(KINDS) - 1
BINS = 800
"""Parts of the time for which the states of all threads together are told."""
MOST = 6_000_000
"""Phases of a page; of more, the newest ones are shown."""
_LEVEL = 5


def pack(scheduling: Scheduling, groups: Groups) -> bytes:
    """The block of all traced threads that did something."""
    events = in_order(scheduling)
    found = phases(events)
    dropped = max(len(found) - MOST, 0)
    begin = events.begin
    if dropped:
        begin = int(np.partition(found["end"], dropped)[dropped])
        found = found[found["end"] > begin].copy()
        np.maximum(found["begin"], begin, out=found["begin"])
    unit = max(-(-(events.end - begin) // (2**32 - 1)), 1)
    kinds = _kinds(events, found)
    rows, first, counts = np.unique(found["thread"], return_index=True, return_counts=True)
    begins = (found["begin"] - begin) // unit
    since = np.diff(begins, prepend=0)
    since[first] = begins[first]
    last = first + counts - 1
    samples, owners = _samples(events, begin, rows)
    used, stacks = np.unique(np.concatenate([found["stack"], samples["stack"]]), return_inverse=True)
    known = used[used != NO_STACK]
    names, offsets, frames = _frames([events.stacks[i] for i in known])
    shift = 0 if len(used) != len(known) else 1
    stacks = (stacks + shift).astype(np.uint32)
    columns: list[tuple[str, Array]] = [
        ("counts", counts),
        ("ends", (found["end"][last] - begin) // unit),
        ("since", since),
        ("kinds", kinds),
        ("stacks", stacks[: len(found)]),
        ("wakers", np.where(found["waker"] == NOBODY, 0, found["waker"])),
        ("sampleTimes", (samples["time"] - begin) // unit),
        ("sampleThreads", owners),
        ("sampleStacks", stacks[len(found) :]),
        ("stackBegins", offsets),
        ("stackFrames", frames),
        ("all", _overview(found, kinds, begin, events.end).reshape(-1)),
    ]
    about = {
        **_about(events, rows, groups, names),
        "unit": unit,
        "begin": begin,
        "dropped": dropped,
        "columns": [[name, len(column), "u8" if name == "kinds" else "u32"] for name, column in columns],
    }
    return _packed(about, columns)


def _packed(about: Mapping[str, Any], columns: list[tuple[str, Array]]) -> bytes:
    head = json.dumps(about, separators=(",", ":")).encode()
    head += b" " * (-(4 + len(head)) % 8)
    packer = zlib.compressobj(_LEVEL)
    parts = [packer.compress(len(head).to_bytes(4, "little") + head)]
    for name, column in columns:
        if name == "kinds":
            parts.append(packer.compress(column.astype(np.uint8).tobytes()))
            continue
        planes = column.astype("<u4").view(np.uint8).reshape(-1, 4).T
        parts.append(packer.compress(np.ascontiguousarray(planes).tobytes()))
    return b"".join([*parts, packer.flush()])


def _about(events: Scheduling, rows: Array, groups: Groups, frames: list[str]) -> dict[str, Any]:
    threads = []
    for row in rows:
        thread = events.threads[row]
        pid = int(thread["tgid"])
        process = groups.names.get(pid, events.names[thread["process"]])
        name = printable(events.names[thread["name"]])
        threads.append([pid, int(thread["tid"]), name, printable(process), groups.of(pid)])
    return {
        "end": events.end,
        "kinds": KINDS,
        "threads": threads,
        "frames": frames,
        "ranks": groups.ranks,
        "bins": BINS,
        "lost": int(events.losses["count"].sum()) + events.lost_outside,
        "kept": events.kept if events.dropped else "",
        "events": events.count(),
        "older": events.dropped,
    }


def _kinds(events: Scheduling, found: Array) -> Array:
    """Index of `KINDS` of each phase."""
    by_state = np.full(len(STATES), _NOT_KNOWN, np.uint8)
    by_state[STATES.index(RUNNING)] = _RUNNING
    for state in RUNNABLE_STATES:
        by_state[STATES.index(state)] = _RUNNABLE
    made: Array = by_state[found["state"]]
    waits = Waits()
    for state in BLOCKED:
        here = np.flatnonzero(found["state"] == STATES.index(state))
        if not len(here):
            continue
        stacks, which = np.unique(found["stack"][here], return_inverse=True)
        kinds = [_kind(waits, events.stacks[i] if i != NO_STACK else (), state) for i in stacks]
        made[here] = np.array(kinds, np.uint8)[which]
    return made


def _kind(waits: Waits, stack: Stack, state: str) -> int:
    kind = kind_of_wait(waits.of(stack, state), state)
    is_guess = not stack and state not in (IDLE, STOPPED, TRACED)
    return KINDS.index(NOT_KNOWN if is_guess or kind not in KINDS else kind)


def _samples(events: Scheduling, begin: int, rows: Array) -> tuple[Array, Array]:
    """Samples of what threads ran, and the index in ``rows`` of each one's thread."""
    samples = events.samples[events.samples["time"] >= begin]
    owners = Threads(events.threads).rows(samples["tid"], samples["time"])
    kept = np.isin(owners, rows)
    return samples[kept], np.searchsorted(rows, owners[kept])


def _frames(stacks: list[Stack]) -> tuple[list[str], Array, Array]:
    """Names, where each stack begins in the third one, and indices of names, outermost first."""
    # By identity: stacks share their frames, and there may be millions of them.
    frames: dict[int, Frame] = {}
    for stack in stacks:
        frames.update(zip(map(id, stack), stack, strict=True))
    names: dict[str, int] = {}
    known = {identity: names.setdefault(_name(frame), len(names)) for identity, frame in frames.items()}
    flat = [known[identity] for stack in stacks for identity in map(id, stack)]
    offsets = np.cumsum([0, *map(len, stacks)])
    return list(names), offsets, np.array(flat, np.uint32)


def _name(frame: Frame) -> str:
    module = frame.module.path.rpartition("/")[2] if frame.module and frame.kind != "kernel" else ""
    return printable(f"{frame.name} │ {module}" if module else frame.name)


def _overview(found: Array, kinds: Array, begin: int, end: int) -> Array:
    """Thousandths of threads that run, and that are runnable, on average in each part of the whole time."""
    edges = np.linspace(begin, max(end, begin + 1), BINS + 1)
    width = edges[1] - edges[0]
    made = np.zeros((2, BINS))
    for kind in (_RUNNING, _RUNNABLE):
        here = found[kinds == kind]
        until = _time_until(np.sort(here["begin"]), edges) - _time_until(np.sort(here["end"]), edges)
        made[kind] = 1000 * np.diff(until) / width
    return np.maximum(made, 0).astype(np.uint32)


def _time_until(times: Array, edges: Array) -> Array:
    """Sum of what has passed since each of ``times`` (sorted) at each of ``edges``."""
    before = np.searchsorted(times, edges)
    sums = np.concatenate([[0.0], np.cumsum(times.astype(np.float64))])
    return np.asarray(before * edges - sums[before])
