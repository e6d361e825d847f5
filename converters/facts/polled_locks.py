"""Sleeps of threads that ask for a lock on a file, and sleep before they ask again: waits for the lock.

The kernel reports each request that it refuses. A thread that sleeps about as often as that, in one place, sleeps for
the sake of the lock, whatever its functions are called.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ..model.file_locks import FileLock
from . import thresholds
from .identity import kernel_id
from .wait_functions import LOCK_OF_FILE
from .wait_kinds import LOCK, SLEEP
from .wait_sums import Place, Sum, Sums


def with_polled_locks(sums: Sums, file_locks: Iterable[FileLock]) -> Sums:
    """Sums with such sleeps as waits for a lock."""
    requests = _requests(file_locks)
    if not requests:
        return sums
    changed = {}
    for thread, places in sums.items():
        asked = requests[kernel_id(thread[0])]
        if asked and any(_asks_again(place, total, asked) for place, total in places.items()):
            changed[thread] = {
                _as_lock(place) if _asks_again(place, total, asked) else place: total for place, total in places.items()
            }
    return sums | changed


def _requests(file_locks: Iterable[FileLock]) -> Counter[int]:
    """Numbers of requests in vain, by the kernel's pid. A file is told once for each owner of its lock."""
    of_files = {(each.pid, each.kind, each.device, each.inode): each.requests for each in file_locks if each.requests}
    found: Counter[int] = Counter()
    for (pid, *_), number in of_files.items():
        found[pid] += number
    return found


def _as_lock(place: Place) -> Place:
    return place.as_wait(place.wait._replace(kind=LOCK, lock=LOCK_OF_FILE))


def _asks_again(place: Place, total: Sum, asked: int) -> bool:
    if place.kind != SLEEP or min(total.count, asked) < thresholds.SLEEPS_AGAIN:
        return False
    return min(total.count, asked) >= thresholds.ASKS_AS_OFTEN * max(total.count, asked)
