"""Addresses that belong to one lock, and the function of the kernel that takes one."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from ....converters.model import Stack
from ....converters.model.locks import CONDITION, GIL, MUTEX

_WORD = 4
"""A condition variable of glibc has two futexes side by side, the first of which is aligned to twice that: threads wait
for one or the other (nptl/pthread_cond_common.c, ``__g_signals``)."""
_GIL_BEFORE, _GIL_SIZE = 48, 160
"""CPython's lock is a structure with two mutexes and condition variables, one after the other
(Include/internal/pycore_gil.h). Bytes from its first word on that threads wait for: less than the distance of two."""

_LOCKING = re.compile(
    r"_*(io_)?(preempt_)?schedule|_*rt_mutex|_*(ww_)?mutex|_*rwsem|_*down(_|$)|_*percpu_(down|rwsem)|_*raw_(spin|read|write)|"
    r"_*(native_)?queued_|osq_lock|_*lock_(text|slowpath)|rwbase_|rtlock_|_*(spin|read|write)_lock|_*pv_|"
    r"bpf_(prog|trace)_|_*bpf_trace_|_*traceiter_|trace_contention"
)
"""Beginnings of the kernel's functions that take any lock, of the scheduler's, and of the probes'."""


def joined(waits: Iterable[tuple[int, int, str]]) -> dict[tuple[int, int], int]:
    """Addresses that stand for others of the same lock, by process and address, where that is another one.

    ``waits``: process, address and kind of waits for locks of one process.
    """
    made: dict[tuple[int, int], int] = {}
    gils: dict[int, set[int]] = defaultdict(set)
    parts: set[tuple[int, int]] = set()
    for tgid, address, kind in waits:
        if kind == GIL:
            gils[tgid].add(address)
        elif kind in (MUTEX, CONDITION):
            parts.add((tgid, address))
        if kind == CONDITION and address % (2 * _WORD) == _WORD:
            made[tgid, address] = address - _WORD
    for tgid, addresses in gils.items():
        near = dict(_close(sorted(addresses)))
        made.update({(tgid, address): first for address, first in near.items() if address != first})
        for part, first in ((part, first) for of, part in parts if of == tgid for first in set(near.values())):
            if part not in near and first - _GIL_BEFORE <= part < first + _GIL_SIZE:
                made[tgid, part] = first
    return made


def _close(addresses: list[int]) -> Iterator[tuple[int, int]]:
    """Each with the first one of those that are close to it."""
    first = addresses[0]
    for address in addresses:
        first = address if address - first >= _GIL_SIZE else first
        yield address, first


def taken_in(stack: Stack) -> str:
    """The innermost function of the kernel that does more than to take a lock; "" if there is none."""
    names = [frame.name for frame in reversed(stack) if frame.kind == "kernel"]
    return next((name for name in names if not _LOCKING.match(name) and name[:1] != "["), "")
