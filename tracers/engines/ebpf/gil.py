"""Names for those who waited for Python's interpreter lock (GIL) or had it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ....converters.facts.wait_sites import Sites
from ....converters.model import Stack
from ....converters.model.gil import MOST_THREADS, GilThread, GilTimes
from ...base import procfs
from ..rows import Row
from .capture import Capture
from .inner_ids import InnerIds
from .measures.protocol import GilWait
from .names import Names
from .stacks import Stacks

_Waiters = dict[int, GilThread]
_Holders = dict[tuple[int, tuple[str, ...]], GilThread]


def gil_of(capture: Capture, rows: Mapping[int, Row], stacks: Stacks, names: Names) -> list[GilTimes]:
    """Times by process, most time first. ``rows``: by the `id` of a wait's row, the same with a completed stack."""
    waits: dict[int, list[GilWait]] = {}
    for wait in capture.locks.gil if capture.locks else ():
        waits.setdefault(wait.row.origin.tgid, []).append(wait)
    naming = _Naming(capture, rows, stacks, names)
    return sorted((naming.times(tgid, of) for tgid, of in waits.items()), key=lambda gil: (-gil.time, gil.pid))


class _Naming:
    def __init__(self, capture: Capture, rows: Mapping[int, Row], stacks: Stacks, names: Names) -> None:
        self._capture, self._rows, self._stacks, self._names = capture, rows, stacks, names
        self._inner = InnerIds(capture)
        self._threads = {(r.thread.key.tgid, r.thread.key.tid): r.thread.first for r in capture.threads}
        self._sites = Sites()
        self._kept: list[Stack] = []

    def times(self, tgid: int, waits: Iterable[GilWait]) -> GilTimes:
        """Times of one process."""
        gil = GilTimes(self._names.process(tgid), self._names.pid(tgid)[0])
        waiters: _Waiters = {}
        holders: _Holders = {}
        for wait in waits:
            row, total = self._rows.get(id(wait.row), wait.row), wait.sum
            gil.time += total.time
            gil.waits += total.waits
            gil.max = max(gil.max, total.max)
            gil.open_count += total.waits if row.is_open else 0
            tid = row.origin.tid
            waiter = waiters.get(tid)
            if waiter is None:
                first = self._capture.lives.threads.get(row.origin.life, -1)
                waiter = waiters[tid] = GilThread(self._names.thread(tgid, first), tid)
            _add(waiter, wait)
            holder = self._holder(tgid, wait.holder)
            if not holder:
                gil.unknown += total.time
                continue
            frames = self._frames(row)
            if (holder, frames) not in holders:
                holders[holder, frames] = GilThread(self._name(tgid, holder), holder, frames=frames)
            _add(holders[holder, frames], wait)
        gil.waiters, gil.more_waiters = _longest(waiters.values())
        gil.holders, gil.more_holders = _longest(holders.values())
        return gil

    def _holder(self, tgid: int, inside: int) -> int:
        """Id, as we have it, of a thread of this process; 0 if it has none with this one."""
        tid = self._inner.outside(tgid, inside) if inside else 0
        return tid if tid and ((tgid, tid) in self._threads or procfs.tgid_of(tid) == tgid) else 0

    def _name(self, tgid: int, tid: int) -> str:
        first = self._threads.get((tgid, tid))
        name = self._names.thread(tgid, first) if first is not None else procfs.comm(tgid, tid)
        return name or self._names.process(tgid)

    def _frames(self, row: Row) -> tuple[str, ...]:
        if not row.origin.ustack:
            return ()
        stack = tuple(frame for frame in self._stacks.of(row) if frame.kind == "python")
        self._kept.append(stack)  # sites are known by the identity of their stacks
        return self._sites.of(stack).frames


def _add(thread: GilThread, wait: GilWait) -> None:
    thread.time += wait.sum.time
    thread.waits += wait.sum.waits


def _longest(threads: Iterable[GilThread]) -> tuple[list[GilThread], int]:
    found = sorted(threads, key=lambda thread: (-thread.time, thread.tid, thread.frames))
    return found[:MOST_THREADS], max(len(found) - MOST_THREADS, 0)
