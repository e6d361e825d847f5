"""Groups threads and processes by name."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from ..model import ThreadTimes
from ..model.neighbours import Neighbour
from ..model.processes import cpu_set
from . import thresholds
from .contention import Contention, together
from .thread_names import name_pattern, thread_pattern


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
        groups[name_pattern(process.process)].append(process)
    return [
        together(members, members[0].process if len({member.process for member in members}) == 1 else pattern)
        for pattern, members in groups.items()
    ]


def users_of_cores(
    neighbours: Iterable[Neighbour], duration: int, cores: frozenset[int] = frozenset()
) -> list[tuple[str, float]]:
    """Names of processes that were not traced (``2 × gzip``), and how many of these ``cores`` they used, of each of
    theirs alike; most first. Without ``cores``: of all."""
    groups: dict[str, list[Neighbour]] = defaultdict(list)
    for each in neighbours:
        if not each.on_cpu:
            continue  # it only ended waits
        groups[name_pattern(each.process)].append(each)
    found = []
    for pattern, members in groups.items():
        name = members[0].process if len({each.process for each in members}) == 1 else pattern
        used = sum(_used_of(each, cores) for each in members) / duration if duration else 0.0
        found.append((f"{len(members)} × {name}" if len(members) > 1 else name, used))
    return sorted(found, key=lambda each: (-each[1], each[0]))


def others_may_have(neighbours: Sequence[Neighbour], duration: int, cores: frozenset[int], missing: float) -> bool:
    """Whether processes that were not traced can have so many of these ``cores``: if it is not known what they used,
    or if that is a good part of it. Else the cores went elsewhere, to interrupts or to the trace itself."""
    if not any(each.on_cpu for each in neighbours):
        return True
    used = sum(number for _, number in users_of_cores(neighbours, duration, cores))
    return used >= thresholds.OTHERS_USED * missing


def _used_of(neighbour: Neighbour, cores: frozenset[int]) -> float:
    own = cpu_set(neighbour.cpus)
    return neighbour.on_cpu * len(own & cores) / len(own) if own and cores else neighbour.on_cpu
