"""Groups threads and processes by name."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from ..model import ThreadTimes
from .contention import Contention, together
from .thread_names import thread_pattern


def alike_of(threads: Iterable[ThreadTimes]) -> Counter[tuple[str, str]]:
    """Number of threads by (process name, `thread_pattern`)."""
    found: Counter[tuple[str, str]] = Counter()
    for times in threads:
        found[times.process, thread_pattern(times.thread, times.pid == times.tid)] += times.count
    return found


def by_name(processes: Iterable[Contention]) -> list[Contention]:
    """Merges processes whose names differ only in a final number, in order of first occurrence."""
    groups: dict[str, list[Contention]] = defaultdict(list)
    for process in processes:
        groups[thread_pattern(process.process, main=False)].append(process)
    return [
        together(members, members[0].process if len({member.process for member in members}) == 1 else pattern)
        for pattern, members in groups.items()
    ]
