"""Times when threads are freed: after their last switch; for the first one of a process, after all others."""

from __future__ import annotations

import numpy as np

from ...model.scheduling import EXIT, Array, Scheduling, Threads
from ...model.states import BY_BITS, ENDED

_ENDED = sum(bits for bits, name in BY_BITS.items() if name == ENDED)
_NEVER = np.iinfo(np.int64).max


def freed(scheduling: Scheduling, known: Threads) -> Array:
    """Times at which the kernel frees each thread that has exited (`EXIT`): just after its last switch.

    The first thread of a process stays until the others are gone, and is not freed if one of them is still there: the
    kernel does this (``delay_group_leader``), and the viewer takes it as the end of the process.
    """
    exited = scheduling.exited
    rows = known.rows(exited["tid"], exited["time"])
    exited, rows = exited[rows >= 0], rows[rows >= 0]
    ends = np.full(len(scheduling.threads), _NEVER)
    ends[rows] = exited["time"]
    switches = scheduling.switches[scheduling.switches["prev_state"] & _ENDED > 0]
    switched = known.rows(switches["prev_tid"], switches["time"])
    last = ends.copy()
    np.maximum.at(last, switched[switched >= 0], switches["time"][switched >= 0])
    threads = scheduling.threads
    leaders = known.rows(threads["tgid"], np.maximum(threads["begin"], scheduling.begin))
    of_group = np.zeros(len(threads), np.int64)
    np.maximum.at(of_group, leaders[leaders >= 0], last[leaders >= 0])
    leading = threads["tid"] == threads["tgid"]
    last = np.where(leading, np.maximum(last, of_group), last)

    found = np.zeros(len(rows), EXIT)
    found["tid"], found["tgid"], found["cpu"] = exited["tid"], exited["tgid"], exited["cpu"]
    found["time"] = last[rows]
    found = found[found["time"] != _NEVER]
    found["time"] += 1
    by_time: Array = found[np.argsort(found["time"], kind="stable")]
    return by_time
