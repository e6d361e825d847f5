"""Groups threads and processes by name."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from ..facts.contention import Contention, together
from ..facts.identity import is_sum, number_of, processes_of
from ..facts.thread_names import thread_pattern
from ..model import ThreadTimes
from .figures import TIDS, Who


def alike_of(threads: Iterable[ThreadTimes]) -> Counter[tuple[str, str]]:
    """Number of threads by (process name, `thread_pattern`)."""
    found: Counter[tuple[str, str]] = Counter()
    for times in threads:
        found[times.process, thread_pattern(times.thread, times.pid == times.tid)] += times.count
    return found


def who_of(members: list[ThreadTimes]) -> tuple[Who, ...]:
    """Groups by process and thread name, in order of ``members``."""
    groups: dict[tuple[str, str, bool], list[ThreadTimes]] = defaultdict(list)
    for times in members:
        groups[times.process, times.thread, times.pid == times.tid].append(times)
    return tuple(
        Who(process, thread, main, processes_of(found), number_of(found), _first_ids(found))
        for (process, thread, main), found in groups.items()
    )


def _first_ids(threads: list[ThreadTimes]) -> tuple[int, ...]:
    return tuple(sorted(times.tid for times in threads if not is_sum(times.tid))[:TIDS])


def by_name(processes: Iterable[Contention]) -> list[Contention]:
    """Merges processes whose names differ only in a final number, in order of first occurrence."""
    groups: dict[str, list[Contention]] = defaultdict(list)
    for process in processes:
        groups[thread_pattern(process.process, main=False)].append(process)
    return [
        together(members, members[0].process if len({member.process for member in members}) == 1 else pattern)
        for pattern, members in groups.items()
    ]
