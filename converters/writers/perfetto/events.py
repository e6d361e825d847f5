"""Kernel events written in full, as FtraceEvent, where the compact form has too few fields.

These are the first switch of each core, wake-ups by a thread other than the one on the core, and the creation, exit
and end of threads. The viewer ends a thread where the kernel frees it (sched_process_free), which is after its last
switch; later events are another thread's with the same id. Fields: protos/perfetto/trace/ftrace/ in google/perfetto.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...model.scheduling import INTERRUPT, NEW, Array
from . import wire
from .context import Context
from .lives import freed

_TIMESTAMP, _PID, _COMMON_FLAGS = 1, 2, 5
_SCHED_SWITCH, _SCHED_WAKING, _SCHED_WAKEUP_NEW = 4, 20, 114
_TASK_NEWTASK, _PROCESS_EXIT, _PROCESS_FREE = 235, 238, 240
_CLONE_THREAD = 0x10000
"""Flag of include/uapi/linux/sched.h: the new thread belongs to the process of its parent."""
HARD_INTERRUPT = 0x08
"""TRACE_FLAG_HARDIRQ from include/linux/trace_events.h."""

_Fields = Callable[[Array], list[wire.Column]]


class Events(NamedTuple):
    """Messages, one piece each, in no particular order."""

    times: Array
    cpus: Array
    pieces: wire.Column


def whole_events(context: Context, openings: Array, wakeups: Array) -> Events:
    """All such events; ``openings`` are the first entries of each core in `tenants`."""
    scheduling = context.scheduling
    new = wakeups["flags"] & NEW > 0
    freeing = freed(scheduling, context.known)
    groups = [
        _encoded(context, openings, np.zeros(len(openings)), _opening(context)),
        _encoded(context, wakeups[~new], wakeups["waker"][~new], _waking(context, _SCHED_WAKING)),
        _encoded(context, wakeups[new], wakeups["waker"][new], _waking(context, _SCHED_WAKEUP_NEW)),
        _encoded(context, scheduling.created, _makers(scheduling.created), _creation(context)),
        _encoded(context, scheduling.exited, scheduling.exited["tid"], _exit(context)),
        _encoded(context, freeing, np.zeros(len(freeing)), _free(context)),
    ]
    times, cpus, pieces = zip(*groups, strict=True)
    return Events(np.concatenate(times), np.concatenate(cpus), wire.stacked(pieces))


def _encoded(context: Context, events: Array, pids: Array, fields: _Fields) -> Events:
    """``pids`` are the threads on the cores."""
    times = context.time(events["time"])
    pids = np.maximum(pids, 0).astype(np.int64)
    encoded = [wire.Column(np.zeros(0, np.uint8), np.zeros(0, np.int64))]
    for part in wire.parts(len(events)):
        head = [wire.numbers(_TIMESTAMP, times[part]), wire.numbers(_PID, pids[part])]
        encoded.append(wire.joined([*head, *fields(events[part])]))
    return Events(events["time"], events["cpu"], wire.stacked(encoded))


def _name(context: Context, field: int, tids: Array, times: Array) -> wire.Column:
    return wire.texts(field, context.names, context.thread_names(tids, times))


def _opening(context: Context) -> _Fields:
    def fields(events: Array) -> list[wire.Column]:
        name = _name(context, 5, events["next_tid"], events["time"])
        tid = wire.numbers(6, context.shown_tids(events["next_tid"], events["cpu"]))
        idle = wire.constant(wire.number(2, 0) + wire.number(4, 0), len(events))
        return [wire.messages(_SCHED_SWITCH, [idle, name, tid, wire.numbers(7, events["next_prio"])])]

    return fields


def _waking(context: Context, kind: int) -> _Fields:
    def fields(events: Array) -> list[wire.Column]:
        inner = [
            _name(context, 1, events["tid"], events["time"]),
            wire.numbers(2, events["tid"]),
            wire.numbers(3, events["prio"]),
            wire.constant(wire.number(4, 1), len(events)),
            wire.numbers(5, events["target_cpu"]),
        ]
        interrupts = wire.constant(wire.number(_COMMON_FLAGS, HARD_INTERRUPT), len(events))
        return [wire.messages(kind, inner), wire.where(events["flags"] & INTERRUPT > 0, interrupts)]

    return fields


def _makers(created: Array) -> Array:
    """The creator of each thread; if unknown, the viewer is given the first thread of its process."""
    unknown = (created["parent"] <= 0) & (created["tid"] != created["tgid"])
    return np.where(unknown, created["tgid"], created["parent"])


def _creation(context: Context) -> _Fields:
    def fields(events: Array) -> list[wire.Column]:
        name = _name(context, 2, events["tid"], events["time"])
        flags = wire.numbers(3, (events["tid"] != events["tgid"]) * _CLONE_THREAD)
        return [wire.messages(_TASK_NEWTASK, [wire.numbers(1, events["tid"]), name, flags])]

    return fields


def _exit(context: Context) -> _Fields:
    def fields(events: Array) -> list[wire.Column]:
        name = _name(context, 1, events["tid"], events["time"])
        inner = [name, wire.numbers(2, events["tid"]), wire.numbers(3, events["tgid"])]
        return [wire.messages(_PROCESS_EXIT, inner)]

    return fields


def _free(context: Context) -> _Fields:
    def fields(events: Array) -> list[wire.Column]:
        name = _name(context, 1, events["tid"], events["time"] - 1)
        return [wire.messages(_PROCESS_FREE, [name, wire.numbers(2, events["tid"])])]

    return fields
