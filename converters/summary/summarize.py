"""Adds up the samples of a profile of the scheduler: per thread, then equal waits of all threads together."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace

from ..base.errors import StallscopeError
from ..model import Profile, Sample, Stack, ThreadTimes
from ..model.samples import least
from ..model.states import BLOCKED, IDLE, INTERRUPTIBLE, OTHER, RUNNABLE, RUNNING
from .answer import answer
from .contention import contention_of
from .figures import IDLE_PERCENT, Process, Summary, Times, Wait
from .people import alike_of, who_of
from .running import ON_CPU, add_up_running
from .trouble import trouble
from .wait_sites import Site, site

_TIMES = ("wall", "off-cpu")
"""What the column of time may be called."""
_OFF_CPU = {"count", "min", "max"}
"""Columns that waits have beside it."""

_Thread = tuple[int, int]
"""(pid, tid)"""


@dataclass(slots=True)
class _Sum:
    time: int = 0
    count: int = 0
    min: int = 0
    max: int = 0
    open_time: int = 0
    open_count: int = 0

    def add(self, other: _Sum) -> None:
        self.min = least(self.min, other.min)
        self.max = max(self.max, other.max)
        self.time += other.time
        self.count += other.count
        self.open_time += other.open_time
        self.open_count += other.open_count


_Place = tuple[str, Site]
"""(state, site)"""
_Sums = dict[_Thread, dict[_Place, _Sum]]


def summarize(profile: Profile) -> Summary:
    """The summary of a profile of off-CPU time, of on-CPU samples, or of both.

    The first needs the value types ``count``, ``min`` and ``max`` beside the time, the second ``samples``;
    StallscopeError when there is neither. Shares of threads come from ``profile.threads``; where a thread is not
    among them they are unknown, never guessed.
    """
    names = {value_type.name for value_type in profile.value_types}
    if not (names >= _OFF_CPU or names >= ON_CPU):
        raise StallscopeError(
            "the profile is neither of off-CPU time nor of on-CPU samples",
            "record it with trace-offcpu, trace-oncpu or trace-wall",
        )
    threads = _merged_threads(profile.threads)
    sums = _sum_samples(profile, threads) if names >= _OFF_CPU else {}
    running = add_up_running(profile, threads) if names >= ON_CPU else ()
    idle = _idle_places(sums, threads)
    waits = _group(sums, threads, idle)
    summary = Summary(
        title=profile.title,
        host=profile.host,
        start_ns=profile.start_ns,
        duration_ns=profile.duration_ns,
        answer=(),
        processes=_processes(threads),
        times=_times(list(threads.values())),
        active=_times([times for thread, times in threads.items() if _is_active(thread, sums, idle, times.wall)]),
        waits=tuple(sorted(waits, key=lambda w: (w.idle, -w.time, w.frames, w.kernel, w.state))),
        running=running,
        weight=profile.value_types[0] if names >= ON_CPU else None,
        lost=dict(profile.lost),
        comments=tuple(profile.comments),
    )
    contention = contention_of(profile)
    return replace(summary, answer=answer(summary), trouble=trouble(contention, profile.threads), contention=contention)


def _merged_threads(times: list[ThreadTimes]) -> dict[_Thread, ThreadTimes]:
    """By (pid, tid). A thread id that was used twice counts as one thread with both times."""
    threads: dict[_Thread, ThreadTimes] = {}
    for new in times:
        old = threads.get((new.pid, new.tid))
        if old is not None:
            states = {*old.blocked, *new.blocked}
            new = replace(
                new,
                wall=old.wall + new.wall,
                on_cpu=old.on_cpu + new.on_cpu,
                runnable=old.runnable + new.runnable,
                blocked={state: old.blocked.get(state, 0) + new.blocked.get(state, 0) for state in states},
            )
        threads[new.pid, new.tid] = new
    return threads


def _sum_samples(profile: Profile, threads: dict[_Thread, ThreadTimes]) -> _Sums:
    """Waits per thread; a thread that only the samples know is added to ``threads``, without times."""
    columns = _columns(profile)
    sites: dict[int, Site] = {}
    sums: _Sums = defaultdict(lambda: defaultdict(_Sum))
    for sample in profile.samples:
        labels = dict(sample.labels)
        if labels.get("state") == RUNNING:
            continue
        thread = _number(labels.get("pid")), _number(labels.get("tid"))
        if thread not in threads:
            process, name = str(labels.get("process", "?")), str(labels.get("thread", "?"))
            threads[thread] = ThreadTimes(thread[0], process, thread[1], name, 0, 0, 0, {})
        state = str(labels.get("state", OTHER))
        place = state, _site_of(sample.stack, state, sites)
        sums[thread][place].add(_sample_sum(sample, columns, labels.get("open") == "yes"))
    return sums


def _columns(profile: Profile) -> tuple[int, int, int, int]:
    time = next(i for i, value_type in enumerate(profile.value_types) if value_type.name in _TIMES)
    return time, profile.index("count"), profile.index("min"), profile.index("max")


def _number(label: str | int | None) -> int:
    return label if isinstance(label, int) else 0


def _site_of(stack: Stack, state: str, known: dict[int, Site]) -> Site:
    """Cached by identity: samples share their stacks, and hashing 40 frames costs more than it saves."""
    found = known.get(id(stack))
    if found is None:
        found = known[id(stack)] = site(stack)
    # One who waits for a core no longer waits for what the kernel stack shows.
    return Site(found.frames, "") if state.startswith(RUNNABLE) else found


def _sample_sum(sample: Sample, columns: tuple[int, int, int, int], is_open: bool) -> _Sum:
    time, count, least, most = (sample.values[i] for i in columns)
    return _Sum(time, count, least, most, time if is_open else 0, count if is_open else 0)


def _idle_places(sums: _Sums, threads: dict[_Thread, ThreadTimes]) -> dict[_Thread, set[_Place]]:
    """Where threads do nothing but wait to be told by others.

    A user thread is idle when it sits in one such place nearly all the time. One of the kernel's own is idle
    whenever it waits to be told: for work to come.
    """
    idle: dict[_Thread, set[_Place]] = {}
    for thread, places in sums.items():
        told = {place: total.time for place, total in places.items() if _told_by_others(place)}
        if any(_has_user_frames(where) for _, where in places):
            enough = threads[thread].wall * IDLE_PERCENT
            told = {place: time for place, time in told.items() if 0 < enough <= time * 100}
        if told:
            idle[thread] = set(told)
    return idle


def _has_user_frames(where: Site) -> bool:
    return any(not frame.startswith("[") for frame in where.frames)


def _is_active(thread: _Thread, sums: _Sums, idle: dict[_Thread, set[_Place]], wall: int) -> bool:
    spent = sum(sums[thread][place].time for place in idle.get(thread, ()))
    return not 0 < wall * IDLE_PERCENT <= spent * 100


def _told_by_others(place: _Place) -> bool:
    state, where = place
    is_kernel_thread = not _has_user_frames(where)
    return state == IDLE or (state == INTERRUPTIBLE and (is_kernel_thread or where.told_by_others))


def _group(sums: _Sums, threads: dict[_Thread, ThreadTimes], idle: dict[_Thread, set[_Place]]) -> list[Wait]:
    """Equal waits of all threads together; idle threads apart from busy ones that wait in the same place."""
    groups: dict[tuple[_Place, bool], dict[_Thread, _Sum]] = defaultdict(dict)
    for thread, places in sums.items():
        for place, total in places.items():
            groups[place, place in idle.get(thread, ())][thread] = total
    alike = alike_of(threads.values())
    return [_wait(place, is_idle, members, threads, alike) for (place, is_idle), members in groups.items()]


def _wait(
    place: _Place,
    is_idle: bool,
    members: dict[_Thread, _Sum],
    threads: dict[_Thread, ThreadTimes],
    alike: Counter[tuple[str, str]],
) -> Wait:
    total = _Sum()
    for part in members.values():
        total.add(part)
    walls = [threads[thread].wall for thread in members]
    by_time = sorted(members, key=lambda thread: (-members[thread].time, thread))
    who = who_of([threads[thread] for thread in by_time])
    state, where = place
    return Wait(
        state=state,
        frames=where.frames,
        kernel=where.kernel,
        time=total.time,
        count=total.count,
        min=total.min,
        max=total.max,
        open_time=total.open_time,
        open_count=total.open_count,
        idle=is_idle,
        told_by_others=_told_by_others(place),
        processes=len({pid for pid, _ in members}),
        threads=len(members),
        threads_wall=sum(walls) if all(walls) else 0,
        threads_alike=sum(alike[kind] for kind in {(entry.process, entry.pattern) for entry in who}),
        who=who,
    )


def _processes(threads: dict[_Thread, ThreadTimes]) -> tuple[Process, ...]:
    names: dict[int, str] = {}
    for (pid, tid), times in threads.items():
        if pid == tid or pid not in names:
            names[pid] = times.process
    pids: dict[str, list[int]] = defaultdict(list)
    for pid, name in sorted(names.items()):
        pids[name].append(pid)
    by_number = sorted(pids.items(), key=lambda entry: (-len(entry[1]), entry[1]))
    return tuple(Process(name, tuple(numbers)) for name, numbers in by_number)


def _times(threads: list[ThreadTimes]) -> Times:
    blocked = dict.fromkeys(BLOCKED, 0)
    for times in threads:
        for state, time in times.blocked.items():
            blocked[state] = blocked.get(state, 0) + time
    return Times(
        threads=len(threads),
        wall=sum(times.wall for times in threads),
        on_cpu=sum(times.on_cpu for times in threads),
        runnable=sum(times.runnable for times in threads),
        blocked=blocked,
    )
