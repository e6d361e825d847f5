"""Cores from which interrupts, or other virtual machines, take time, and the threads that ran there.

The kernel counts this time by core, not by thread: to count it by thread, a program would have to run at each
interrupt. Of a thread it is the core's part, by the time for which the thread had the core.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ..base.text import json_text
from ..base.units import duration, share
from ..facts import thresholds
from ..facts.identity import kernel_id, shown_id
from ..model import Profile
from ..model.pressure import ALL, HARD, SOFT, STOLEN, Interrupts
from ..model.processes import cpu_set

THREADS = 8
"""Threads of a core that are told."""


class OnCore(NamedTuple):
    """A thread that ran on a core. Names are unescaped (hostile)."""

    process: str
    thread: str
    pid: int
    tid: int
    time: int
    """ns for which it had the core, what was taken from it meanwhile included."""


@dataclass(frozen=True)
class Core:
    """Time that was taken from one core. Times in ns."""

    number: int
    times: Mapping[str, int]
    """Times by kind: `HARD`, `SOFT`, `STOLEN`."""
    capacity: int
    """Time of the core."""
    threads: Sequence[OnCore] = field(default_factory=tuple)
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
                    "pid": kernel_id(each.pid),
                    "tid": kernel_id(each.tid),
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
    wanted = {each.number for each in found if each.handled >= thresholds.CORE_TAKEN * each.capacity}
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


def _threads(profile: Profile, wanted: Collection[int]) -> dict[int, tuple[OnCore, ...]]:
    found = _recorded(profile, wanted) if profile.scheduling is not None else _bound(profile)
    return {core: threads for core, threads in found.items() if core in wanted}


def _bound(profile: Profile) -> dict[int, tuple[OnCore, ...]]:
    """Threads of processes that may use one core only: the kernel does not tell by core where others ran."""
    bound = {}
    for process in profile.processes:
        if len(allowed := cpu_set(process.cpus)) == 1:
            bound[process.pid] = min(allowed)
    found: dict[int, list[OnCore]] = defaultdict(list)
    for each in profile.threads:
        if each.pid in bound and each.on_cpu:
            found[bound[each.pid]].append(OnCore(each.process, each.thread, each.pid, each.tid, each.on_cpu))
    return _longest(found)


def _recorded(profile: Profile, wanted: Iterable[int]) -> dict[int, tuple[OnCore, ...]]:
    """Threads on these cores by the events of the scheduler."""
    import numpy as np

    from ..model.cores import tenants

    scheduling = profile.scheduling
    assert scheduling is not None
    names = {kernel_id(each.tid): each for each in profile.threads if each.tid}
    switches = tenants(scheduling)
    found: dict[int, list[OnCore]] = defaultdict(list)
    for core in wanted:
        own = switches[switches["cpu"] == core]
        lengths = np.diff(own["time"], append=scheduling.end)
        tids, places = np.unique(own["next_tid"], return_inverse=True)
        sums = np.bincount(places, weights=lengths, minlength=len(tids))
        for tid, time in zip(tids.tolist(), sums.tolist(), strict=True):
            if tid > 0 and (each := names.get(tid)):
                found[core].append(OnCore(each.process, each.thread, each.pid, each.tid, int(time)))
    return _longest(found)


def _longest(found: Mapping[int, list[OnCore]]) -> dict[int, tuple[OnCore, ...]]:
    return {
        core: tuple(sorted(each, key=lambda thread: (-thread.time, thread.tid))[:THREADS])
        for core, each in found.items()
    }
