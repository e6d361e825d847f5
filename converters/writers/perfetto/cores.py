"""The events of each core: bundles of kernel events, most of them in the compact form.

Fields are those of FtraceEventBundle and FtraceEvent (protos/perfetto/trace/ftrace/ of google/perfetto), the rules
those of its importer (ftrace_sched_event_tracker.cc, thread_state_tracker.cc): a compact switch does not name the
previous thread, which is that of the switch before; each core therefore begins with a full switch. A compact wake-up
does not name the waker either, which is the thread on the core.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ...model.cores import tenants
from ...model.scheduling import INTERRUPT, NEW, Array
from . import wire
from .context import CORES, Context, packet
from .events import HARD_INTERRUPT, Events, whole_events

_FTRACE_EVENTS = 1
_CPU, _EVENT, _LOST_EVENTS, _COMPACT = 1, 2, 3, 4
_SWITCH_TIME, _SWITCH_STATE, _SWITCH_TID, _SWITCH_PRIO, _INTERN, _SWITCH_NAME = range(1, 7)
_WAKING_TIME, _WAKING_TID, _WAKING_CPU, _WAKING_PRIO, _WAKING_NAME, _WAKING_FLAGS = range(7, 13)
_SIZE = 1 << 13
"""Events in a bundle; more if they have the same time."""
_FOREVER = np.iinfo(np.int64).max


class _Core(NamedTuple):
    """The data of one core, each sorted by time."""

    cpu: int
    switches: Array
    """Switches without the first entry of `tenants`, which is not a switch."""
    wakeups: Array
    """Wake-ups that can have the compact form."""
    events: Array
    """Indices of the full events."""
    losses: Array


def bundles(context: Context) -> Iterator[bytes]:
    """Packets with the events of all cores, by time."""
    scheduling = context.scheduling
    switches = tenants(scheduling)
    openings = np.diff(switches["cpu"], prepend=-1) != 0 if len(switches) else np.zeros(0, bool)
    packable = _wakers_have_their_core(switches, scheduling.wakeups) & (scheduling.wakeups["flags"] & NEW == 0)
    events = whole_events(context, switches[openings], scheduling.wakeups[~packable])
    switches, wakeups = switches[~openings], scheduling.wakeups[packable]
    arrays = (switches, wakeups, scheduling.losses)
    pieces = []
    for cpu in np.unique(np.concatenate([*(array["cpu"] for array in arrays), events.cpus])):
        mine, woken, lost = (array[array["cpu"] == cpu] for array in arrays)
        places = np.flatnonzero(events.cpus == cpu)
        places = places[np.argsort(events.times[places], kind="stable")]
        core = _Core(int(cpu), mine, woken, places, lost)
        times = np.concatenate([mine["time"], woken["time"], events.times[places]])
        pieces += [(begin, int(cpu), end, core) for begin, end in _parts(np.sort(times), lost["time"])]
    for begin, _, end, core in sorted(pieces, key=lambda piece: piece[:2]):
        yield _bundle(context, core, events, begin, end)


def _wakers_have_their_core(switches: Array, wakeups: Array) -> Array:
    """True for wake-ups that come from the thread on the same core, according to the switches before them."""
    found = np.zeros(len(wakeups), bool)
    for cpu in np.unique(wakeups["cpu"]):
        mine = switches[switches["cpu"] == cpu]
        places = np.flatnonzero(wakeups["cpu"] == cpu)
        if len(mine):
            at = np.searchsorted(mine["time"], wakeups["time"][places], side="right") - 1
            found[places] = (at >= 0) & (mine["next_tid"][at] == wakeups["waker"][places])
    return found


def _parts(times: Array, losses: Array) -> list[tuple[int, int]]:
    """(begin, end) of bundles. A new one begins where events are lost, because a bundle reports losses before it."""
    begins = [int(time) for time in np.unique(np.concatenate([times[::_SIZE], losses]))]
    return list(zip(begins, [*begins[1:], _FOREVER], strict=True))


def _bundle(context: Context, core: _Core, events: Events, begin: int, end: int) -> bytes:
    """The bundle from ``begin`` to ``end``, exclusive."""

    def part(times: Array) -> slice:
        return slice(*np.searchsorted(times, [begin, end]))

    switches = core.switches[part(core.switches["time"])]
    wakeups = core.wakeups[part(core.wakeups["time"])]
    whole = core.events[part(events.times[core.events])]
    fields = [wire.number(_CPU, core.cpu)]
    if (core.losses["time"] == begin).any():
        fields.append(wire.number(_LOST_EVENTS, 1))
    fields.append(wire.messages(_EVENT, [wire.picked(events.pieces, whole)]).bytes())
    if len(switches) or len(wakeups):
        fields.append(wire.text(_COMPACT, _compact(context, switches, wakeups)))
    return packet(CORES, wire.text(_FTRACE_EVENTS, b"".join(fields)))


def _compact(context: Context, switches: Array, wakeups: Array) -> bytes:
    tids = np.concatenate([switches["next_tid"], wakeups["tid"]])
    times = np.concatenate([switches["time"], wakeups["time"]])
    table, names = np.unique(context.thread_names(tids, times), return_inverse=True)
    fields = [
        wire.packed(_SWITCH_TIME, _deltas(context, switches)),
        wire.packed(_SWITCH_STATE, switches["prev_state"]),
        wire.packed(_SWITCH_TID, context.shown_tids(switches["next_tid"], switches["cpu"])),
        wire.packed(_SWITCH_PRIO, switches["next_prio"]),
        *(wire.text(_INTERN, context.names[name]) for name in table),
        wire.packed(_SWITCH_NAME, names[: len(switches)]),
        wire.packed(_WAKING_TIME, _deltas(context, wakeups)),
        wire.packed(_WAKING_TID, wakeups["tid"]),
        wire.packed(_WAKING_CPU, wakeups["target_cpu"]),
        wire.packed(_WAKING_PRIO, wakeups["prio"]),
        wire.packed(_WAKING_NAME, names[len(switches) :]),
        wire.packed(_WAKING_FLAGS, (wakeups["flags"] & INTERRUPT > 0) * HARD_INTERRUPT),
    ]
    return b"".join(fields)


def _deltas(context: Context, events: Array) -> Array:
    """The first time, then the difference of each time to the one before."""
    times = context.time(events["time"])
    return np.diff(times, prepend=0)
