"""The states of each thread over time: running, runnable, blocked."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from . import states
from .cores import tenants
from .scheduling import INTERRUPT, NO_STACK, Array, Scheduling, Threads

STATES = (
    states.RUNNING,
    *states.RUNNABLE_STATES,
    *states.BLOCKED,
    states.ENDED,
    states.UNKNOWN,
)
"""Names for the state in `PHASE`, by index."""

PHASE = np.dtype(
    [
        ("begin", "<i8"),
        ("end", "<i8"),
        ("thread", "<i4"),  # row of Scheduling.threads
        ("stack", "<i4"),  # for a thread that is not running: where it left its core; NO_STACK if unknown
        ("waker", "<i4"),  # the waker of a woken thread; NOBODY if unknown, or an interrupt
        ("cpu", "<i2"),  # for a running thread; else NOWHERE
        ("state", "u1"),  # index of STATES
    ]
)
"""A period of one thread in one state, from ``begin`` to ``end``, in ns since the recording began."""

NOBODY = NOWHERE = -1

_RUNNING, _WOKEN, _ENDED, _UNKNOWN = (
    STATES.index(name) for name in (states.RUNNING, states.WOKEN, states.ENDED, states.UNKNOWN)
)
_FIRST_BLOCKED, _LAST_BLOCKED = (STATES.index(name) for name in (states.BLOCKED[0], states.BLOCKED[-1]))


def phases(scheduling: Scheduling) -> Array:
    """All phases (`PHASE`) by thread, then by time; ``scheduling`` must have been sorted by `in_order`.

    A phase that is open at the end of the recording ends there. A thread's state before its first event is included if
    it is known: the thread had a core, or a span says that it was blocked.
    """
    known = Threads(scheduling.threads)
    points = np.concatenate(list(_points(scheduling, known)))
    points = points[points["thread"] >= 0]
    points = points[np.lexsort((points["begin"], points["thread"]))]
    same = points["thread"][1:] == points["thread"][:-1]
    # Waking a thread that is not blocked has no effect, nor does waking it again.
    states_before = points["state"][:-1]
    blocked = (states_before >= _FIRST_BLOCKED) & (states_before <= _LAST_BLOCKED) | (states_before == _UNKNOWN)
    useless = points["cpu"] == _WAKING
    useless[1:] &= same & ~blocked
    useless[:1] = False
    points = points[~useless]
    points["cpu"][points["cpu"] == _WAKING] = NOWHERE
    points["end"] = scheduling.end
    same = points["thread"][1:] == points["thread"][:-1]
    points["end"][:-1][same] = points["begin"][1:][same]
    return _with_stacks(points[(points["state"] != _ENDED)], scheduling, known)


_WAKING = -2
"""Used instead of a cpu: this point is a wake-up."""


def _points(scheduling: Scheduling, known: Threads) -> Iterator[Array]:
    """The beginnings of phases, in the order for equal times of one thread."""
    spans = scheduling.blocked
    spans = spans[spans["begin"] < scheduling.begin]
    before = _at(known, spans["tid"], np.full(len(spans), scheduling.begin, np.int64), _of_bits()[spans["state"]])
    before["state"][(spans["woken"] > 0) & (spans["woken"] < scheduling.begin)] = _WOKEN
    yield before
    created = scheduling.created
    points = _at(known, created["tid"], created["time"], _WOKEN)
    points["waker"] = np.where(created["parent"] > 0, created["parent"], NOBODY)
    yield points
    yield _by_switches(scheduling, known)
    woken = scheduling.wakeups
    points = _at(known, woken["tid"], woken["time"], _WOKEN)
    points["waker"] = np.where(woken["flags"] & INTERRUPT > 0, NOBODY, woken["waker"])
    points["cpu"] = _WAKING
    yield points


def _by_switches(scheduling: Scheduling, known: Threads) -> Array:
    cores = tenants(scheduling)
    opening = np.diff(cores["cpu"], prepend=-1) != 0 if len(cores) else np.zeros(0, bool)
    out = _at(known, cores["prev_tid"], cores["time"], _of_bits()[cores["prev_state"]])
    out["thread"][opening] = -1
    into = _at(known, cores["next_tid"], cores["time"], _RUNNING)
    into["cpu"] = cores["cpu"]
    return np.stack([out, into], axis=1).reshape(-1)


def _at(known: Threads, tids: Array, times: Array, state: Array | int) -> Array:
    points = np.zeros(len(tids), PHASE)
    points["begin"] = times
    points["thread"] = np.where(tids > 0, known.rows(tids, times), -1)
    points["stack"], points["waker"], points["cpu"] = NO_STACK, NOBODY, NOWHERE
    points["state"] = state
    return points


def _of_bits() -> Array:
    """Index of `STATES` by the state in `SWITCH`: if several bits are set, the lowest known one counts."""
    bits = np.arange(1 << 16)
    table = np.full(len(bits), _UNKNOWN, np.uint8)
    for bit in sorted(states.BY_BITS, reverse=True):
        table[(bits & bit) > 0 if bit else 0] = STATES.index(states.BY_BITS[bit])
    return table


def _with_stacks(found: Array, scheduling: Scheduling, known: Threads) -> Array:
    """Sets the stack of each phase that begins with a span, and of the wait for a core that follows it."""
    spans = scheduling.blocked
    if not len(spans):
        return found
    begins = np.maximum(spans["begin"], scheduling.begin)
    threads = known.rows(spans["tid"], begins)
    times = np.unique(begins)
    keys = _key(threads, np.searchsorted(times, begins))
    order = np.argsort(keys, kind="stable")
    wanted = _key(found["thread"], np.searchsorted(times, found["begin"]))
    places = order[np.minimum(np.searchsorted(keys[order], wanted), len(order) - 1)]
    hit = (threads[places] == found["thread"]) & (begins[places] == found["begin"]) & (found["state"] != _RUNNING)
    found["stack"] = np.where(hit, spans["stack"][places], NO_STACK)
    woken = (found["state"][1:] == _WOKEN) & (found["thread"][1:] == found["thread"][:-1])
    after = np.flatnonzero(woken & (found["stack"][1:] == NO_STACK)) + 1
    found["stack"][after] = found["stack"][after - 1]
    return found


def _key(threads: Array, ranks: Array) -> Array:
    return threads.astype(np.int64) << 32 | ranks.astype(np.int64)
