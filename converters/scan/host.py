"""The host in a scan: what is short, what interrupts take, who waits for whom, who creates threads all the time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..base.text import json_text
from ..base.units import share
from ..facts import thresholds
from ..facts.contention import SECOND
from ..facts.identity import kernel_id, kernel_ids
from ..model import Profile, ThreadTimes
from ..model.pressure import ALL, CPU, IO, IRQ, MEMORY, RESOURCES, STOLEN, Interrupts, Pressure
from ..model.states import UNINTERRUPTIBLE
from ..model.waits_for import PROCESS, THREAD, WaitGraph
from ..summary.sharing import Shared
from . import interrupted
from .contended import Contended, contended
from .interrupted import Core

_WANTED = {CPU: "a core", IO: "a disk", MEMORY: "memory", IRQ: "an interrupt to end"}


@dataclass(frozen=True)
class Pair:
    """Processes of one name that wait for those of another one. Names are unescaped (hostile)."""

    waiter: str
    waiters: tuple[int, ...]
    """Pids of these."""
    ended_by: str
    enders: tuple[int, ...]
    time: int
    """ns of waits that end with them, at the end of the chain."""


@dataclass(frozen=True)
class Made:
    """Threads of one process that began, and ended, during the trace. The name is unescaped (hostile)."""

    process: str
    pid: int
    began: int
    ended: int
    on_cpu: int
    """ns on cores of those that began."""
    runnable: int
    """ns for which those that began waited for a core."""


@dataclass(frozen=True)
class Host:
    """Facts of a scan on the host. Times in ns."""

    duration: int
    pressure: tuple[Pressure, ...] = ()
    """One for each resource and control group, the host first; () if the kernel has none, and of old captures."""
    interrupts: tuple[Interrupts, ...] = ()
    pairs: tuple[Pair, ...] = ()
    """The longest waits first."""
    made: tuple[Made, ...] = ()
    """Processes that created most threads first."""
    contended: tuple[Contended, ...] = ()
    """Calls and locks for which several wait at a time, the longest time first."""
    cores: tuple[Core, ...] = ()
    """Cores from which time was taken, those with most first; () of old captures."""
    outsiders: tuple[str, ...] = ()
    """Sentences on processes outside of a job that its ranks wait for."""
    own: Mapping[str, int] = field(default_factory=dict)
    """Time for which the traced threads themselves waited, by resource."""
    polling: tuple[int, int] = (0, 0)
    """Time for which ranks of a job that stands still run or wait for a core, as they poll; and of all threads."""

    def to_json(self) -> dict[str, Any]:
        """Plain data: shares as fractions of 1, null for what is not known."""
        return {
            "pressure": [_pressure_json(each) for each in self.pressure] if self.pressure else None,
            "interrupts": [_interrupts_json(each) for each in self.interrupts] if self.interrupts else None,
            "waits_for": [
                {
                    "waiter": json_text(each.waiter),
                    "waiter_pids": kernel_ids(each.waiters),
                    "ended_by": json_text(each.ended_by),
                    "ended_by_pids": kernel_ids(each.enders),
                    "time_ns": each.time,
                }
                for each in self.pairs
            ],
            "threads_made": [
                {
                    "process": json_text(each.process),
                    "pid": kernel_id(each.pid),
                    "began": each.began,
                    "ended": each.ended,
                    "began_per_second": round(_per_second(each.began, self.duration), 3) if self.duration else None,
                    "on_cpu_ns": each.on_cpu,
                    "runnable_ns": each.runnable,
                }
                for each in self.made
            ],
            "contended": [each.to_json() for each in self.contended],
            "cores": [each.to_json() for each in self.cores],
            "outsiders": [json_text(each) for each in self.outsiders],
        }


def host_of(
    profile: Profile,
    graph: WaitGraph | None,
    shared: Sequence[Shared] = (),
    outsiders: tuple[str, ...] = (),
    polling: Collection[int] = (),
) -> Host:
    """The host of a profile. ``graph``: who waits for whom; None if that was not recorded. ``shared``: calls that
    several processes were in at a time. ``outsiders``: sentences on processes outside of a job. ``polling``: ranks that
    do nothing but poll (own ids)."""
    return Host(
        profile.duration_ns,
        tuple(_pressure(profile.pressure)),
        tuple(_interrupts(profile.interrupts)),
        tuple(_pairs(graph)) if graph else (),
        tuple(_made(profile.threads)),
        contended(shared, profile.locks, profile.file_locks, profile.duration_ns),
        interrupted.cores(profile),
        outsiders,
        _own(profile.threads),
        _polling(profile.threads, polling),
    )


def sentences(host: Host) -> tuple[str, ...]:
    """Sentences on what is short on the host, and what is taken from its cores, if it matters. Unescaped (hostile)."""
    cores = interrupted.sentences(host.cores, host.interrupts)
    return (*_short(host), *_taken(host.interrupts), *cores)


def _own(threads: Iterable[ThreadTimes]) -> dict[str, int]:
    """Time that these threads waited for cores, and for disks: what waits for a disk cannot be interrupted. Empty if
    there are none."""
    threads = list(threads)
    blocked = sum(each.blocked.get(UNINTERRUPTIBLE, 0) for each in threads)
    return {CPU: sum(each.runnable for each in threads), IO: blocked} if threads else {}


def _polling(threads: Iterable[ThreadTimes], pids: Collection[int]) -> tuple[int, int]:
    """See `Host.polling`."""
    wanted = [(each.pid, each.on_cpu + each.runnable) for each in threads] if pids else []
    return sum(time for pid, time in wanted if pid in pids), sum(time for _, time in wanted)


def _short(host: Host) -> list[str]:
    """Sentences on resources: for each the host, or else the group in which it is shortest; none on what the traced
    threads hardly wait for."""
    told = []
    for resource in RESOURCES:
        if host.own.get(resource, host.duration) < thresholds.PRESSURE_OWN * host.duration:
            continue
        own = [each for each in host.pressure if each.resource == resource and each.elapsed]
        high = [each for each in own if each.some >= _least(resource) * each.elapsed]
        if not high:
            continue
        most = next((each for each in high if not each.cgroup), max(high, key=lambda each: each.some / each.elapsed))
        where = f" in the control group {most.cgroup}" if most.cgroup else ""
        full = f", all of them for {share(most.full, most.elapsed)}" if most.full else ""
        why = ""
        polls, wanted = host.polling
        if resource == CPU and wanted and polls >= thresholds.MOSTLY * wanted:
            part = share(polls, wanted)
            why = f": {part} of the time that is run or waited for one is of ranks that poll while they stand still"
        told.append(
            f"Tasks{where} wait for {_WANTED[resource]} for {share(most.some, most.elapsed)} of the time{full}{why}."
        )
    return told


def _least(resource: str) -> float:
    return {
        CPU: thresholds.PRESSURE_CPU,
        IO: thresholds.PRESSURE_IO,
        MEMORY: thresholds.PRESSURE_MEMORY,
        IRQ: thresholds.PRESSURE_IRQ,
    }[resource]


def _taken(found: Sequence[Interrupts]) -> list[str]:
    totals = {each.kind: each for each in found if not each.name and each.capacity}
    told = []
    handlers = [each for each in totals.values() if each.kind != STOLEN]
    if handlers and sum(each.time for each in handlers) >= thresholds.INTERRUPTED * handlers[0].capacity:
        parts = " and ".join(f"{each.kind} ones {share(each.time, each.capacity)}" for each in handlers)
        most = next((each.name for each in found if each.name), "")
        source = f"; most come from {most}" if most else ""
        told.append(f"Interrupts take the cores' time: {parts}{source}.")
    stolen = totals.get(STOLEN)
    if stolen and stolen.time >= thresholds.STOLEN_TIME * stolen.capacity:
        part = share(stolen.time, stolen.capacity)
        told.append(f"The host of this virtual machine gives {part} of its cores' time to others.")
    return told


def _per_second(number: int, duration: int) -> float:
    return number * SECOND / duration


def _pressure(found: Iterable[Pressure]) -> list[Pressure]:
    """Adds up those of merged captures."""
    sums: dict[tuple[str, str], Pressure] = {}
    for each in found:
        known = sums.get(key := (each.resource, each.cgroup))
        if known is None:
            sums[key] = Pressure(each.resource, each.some, each.full, each.elapsed, each.cgroup)
        else:
            known.some, known.full, known.elapsed = (
                known.some + each.some,
                known.full + each.full,
                known.elapsed + each.elapsed,
            )
    return sorted(sums.values(), key=lambda each: (each.cgroup, RESOURCES.index(each.resource)))


def _interrupts(found: Iterable[Interrupts]) -> list[Interrupts]:
    """Adds up those of all cores of merged captures: all of a kind first, then the sources with most."""
    sums: dict[tuple[str, str], Interrupts] = {}
    for each in (every for every in found if every.core == ALL):
        known = sums.setdefault((each.kind, each.name), Interrupts(each.kind, each.name, 0, 0, 0))
        known.time += each.time
        known.count += each.count
        known.capacity += each.capacity
    return sorted(sums.values(), key=lambda each: (bool(each.name), -each.count if each.name else 0))


def _pairs(graph: WaitGraph) -> list[Pair]:
    times: Counter[tuple[str, str]] = Counter()
    pids: dict[tuple[str, str], tuple[set[int], set[int]]] = defaultdict(lambda: (set(), set()))
    for (victim, end), time in graph.ends.items():
        kinds = {victim.kind, end.kind}
        if not kinds <= {THREAD, PROCESS} or victim.pid == end.pid:
            continue
        names = graph.names[victim][0], graph.names[end][0]
        times[names] += time
        pids[names][0].add(victim.pid)
        pids[names][1].add(end.pid)
    found = [
        Pair(names[0], tuple(sorted(pids[names][0])), names[1], tuple(sorted(pids[names][1])), time)
        for names, time in times.items()
        if time > 0
    ]
    return sorted(found, key=lambda each: (-each.time, each.waiter, each.ended_by))[: thresholds.NODES_KEPT]


def _made(threads: Iterable[ThreadTimes]) -> list[Made]:
    by_process: dict[int, list[ThreadTimes]] = defaultdict(list)
    for times in threads:
        if times.pid and times.creator and times.tid != times.pid:
            by_process[times.pid].append(times)
    found = [
        Made(
            own[0].process,
            pid,
            sum(times.count for times in own),
            sum(times.count for times in own if times.exited),
            sum(times.on_cpu for times in own),
            sum(times.runnable for times in own),
        )
        for pid, own in by_process.items()
    ]
    return sorted(found, key=lambda each: (-each.began, each.pid))[: thresholds.NODES_KEPT]


def _pressure_json(each: Pressure) -> dict[str, Any]:
    return {
        "resource": each.resource,
        "cgroup": json_text(each.cgroup) or None,
        "some_ns": each.some,
        "full_ns": each.full,
        "elapsed_ns": each.elapsed,
        "some_share": _share(each.some, each.elapsed),
        "full_share": _share(each.full, each.elapsed),
    }


def _interrupts_json(each: Interrupts) -> dict[str, Any]:
    return {
        "kind": each.kind,
        "source": json_text(each.name) or None,
        "time_ns": None if each.name else each.time,
        "count": None if each.kind == STOLEN else each.count,
        "share": None if each.name else _share(each.time, each.capacity),
    }


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 6) if whole else None
