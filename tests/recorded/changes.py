"""Changes of a profile after which the same is wrong with the program."""

from __future__ import annotations

import functools
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import renaming
from renaming import HOSTILE, NEUTRAL
from rewriting import LIVES, Rewriting, rewritten
from stallscope.converters.model import Frame, Profile, Sample, ThreadTimes
from stallscope.converters.model.gil import GilThread, GilTimes
from stallscope.converters.model.locks import LockPlace, LockThread, LockTimes
from stallscope.converters.model.neighbours import Neighbour
from stallscope.converters.model.processes import CpuLimit, ProcessTimes
from stallscope.converters.readers.merging import merge

ONE_OF = 20
"""One of so many events is dropped."""
Key = tuple[int, int, int, int]
"""The ids of a process and of a thread, and the so many-th uses of them."""
Names = tuple[str, str]
"""Names of a process and a thread."""


@dataclass(frozen=True)
class Changed:
    """A profile, and what was before in place of the ids and names in it."""

    profile: Profile
    ids: dict[int, int] = field(default_factory=dict)
    names: dict[Names, Names] = field(default_factory=dict)
    without_row: frozenset[object] = frozenset()
    """Threads of which a whole row was dropped."""


def _by(profile: Profile, by: Rewriting) -> Changed:
    made = rewritten(profile, by)
    ids, names = {}, {}
    for old, new in zip(profile.threads, made.threads, strict=True):
        ids |= {new.pid: old.pid, new.tid: old.tid}
        names[new.process, new.thread] = old.process, old.thread
    return Changed(made, ids, names)


def _renamed(rename: Callable[..., Rewriting], names: renaming.Names, first: int = 0) -> Callable[[Profile], Changed]:
    return lambda profile: _by(profile, rename(profile, names, first))


def shuffled(profile: Profile, seed: int) -> Changed:
    """Profile with its rows in another order."""
    order = random.Random(seed)
    rows: dict[str, Any] = {
        name: order.sample(rows, len(rows))
        for name in ("samples", "threads", "processes", "neighbours", "gil")
        if (rows := getattr(profile, name))
    }
    return Changed(replace(profile, **rows))


def with_other_ids(profile: Profile, seed: int | None) -> Changed:
    """Profile with the ids of processes and threads exchanged; without a seed, in reverse order."""
    ids = sorted({each for times in profile.threads for each in (times.pid, times.tid, times.creator)} - {-1, 0})
    new = ids[::-1] if seed is None else random.Random(seed).sample(ids, len(ids))
    of = dict(zip(ids, new, strict=True))
    return _by(profile, Rewriting(ident=lambda number: of.get(number, number)))


_TIMES: dict[type, tuple[str, ...]] = {
    ThreadTimes: ("wall", "on_cpu", "runnable"),
    Neighbour: ("on_cpu",),
    CpuLimit: ("quota_us", "period_us", "throttled_ns"),
    GilTimes: ("time", "max", "unknown"),
    GilThread: ("time",),
    LockTimes: ("time", "max", "queue"),
    LockThread: ("time",),
    LockPlace: ("time",),
}
"""Fields of parts that are judged, or told of by the same sentences."""


def doubled(profile: Profile) -> Changed:
    """All that it tells takes twice as long."""
    factors = [2 if kind.unit == "nanoseconds" else 1 for kind in profile.value_types]
    samples = [
        Sample(stack, tuple(value * factor for value, factor in zip(values, factors, strict=True)), labels)
        for stack, values, labels in profile.samples
    ]
    made = replace(
        profile,
        samples=samples,
        duration_ns=2 * profile.duration_ns,
        threads=[
            replace(_twice(times), blocked={state: 2 * time for state, time in times.blocked.items()})
            for times in profile.threads
        ],
        processes=[_slower(process) for process in profile.processes],
        neighbours=[_twice(neighbour) for neighbour in profile.neighbours],
        gil=[_with_inner(_twice(gil), _twice) for gil in profile.gil],
        locks=[_with_inner(_twice(lock), _twice) for lock in profile.locks],
    )
    return Changed(made)


def _twice(part: Any) -> Any:
    return replace(part, **{name: 2 * getattr(part, name) for name in _TIMES[type(part)]})


def _with_inner(part: Any, change: Callable[[Any], Any]) -> Any:
    inner = ("waiters", "holders", *(("places",) if isinstance(part, LockTimes) else ()))
    return replace(part, **{name: [change(each) for each in getattr(part, name)] for name in inner})


def _slower(process: ProcessTimes) -> ProcessTimes:
    latencies = process.latencies and (0, *process.latencies[:-2], sum(process.latencies[-2:]))
    return replace(process, latencies=latencies, limits=tuple(map(_twice, process.limits)))


def split_and_merged(profile: Profile, order: int = 1) -> Changed:
    """Recorded as two halves, which are merged. ``order``: -1 if the second one is read first."""
    return Changed(merge(halves(profile)[::order]))


def halves(profile: Profile) -> tuple[Profile, Profile]:
    """Threads that lived for less than half of the time are in one of them, each half of them; what is told of the
    others is half in each."""
    whole = profile.duration_ns
    short = [times for times in profile.threads if times.wall < whole // 2 or times.count > 1]
    places = {_key(times): i % 2 for i, times in enumerate(short)}
    first, second = (_half(profile, i, places) for i in (0, 1))
    begin = profile.start_ns + first.duration_ns
    return first, replace(second, start_ns=begin, duration_ns=whole - first.duration_ns, locks=[], lost={})


def _key(times: ThreadTimes) -> Key:
    return times.pid, times.tid, times.pid_life, times.tid_life


def _half(profile: Profile, half: int, places: dict[Key, int]) -> Profile:
    samples, threads = [], []
    sums = [kind.aggregate == "sum" for kind in profile.value_types]
    for sample in profile.samples:
        of = dict(sample.labels)
        pid, tid, pid_life, tid_life = (int(of.get(key, default)) for key, default in LIVES)
        place = places.get((pid, tid, pid_life, tid_life))
        if place is None:
            values = tuple(_part(v, half) if adds else v for v, adds in zip(sample.values, sums, strict=True))
            samples.append(Sample(sample.stack, values, sample.labels))
        elif place == half:
            samples.append(sample)
    for times in profile.threads:
        place = places.get(_key(times))
        if place is None:
            threads.append(_half_thread(times, half))
        elif place == half:
            threads.append(times)
    pids = {times.pid for times in threads}
    return replace(
        profile,
        samples=samples,
        threads=threads,
        duration_ns=_part(profile.duration_ns, half),
        processes=[_half_process(process, half) for process in profile.processes if process.pid in pids],
        neighbours=[replace(each, on_cpu=_part(each.on_cpu, half)) for each in profile.neighbours],
        gil=[_with_inner(_halved(gil, half), functools.partial(_halved, half=half)) for gil in profile.gil],
    )


def _part(number: int, half: int) -> int:
    """The larger part, or the rest."""
    return number // 2 if half else number - number // 2


def _half_thread(times: ThreadTimes, half: int) -> ThreadTimes:
    blocked = {state: _part(time, half) for state, time in times.blocked.items()}
    on_cpu, runnable = _part(times.on_cpu, half), _part(times.runnable, half)
    return replace(
        times,
        wall=_part(times.wall, half),
        on_cpu=on_cpu,
        runnable=runnable,
        blocked=blocked,
        switches=_part(times.switches, half),
        creator=0 if half else times.creator,
        exited=times.exited and half == 1,
    )


def _half_process(process: ProcessTimes, half: int) -> ProcessTimes:
    limits = tuple(
        replace(limit, **{name: _part(getattr(limit, name), half) for name in _COUNTED}) for limit in process.limits
    )
    return replace(process, latencies=tuple(_part(number, half) for number in process.latencies), limits=limits)


_COUNTED = ("periods", "throttled_periods", "throttled_ns")


def _halved(part: Any, half: int) -> Any:
    names = ("time", "waits", *(("unknown",) if isinstance(part, GilTimes) else ()))
    return replace(part, **{name: _part(getattr(part, name), half) for name in names})


def with_events_dropped(profile: Profile, seed: int) -> Changed:
    """Profile without one of `ONE_OF` events of each row, rounded down, and one of so many rows with fewer events, a
    whole one, if its thread loses no more of its time by it. That time is lost, as engines tell it. The accounts of
    threads stay, which are no sums of events, and so do waits that had not ended: a thread that never moves makes no
    event."""
    walls = {(times.pid, times.tid): times.wall for times in profile.threads}
    events = [_events(profile, sample) for sample in profile.samples]
    few = [i for i, number in enumerate(events) if 0 < number < ONE_OF]
    times: Counter[tuple[int, int]] = Counter()
    dropped = set()
    for i in random.Random(seed).sample(few, len(few) // ONE_OF):
        whose, time = _thread_of(profile.samples[i]), profile.samples[i].values[0]
        if (times[whose] + time) * 2 * ONE_OF <= walls.get(whose, 0):  # the same may be taken of its other rows
            times[whose] += time
            dropped.add(i)
    samples = [
        _without(profile, sample, number // ONE_OF / number if number else 0)
        for i, (sample, number) in enumerate(zip(profile.samples, events, strict=True))
        if i not in dropped
    ]
    made = replace(profile, samples=samples + _lost(profile, samples))
    return Changed(made, without_row=frozenset(_thread_of(profile.samples[i]) for i in dropped))


def _thread_of(sample: Sample) -> tuple[int, int]:
    labels = dict(sample.labels)
    return int(labels["pid"]), int(labels["tid"])


def _lost(before: Profile, left: list[Sample]) -> list[Sample]:
    """The time of each thread that is no longer in a row, if the first column is time that adds up to the thread's."""
    if before.value_types[0].name not in ("off-cpu", "wall"):
        return []
    times: Counter[tuple[tuple[str, str | int], ...]] = Counter()
    for samples, sign in ((before.samples, 1), (left, -1)):
        for sample in samples:
            if sample.label("state") != "running":
                labels = dict(sample.labels) | {"state": "other"}
                times[tuple(sorted((key, value) for key, value in labels.items() if key in _WHOSE))] += (
                    sign * sample.values[0]
                )
    rest = (0,) * (len(before.value_types) - 1)
    return [Sample((Frame("[lost]", "other"),), (time, *rest), labels) for labels, time in times.items() if time > 0]


_WHOSE = frozenset(("pid", "tid", "pid-life", "tid-life", "process", "thread", "state"))


def _events(profile: Profile, sample: Sample) -> int:
    """Waits or samples of a row that may be dropped."""
    if sample.label("open") == "yes":
        return 0
    counts = (i for i, kind in enumerate(profile.value_types) if kind.name in ("count", "samples"))
    return max((sample.values[i] for i in counts), default=0)


def _without(profile: Profile, sample: Sample, part: float) -> Sample:
    values = (
        value - int(value * part) if kind.aggregate == "sum" else value
        for value, kind in zip(sample.values, profile.value_types, strict=True)
    )
    return sample._replace(values=tuple(values))


def all_renamed(profile: Profile, names: renaming.Names, first: int = 0) -> Changed:
    """Functions, files, processes and threads."""
    made, back = profile, Changed(profile)
    for rename in (renaming.functions, renaming.files, renaming.processes, renaming.threads):
        changed = _by(made, rename(made, names, first))
        before = {new: back.names.get(old, old) for new, old in changed.names.items()}
        made, back = changed.profile, Changed(changed.profile, names=before)
    return back


SEEDS = (1, 2)
SAME: dict[str, Callable[[Profile], Changed]] = {
    "functions renamed": _renamed(renaming.functions, NEUTRAL),
    **{f"functions with hostile names {i}": _renamed(renaming.functions, HOSTILE, i) for i in (0, 6, 12)},
    "files renamed": _renamed(renaming.files, NEUTRAL),
    **{f"files with hostile names {i}": _renamed(renaming.files, HOSTILE, i) for i in (0, 1, 2)},
    "processes renamed": _renamed(renaming.processes, NEUTRAL),
    **{f"processes with hostile names {i}": _renamed(renaming.processes, HOSTILE, i) for i in (0, 4)},
    "threads renamed": _renamed(renaming.threads, NEUTRAL),
    **{f"threads with hostile names {i}": _renamed(renaming.threads, HOSTILE, i) for i in (0, 1)},
    "all renamed": functools.partial(all_renamed, names=HOSTILE, first=3),
    **{f"rows shuffled {seed}": functools.partial(shuffled, seed=seed) for seed in SEEDS},
    "ids reversed": functools.partial(with_other_ids, seed=None),
    "ids shuffled": functools.partial(with_other_ids, seed=1),
    "split in two and merged": split_and_merged,
    "merged in reverse order": functools.partial(split_and_merged, order=-1),
}
"""Changes after which all verdicts are the same."""
ALIKE: dict[str, Callable[[Profile], Changed]] = {
    "all times doubled": doubled,
    **{f"5 % of the events dropped {seed}": functools.partial(with_events_dropped, seed=seed) for seed in SEEDS},
}
"""Changes after which some numbers are a little nearer to thresholds, or further from them."""
CHANGES = SAME | ALIKE
