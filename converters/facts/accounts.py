"""One account of each thread, process and lock: profiles that were merged have several of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from itertools import zip_longest
from typing import TypeVar

from ..model import Profile, ThreadTimes
from ..model.file_locks import FileLock, LockAsker
from ..model.gil import GilThread, GilTimes
from ..model.neighbours import Neighbour
from ..model.processes import CpuLimit, ProcessTimes
from .identity import kernel_id

_Part = TypeVar("_Part")


def with_one_account_each(profile: Profile) -> Profile:
    """The profile, whose ids are own ones, with equal ones' accounts added up. A thread id that was used twice keeps
    both accounts, where the first thread is known to have ended, or the second one to be new."""
    return replace(
        profile,
        threads=_added(profile.threads, lambda times: (times.pid, times.tid), _thread),
        processes=_added(profile.processes, lambda process: process.pid, _process),
        origins=_added(profile.origins, lambda origin: origin.pid, lambda _, new: new),
        neighbours=_added(profile.neighbours, lambda neighbour: (neighbour.pid, neighbour.process), _neighbour),
        file_locks=_file_locks(profile.file_locks),
        gil=_added(profile.gil, lambda gil: gil.pid, _gil),
    )


def _added(
    given: Iterable[_Part], key_of: Callable[[_Part], object], add: Callable[[_Part, _Part], _Part | None]
) -> list[_Part]:
    """Each with those that follow it, as long as they can be added."""
    found: list[_Part] = []
    last: dict[object, int] = {}
    for part in given:
        key = key_of(part)
        together = add(found[last[key]], part) if key in last else None
        if together is None:
            last[key] = len(found)
            found.append(part)
        else:
            found[last[key]] = together
    return found


def _thread(old: ThreadTimes, new: ThreadTimes) -> ThreadTimes | None:
    if old.exited or new.creator or not kernel_id(old.tid):
        return None
    states = {*old.blocked, *new.blocked}
    return replace(
        new,
        wall=old.wall + new.wall,
        on_cpu=old.on_cpu + new.on_cpu,
        runnable=old.runnable + new.runnable,
        blocked={state: old.blocked.get(state, 0) + new.blocked.get(state, 0) for state in states},
        switches=old.switches + new.switches,
        creator=old.creator,
        made_in=old.made_in,
    )


def _process(old: ProcessTimes, new: ProcessTimes) -> ProcessTimes:
    latencies = tuple(map(sum, zip_longest(old.latencies, new.latencies, fillvalue=0)))
    before = {limit.cgroup: limit for limit in old.limits}
    limits = tuple(_limit(before[each.cgroup], each) if each.cgroup in before else each for each in new.limits)
    return replace(new, latencies=latencies, limits=limits)


def _limit(old: CpuLimit, new: CpuLimit) -> CpuLimit:
    return replace(
        new,
        periods=old.periods + new.periods,
        throttled_periods=old.throttled_periods + new.throttled_periods,
        throttled_ns=old.throttled_ns + new.throttled_ns,
    )


def _neighbour(old: Neighbour, new: Neighbour) -> Neighbour:
    return replace(new, on_cpu=old.on_cpu + new.on_cpu)


def _who_waits(lock: FileLock) -> object:
    return _who_asks(lock), lock.owner_pid


def _who_asks(lock: FileLock) -> object:
    return lock.pid, lock.process, lock.kind, lock.device, lock.inode


def _file_locks(given: Collection[FileLock]) -> list[FileLock]:
    """Each with all requests for such locks on the file, whoever had it in the one capture or the other."""
    asked = _asked(given)
    return [
        replace(
            each,
            requests=sum(part.requests for part in asked[_who_asks(each)]),
            askers=_askers(asker for part in asked[_who_asks(each)] for asker in part.askers),
        )
        for each in _added(given, _who_waits, _file_lock)
    ]


def _file_lock(old: FileLock, new: FileLock) -> FileLock:
    return replace(new, first_seen=old.first_seen, seen=old.seen + new.seen, looks=old.looks + new.looks)


def _asked(given: Iterable[FileLock]) -> dict[object, list[FileLock]]:
    """One wait for each capture in which somebody asked, by who asked for what: a capture tells the same requests with
    each owner, so the next one begins where an owner comes again, or requests are others."""
    found: dict[object, list[FileLock]] = defaultdict(list)
    owners: dict[object, set[int]] = defaultdict(set)
    for each in given:
        key = _who_asks(each)
        of_capture = found[key]
        is_told = of_capture and (of_capture[-1].requests, of_capture[-1].askers) == (each.requests, each.askers)
        if not is_told or each.owner_pid in owners[key]:
            of_capture.append(each)
            owners[key].clear()
        owners[key].add(each.owner_pid)
    return found


def _askers(askers: Iterable[LockAsker]) -> list[LockAsker]:
    found: dict[int, LockAsker] = {}
    for new in askers:
        old = found.get(new.tid, LockAsker(new.tid, 0))
        requests, gaps, time = old.requests + new.requests, old.gaps + new.gaps, old.gaps_ns + new.gaps_ns
        found[new.tid] = LockAsker(new.tid, requests, gaps, time)
    return list(found.values())


def _gil(old: GilTimes, new: GilTimes) -> GilTimes:
    return replace(
        new,
        time=old.time + new.time,
        waits=old.waits + new.waits,
        max=max(old.max, new.max),
        open_count=old.open_count + new.open_count,
        unknown=old.unknown + new.unknown,
        waiters=_gil_threads([*old.waiters, *new.waiters]),
        more_waiters=max(old.more_waiters, new.more_waiters),
        holders=_gil_threads([*old.holders, *new.holders]),
        more_holders=max(old.more_holders, new.more_holders),
    )


def _gil_threads(given: Iterable[GilThread]) -> list[GilThread]:
    """Longest first."""
    found = _added(given, lambda thread: (thread.tid, thread.frames), _gil_thread)
    return sorted(found, key=lambda thread: -thread.time)


def _gil_thread(old: GilThread, new: GilThread) -> GilThread:
    return replace(new, time=old.time + new.time, waits=old.waits + new.waits)
