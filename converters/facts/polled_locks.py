"""Sleeps of threads that ask for a lock on a file, and sleep before they ask again: waits for the lock.

The kernel reports each request that it refuses. A thread that sleeps about as often as it is refused one, in one place,
sleeps for the sake of the lock, whatever its functions are called.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection

from ..model.file_locks import FileLock
from . import thresholds
from .identity import kernel_id
from .wait_functions import LOCK_OF_FILE
from .wait_kinds import LOCK, SLEEP
from .wait_sums import Place, Sum, Sums, Thread


def with_polled_locks(sums: Sums, file_locks: Collection[FileLock]) -> Sums:
    """Sums with such sleeps as waits for a lock."""
    by_thread, by_process = _requests(file_locks)
    gaps = _gaps(file_locks)
    if not by_thread and not by_process:
        return sums
    changed: Sums = {}
    of_old: dict[int, list[Thread]] = defaultdict(list)
    for thread, places in sums.items():
        pid, tid = map(kernel_id, thread)
        of_thread = by_thread[pid, tid]
        asked, least = (of_thread, thresholds.ASKS_LEAST) if of_thread else (by_process[pid], thresholds.SLEEPS_AGAIN)
        found = [place for place, total in places.items() if _asks_again(place, total, asked, least)]
        if found and not of_thread:
            of_old[pid].append(thread)
        if len(found) == 1:  # of several ones nobody knows before which it asks
            changed[thread] = {
                _as_lock(place) if place is found[0] else place: total for place, total in places.items()
            }
        elif not found and of_thread and (place := _asks_at_times(places, of_thread, gaps.get((pid, tid), 0))):
            part, rest = _split(places[place], of_thread)
            changed[thread] = {**places, place: rest, _as_lock(place): part}
    # Old captures do not tell which thread has asked: it is known only if no other one sleeps as often.
    for threads in of_old.values():
        for thread in threads if len(threads) > 1 else ():
            changed.pop(thread, None)
    return sums | changed


def _requests(file_locks: Collection[FileLock]) -> tuple[Counter[Thread], Counter[int]]:
    """Numbers of requests in vain: by the kernel's pid and tid; of old captures by the pid. A file is told once for
    each owner of its lock."""
    by_thread: Counter[Thread] = Counter()
    by_process: Counter[int] = Counter()
    for each in {(each.pid, each.kind, each.device, each.inode): each for each in file_locks}.values():
        by_thread.update({(each.pid, asker.tid): asker.requests for asker in each.askers})
        if not each.askers:
            by_process[each.pid] += each.requests
    return by_thread, by_process


def _gaps(file_locks: Collection[FileLock]) -> dict[Thread, float]:
    """Mean times in ns between two requests one shortly after the other, by the kernel's pid and tid; where there are
    enough."""
    return {
        (lock.pid, each.tid): each.gaps_ns / each.gaps
        for lock in file_locks
        for each in lock.askers
        if each.gaps >= thresholds.SLEEPS_AGAIN
    }


def _asks_at_times(places: dict[Place, Sum], asked: int, gap: float) -> Place | None:
    """The place where a thread sleeps that asks again and again for a part of the time: it is refused a lock before
    each sleep then. None if there is none, or several. ``gap``: ns between two of these requests; 0: not known."""
    whole = sum(total.time for total in places.values())
    found = [
        place
        for place, total in places.items()
        if place.kind == SLEEP
        and thresholds.HELD_MOSTLY * total.count <= asked < total.count
        and gap * total.count >= thresholds.ASKS_AS_OFTEN * whole
        and thresholds.ASKS_AS_OFTEN * gap * total.count <= whole
    ]
    return found[0] if len(found) == 1 else None


def _split(total: Sum, asked: int) -> tuple[Sum, Sum]:
    """The waits that requests came before, and the others: by their numbers, as they are about as long."""
    part, rest = total.copy(), total.copy()
    for name in ("time", "open_time", "open_count", "samples"):
        whole = getattr(total, name)
        setattr(part, name, whole * asked // total.count)
        setattr(rest, name, whole - getattr(part, name))
    part.count, rest.count = asked, total.count - asked
    for name in ("wakers", "objects", "by_peers", "givers"):
        of_part, of_rest = getattr(part, name) or {}, getattr(rest, name) or {}
        for key, time in of_part.items():
            of_part[key] = time * asked // total.count
            of_rest[key] = time - of_part[key]
    return part, rest


def _as_lock(place: Place) -> Place:
    return place.as_wait(place.wait._replace(kind=LOCK, lock=LOCK_OF_FILE))


def _asks_again(place: Place, total: Sum, asked: int, least: float) -> bool:
    if place.kind != SLEEP or min(total.count, asked) < least:
        return False
    return min(total.count, asked) >= thresholds.ASKS_AS_OFTEN * max(total.count, asked)
