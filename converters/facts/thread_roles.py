"""Threads that wait for work, that did not move at all, and that belong to the kernel."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ..model import ThreadTimes
from . import thresholds
from .wait_kinds import EVENTS, LOCK, PEER, THREAD, TOLD_BY_OTHERS, UNKNOWN, WORK
from .wait_sums import Place, Sum, Sums, Thread


@dataclass(frozen=True)
class ThreadRoles:
    """Sets of threads."""

    kernel: frozenset[Thread]
    """Kernel threads, if others were traced, too."""
    still: frozenset[Thread]
    """Threads that never moved: one wait from the trace's beginning to its end. Where waits are known by samples only
    there are none: being sampled moves a thread."""
    quiet: dict[Thread, frozenset[Place]]
    """Threads that do nothing but wait for others, in these places."""
    idle: frozenset[Thread]
    """Quiet threads known to wait for work: the kernel's, and the workers of pools. Never a main thread, unless it is
    among `by`."""
    in_task: frozenset[Thread] = frozenset()
    """Threads that would be idle, but wait in the middle of a task (`task_waits`)."""
    by: Mapping[Thread, str] = field(default_factory=dict)
    """Evidence that a thread is idle, by thread, if it is known who ended its waits: a kind of `idle_evidence`."""


def roles_of(sums: Sums, threads: dict[Thread, ThreadTimes]) -> ThreadRoles:
    """``sums`` are the waits of ``threads``."""
    user = {pid for (pid, _), places in sums.items() if any(place.has_user_frames for place in places)}
    kernel = frozenset(thread for thread, places in sums.items() if thread[0] not in user and _in_kernel(places))
    still = frozenset(thread for thread, times in threads.items() if _is_still(times, thread in sums))
    quiet = {thread: found for thread in sums if (found := _quiet(sums, threads[thread], thread in kernel))}
    quiet |= _of_pools(sums, threads, quiet)
    return ThreadRoles(
        kernel=kernel if len(kernel) < len(sums) else frozenset(),
        still=still - kernel,
        quiet=quiet,
        idle=frozenset(thread for thread in quiet if thread in kernel) | _pools(sums, threads, quiet, still),
    )


def time_unknown(places: Mapping[Place, Sum]) -> int:
    """Time of which nobody knows where the thread was, and that in which an engine held it."""
    return sum(total.time for place, total in places.items() if place.kind == UNKNOWN)


def are_sampled(sums: Iterable[Sum]) -> bool:
    """Whether these waits are known by samples only: nobody counted them."""
    return any(total.samples and not total.count for total in sums)


def only_waits(times: ThreadTimes, of: Mapping[Place, Sum], places: Iterable[Place]) -> bool:
    """Whether a thread, whose waits are ``of``, spends nearly all its time in ``places``."""
    sums = [of[place] for place in places]
    wall = times.wall - time_unknown(of)
    if are_sampled(sums):
        wall -= times.runnable  # it waits for a core after each sample
    return 0 < wall * thresholds.QUIET <= sum(total.time for total in sums)


def _in_kernel(places: Iterable[Place]) -> bool:
    """Whether a stack has no user part; a thread that has not run yet has no stack."""
    return any(not place.site.frames for place in places)


def _is_still(times: ThreadTimes, waits: bool) -> bool:
    return waits and times.wall > 0 and times.on_cpu == times.runnable == 0 and not times.exited


def _of_pools(
    sums: Sums, threads: dict[Thread, ThreadTimes], quiet: dict[Thread, frozenset[Place]]
) -> dict[Thread, frozenset[Place]]:
    """Threads that are nearly quiet in a place where another thread of their process is."""
    places = {(thread[0], place) for thread, found in quiet.items() for place in found}
    others = [thread for thread in sums if thread not in quiet and thread[0] != thread[1]]
    nearly = {thread: _quiet(sums, threads[thread], in_kernel=False, beside=True) for thread in others}
    return {
        thread: frozenset(place for place in found if (thread[0], place) in places)
        for thread, found in nearly.items()
        if any((thread[0], place) in places for place in found)
    }


def _quiet(sums: Sums, times: ThreadTimes, in_kernel: bool, *, beside: bool = False) -> frozenset[Place]:
    places = sums[times.pid, times.tid]
    if in_kernel:
        return frozenset(place for place in places if place.kind in TOLD_BY_OTHERS)
    # That it waits for a core once it is woken is not its own doing.
    much = thresholds.QUIET_BESIDE if beside else thresholds.QUIET
    enough = (times.wall - times.runnable - time_unknown(places)) * much
    much_there = (place for place, total in places.items() if 0 < enough <= total.time)
    return frozenset(place for place in much_there if place.kind in TOLD_BY_OTHERS and not place.wait.asks)


def _pools(
    sums: Sums, threads: dict[Thread, ThreadTimes], quiet: dict[Thread, frozenset[Place]], still: frozenset[Thread]
) -> frozenset[Thread]:
    """Quiet threads of a process that progresses: several in one place, one that is woken now and then, or one that
    never moved, as far as known, while the main thread waits for no other."""
    busy: dict[int, int] = defaultdict(int)
    longest: dict[int, int] = defaultdict(int)
    for thread, times in threads.items():
        longest[times.pid] = max(longest[times.pid], times.wall)
        is_main = times.pid == times.tid
        if thread not in quiet or (is_main and not _waits_for_threads(sums, threads, times.pid)):
            busy[times.pid] += times.on_cpu + times.runnable
    # Threads of a pool may have names of their own, so that only the place tells that they are alike.
    alike = Counter((threads[thread].process, place) for thread, places in quiet.items() for place in places)
    found = set()
    for thread, places in quiet.items():
        times = threads[thread]
        gets_on = busy[times.pid] >= thresholds.GETS_ON * longest[times.pid] > 0
        several = any(alike[times.process, place] > 1 for place in places)
        kinds = {place.kind for place in places}
        moved = thread not in still and not are_sampled(sums[thread][place] for place in places)
        unneeded = several or moved or not _waits_for_threads(sums, threads, times.pid)
        # A thread that sleeps, or is sometimes woken through a pipe, may be what others wait for.
        for_work = kinds <= {THREAD, EVENTS, WORK} and unneeded
        parked = kinds <= {THREAD, EVENTS, PEER, WORK} and several and thread in still
        if times.pid != times.tid and gets_on and (for_work or parked):
            found.add(thread)
    return frozenset(found)


def _waits_for_threads(sums: Sums, threads: dict[Thread, ThreadTimes], pid: int) -> bool:
    """Whether the main thread mostly waits for other threads of its process, or is not known."""
    main = threads.get((pid, pid))
    waits = sum(total.time for place, total in sums.get((pid, pid), {}).items() if place.kind in (THREAD, LOCK))
    return main is None or waits >= thresholds.MOSTLY * main.wall
