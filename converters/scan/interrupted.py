"""Cores from which interrupts, or other virtual machines, take time, and the threads that ran there.

The kernel counts this time by core, not by thread: to count it by thread, a program would have to run at each
interrupt. Of a thread it is the core's part, by the time for which the thread had the core.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..base.text import json_text
from ..base.units import duration, share
from ..facts import thresholds
from ..facts.core_threads import by_core, interrupted_cores, recorded
from ..facts.identity import kernel_id, shown_id
from ..model import Profile
from ..model.pressure import ALL, HARD, SOFT, STOLEN, CoreThread, Interrupts
from ..model.processes import cpu_set


@dataclass(frozen=True)
class Core:
    """Time that was taken from one core. Times in ns."""

    number: int
    times: Mapping[str, int]
    """Times by kind: `HARD`, `SOFT`, `STOLEN`."""
    capacity: int
    """Time of the core."""
    threads: Sequence[CoreThread] = field(default_factory=tuple)
    """Threads that ran there, those that did for longest first; () if that is not known, or little was taken."""

    @property
    def handled(self) -> int:
        """Time in interrupts."""
        return self.times.get(HARD, 0) + self.times.get(SOFT, 0)

    def taken(self, time: int) -> int:
        """The part of the time in interrupts of a thread that had the core for ``time``."""
        return round(self.handled * min(time / self.capacity, 1.0)) if self.capacity else 0

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "core": self.number,
            "hard_ns": self.times.get(HARD, 0),
            "soft_ns": self.times.get(SOFT, 0),
            "stolen_ns": self.times.get(STOLEN, 0),
            "capacity_ns": self.capacity,
            "threads": [
                {
                    "process": json_text(each.process),
                    "thread": json_text(each.thread),
                    "pid": each.pid,
                    "tid": each.tid,
                    "had_core_ns": each.time,
                    "taken_ns": self.taken(each.time),
                }
                for each in self.threads
            ],
        }


def cores(profile: Profile) -> tuple[Core, ...]:
    """Cores from which something was taken, those with most first."""
    times: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    capacity: dict[tuple[int, str], int] = defaultdict(int)
    for each in profile.interrupts:
        if each.core != ALL and not each.name:
            times[each.core][each.kind] += each.time
            capacity[each.core, each.kind] += each.capacity
    if not times:
        return ()
    found = [
        Core(number, dict(taken), max(capacity[number, kind] for kind in taken)) for number, taken in times.items()
    ]
    wanted = interrupted_cores(profile.interrupts)
    threads = _threads(profile, wanted) if wanted else {}
    found = [replace(each, threads=threads.get(each.number, ())) for each in found]
    return tuple(sorted(found, key=lambda each: (-sum(each.times.values()), each.number)))


def sentences(found: Iterable[Core], all_cores: Sequence[Interrupts]) -> list[str]:
    """A sentence on the core from which interrupts take most, if that is much, and more than from others. Unescaped
    (hostile)."""
    core = max(found, key=lambda each: (each.handled, -each.number), default=None)
    if core is None or core.handled < thresholds.CORE_INTERRUPTED * core.capacity:
        return []
    rest = [each for each in all_cores if each.kind != STOLEN and not each.name and each.core == ALL and each.capacity]
    usual = sum(each.time / each.capacity for each in rest)
    if core.handled < thresholds.CORE_UNEVEN * usual * core.capacity:
        return []
    told = f"Interrupts take {share(core.handled, core.capacity)} of the time of core {core.number}"
    user = core.threads[0] if core.threads else None
    if user and user.time >= thresholds.CORE_USER * core.capacity:
        whose = "" if user.thread == user.process else f" of {user.process}"
        told += (
            f", on which {user.thread}{whose} (tid {shown_id(user.tid)}) runs: "
            f"about {duration(core.taken(user.time))} of its time"
        )
    return [f"{told}."]


def _threads(profile: Profile, wanted: set[int]) -> Mapping[int, tuple[CoreThread, ...]]:
    """Threads on these cores: as they were kept, by the events, or those that may run nowhere else."""
    kept = profile.core_threads or recorded(profile, wanted)
    if not kept and profile.scheduling is None:
        kept = _bound(profile)
    return by_core(each for each in kept if each.core in wanted)


def _bound(profile: Profile) -> list[CoreThread]:
    """Threads of processes that may use one core only: the kernel does not tell by core where others ran."""
    bound = {}
    for process in profile.processes:
        if len(allowed := cpu_set(process.cpus)) == 1:
            bound[process.pid] = min(allowed)
    return [
        CoreThread(bound[each.pid], each.process, each.thread, kernel_id(each.pid), kernel_id(each.tid), each.on_cpu)
        for each in profile.threads
        if each.pid in bound and each.on_cpu
    ]
