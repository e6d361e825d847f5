"""Threads that ran on cores from which interrupts, or other virtual machines, take time: by the scheduler's events."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from ..model import Profile
from ..model.pressure import ALL, STOLEN, CoreThread, Interrupts
from . import thresholds
from .identity import kernel_id

THREADS = 8
"""Threads of a core that are told."""


def interrupted_cores(found: Iterable[Interrupts]) -> set[int]:
    """Numbers of cores from which interrupts take so much that it matters who ran there."""
    shares: dict[int, dict[str, list[int]]] = {}
    for each in found:
        if each.core != ALL and each.kind != STOLEN:
            sums = shares.setdefault(each.core, {}).setdefault(each.kind, [0, 0])
            sums[0] += each.time
            sums[1] += each.capacity
    return {
        core
        for core, kinds in shares.items()
        if sum(time / whole for time, whole in kinds.values() if whole) >= thresholds.CORE_TAKEN
    }


def recorded(profile: Profile, cores: Collection[int]) -> list[CoreThread]:
    """Threads on these cores, those that had each for longest first; [] if there are no events."""
    scheduling = profile.scheduling
    if scheduling is None or not cores:
        return []
    import numpy as np

    from ..model.cores import tenants

    names = {kernel_id(each.tid): each for each in profile.threads if each.tid}
    switches = tenants(scheduling)
    found = []
    for core in sorted(cores):
        own = switches[switches["cpu"] == core]
        lengths = np.diff(own["time"], append=scheduling.end)
        tids, places = np.unique(own["next_tid"], return_inverse=True)
        sums = np.bincount(places, weights=lengths, minlength=len(tids))
        for tid, time in zip(tids.tolist(), sums.tolist(), strict=True):
            if tid > 0 and time > 0 and (each := names.get(tid)):
                found.append(CoreThread(core, each.process, each.thread, kernel_id(each.pid), tid, int(time)))
    return longest(found)


def longest(found: Iterable[CoreThread]) -> list[CoreThread]:
    """A few of each core: those that had it for longest, first."""
    kept: list[CoreThread] = []
    numbers: dict[int, int] = {}
    for each in sorted(found, key=lambda thread: (thread.core, -thread.time, thread.tid)):
        numbers[each.core] = numbers.get(each.core, 0) + 1
        if numbers[each.core] <= THREADS:
            kept.append(each)
    return kept


def by_core(found: Iterable[CoreThread]) -> Mapping[int, tuple[CoreThread, ...]]:
    """Threads of each core, those of merged captures added up."""
    sums: dict[tuple[int, str, str, int, int], int] = {}
    for each in found:
        key = each.core, each.process, each.thread, each.pid, each.tid
        sums[key] = sums.get(key, 0) + each.time
    made: dict[int, tuple[CoreThread, ...]] = {}
    for thread in longest(CoreThread(*key, time) for key, time in sums.items()):
        made[thread.core] = (*made.get(thread.core, ()), thread)
    return made
