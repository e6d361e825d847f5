"""The threads that ran on each core, without gaps: unrecorded and lost times get a thread of their own.

A recorder that follows only some threads sees a core switch from one of them to an unknown thread, and later from an
unknown one to one of them; events may be lost, too. It is then unknown which thread was on the core in between. Viewers
take the thread that was last switched to, which is wrong. Here it is `OTHERS` or `LOST`.
"""

from __future__ import annotations

import numpy as np

from .scheduling import Array, Scheduling, Threads
from .states import UNKNOWN_BIT

OTHERS, LOST = -1, -2
"""Ids of threads that are not traced, and of threads that are unknown because events were lost."""

_OPENING, _LEAVING, _ARRIVING, _SWITCH, _CLOSING, _SLOTS = range(6)
"""Order of the entries made for one switch."""


def tenants(scheduling: Scheduling) -> Array:
    """Switches (`SWITCH`) by core, then by time; the ``prev_tid`` of each is the ``next_tid`` of the one before it.

    The first entry of each core is not a switch: it gives the thread on the core at ``scheduling.begin`` as both
    ``prev_tid`` and ``next_tid``. A traced thread whose time on a core is unknown leaves it at once, with the state
    `UNKNOWN_BIT`. `in_order` must have sorted the events.
    """
    switches = scheduling.switches
    switches = switches[np.argsort(switches["cpu"], kind="stable")]
    if not len(switches):
        return switches
    first = np.flatnonzero(np.diff(switches["cpu"], prepend=-1))
    last = np.append(first[1:], len(switches)) - 1
    lost, lost_after = _losses(scheduling, switches, first, last)
    prev_traced = _traced(scheduling, switches["prev_tid"], switches["time"])
    next_traced = _traced(scheduling, switches["next_tid"], switches["time"])
    # The thread on the core before each switch, according to the previous switch.
    holder, holder_traced = np.roll(switches["next_tid"], 1), np.roll(next_traced, 1)
    holder[first], holder_traced[first] = switches["prev_tid"][first], prev_traced[first]
    broken = (holder != switches["prev_tid"]) | lost
    if not scheduling.every_switch:
        # Between two unrecorded switches any thread may have run.
        broken |= ~holder_traced
    somebody = np.where(lost, LOST, OTHERS).astype(np.int32)
    # Its tracing began while it ran, after the core's last event.
    since, previous = _taken_in(scheduling, switches), np.roll(switches["time"], 1)
    previous[first] = scheduling.begin
    late = prev_traced & (since > previous) & ~lost
    opens = np.zeros(len(switches), bool)
    opens[first] = True

    inner = broken.copy()
    inner[first] = False
    leaving = np.flatnonzero(inner & holder_traced)
    arriving = np.flatnonzero(broken & prev_traced | late & opens)
    changed = switches.copy()
    changed["prev_tid"] = np.where(broken & ~prev_traced, somebody, switches["prev_tid"])
    replaced = np.flatnonzero(inner & ~holder_traced)
    changed["next_tid"][replaced - 1] = somebody[replaced]
    unknown = ~next_traced[last] & (lost_after | (not scheduling.every_switch))
    changed["next_tid"][last[unknown]] = np.where(lost_after[unknown], LOST, OTHERS)
    closing = last[lost_after & next_traced[last]]

    openings = _changes(switches[first], np.where((broken | late)[first], somebody[first], switches["prev_tid"][first]))
    openings["time"], openings["prev_tid"] = scheduling.begin, openings["next_tid"]
    arrivals = _changes(switches[arriving], switches["prev_tid"][arriving])
    arrivals["prev_tid"] = somebody[arriving]
    arrivals["time"] = np.where(late[arriving], since[arriving], arrivals["time"])
    parts = [
        (openings, first, _OPENING),
        (_left(switches[leaving - 1], somebody[leaving]), leaving, _LEAVING),
        (arrivals, arriving, _ARRIVING),
        (changed, np.arange(len(changed)), _SWITCH),
        (_left(switches[closing], LOST), closing, _CLOSING),
    ]
    places = np.concatenate([where * _SLOTS + slot for _, where, slot in parts])
    everything: Array = np.concatenate([part for part, _, _ in parts])[np.argsort(places)]
    return everything


def _changes(switches: Array, next_tid: Array | int) -> Array:
    """Copies of ``switches`` with another ``next_tid``."""
    changed: Array = switches.copy()
    changed["next_tid"], changed["prev_state"], changed["next_prio"] = next_tid, 0, 0
    return changed


def _left(switches: Array, next_tid: Array | int) -> Array:
    """Switches after which the thread that was switched to leaves the core at the same time."""
    changed = _changes(switches, next_tid)
    changed["prev_tid"], changed["prev_state"] = switches["next_tid"], UNKNOWN_BIT
    return changed


def _traced(scheduling: Scheduling, tids: Array, times: Array) -> Array:
    """Threads whose switches are all recorded. Excludes the idle task, which does no harm."""
    if scheduling.every_switch:
        return np.asarray(tids > 0)
    return np.asarray((tids > 0) & (Threads(scheduling.threads).rows(tids, times) >= 0))


def _taken_in(scheduling: Scheduling, switches: Array) -> Array:
    """Times at which tracing of the leaving threads began, if they were running then; -1: earlier, or they were
    created."""
    threads, created = scheduling.threads, scheduling.created
    rows = Threads(threads).rows(switches["prev_tid"], switches["time"])
    if not len(threads):
        return np.full(len(switches), -1, np.int64)
    begins = np.where(rows >= 0, threads["begin"][rows], -1)
    new = Threads(threads).rows(created["tid"], created["time"])
    begins[np.isin(rows, new[threads["begin"][new] == created["time"]])] = -1
    return np.where((begins > scheduling.begin) & (begins < switches["time"]), begins, -1)


def _losses(scheduling: Scheduling, switches: Array, first: Array, last: Array) -> tuple[Array, Array]:
    """Whether events were lost just before each switch, and after the last one of each core."""
    before = np.zeros(len(switches), bool)
    after = np.zeros(len(first), bool)
    losses = scheduling.losses
    cores = {int(switches["cpu"][place]): core for core, place in enumerate(first)}
    for cpu in np.unique(losses["cpu"]):
        core = cores.get(int(cpu))
        if core is None:
            continue
        times = switches["time"][first[core] : last[core] + 1]
        places = first[core] + np.searchsorted(times, losses["time"][losses["cpu"] == cpu])
        before[places[places <= last[core]]] = True
        after[core] = (places > last[core]).any()
    return before, after
