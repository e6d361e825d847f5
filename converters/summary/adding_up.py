"""Adds up the waits of a profile: per thread and place."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import NamedTuple

from ..model import Profile, Sample, Stack, ThreadTimes
from ..model.samples import least
from ..model.states import OTHER, RUNNABLE, RUNNING
from .shared_frames import Shared, shared_frames
from .wait_kinds import kind_of
from .wait_sites import Site, site

_TIMES = ("wall", "off-cpu")
"""Possible names of the time column."""

Thread = tuple[int, int]
"""(pid, tid)"""


class Place(NamedTuple):
    """A wait site and a state."""

    state: str
    site: Site

    @property
    def kind(self) -> str:
        """See `wait_kinds`."""
        return kind_of(self.state, self.site.frames, self.site.kernel)

    @property
    def has_user_frames(self) -> bool:
        # Placeholders for a missing stack: [no stack], [not started yet].
        return any(frame[:1] != "[" or " " not in frame for frame in self.site.frames)


@dataclass(slots=True)
class Sum:
    """Sums of intervals, in ns."""

    time: int = 0
    count: int = 0
    min: int = 0
    max: int = 0
    open_time: int = 0
    open_count: int = 0

    def add(self, other: Sum) -> None:
        self.min = least(self.min, other.min)
        self.max = max(self.max, other.max)
        self.time += other.time
        self.count += other.count
        self.open_time += other.open_time
        self.open_count += other.open_count


Sums = dict[Thread, dict[Place, Sum]]


def merged_threads(times: list[ThreadTimes]) -> dict[Thread, ThreadTimes]:
    """By (pid, tid). A thread id that was used twice counts as one thread with both times."""
    threads: dict[Thread, ThreadTimes] = {}
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
                switches=old.switches + new.switches,
            )
        threads[new.pid, new.tid] = new
    return threads


def add_up_waits(profile: Profile, threads: dict[Thread, ThreadTimes]) -> Sums:
    """Waits per thread; a thread found only in samples is added to ``threads``, without times."""
    columns = _columns(profile)
    time = columns[0]
    # The stack of a preempted thread shows no wait.
    waits = [sample for sample in profile.samples if not str(sample.label("state")).startswith((RUNNING, RUNNABLE))]
    sites = _Sites(shared_frames((sample.stack, sample.values[time]) for sample in waits))
    sums: Sums = defaultdict(lambda: defaultdict(Sum))
    for sample in profile.samples:
        labels = dict(sample.labels)
        if labels.get("state") == RUNNING:
            continue
        thread = _number(labels.get("pid")), _number(labels.get("tid"))
        if thread not in threads:
            process, name = str(labels.get("process", "?")), str(labels.get("thread", "?"))
            threads[thread] = ThreadTimes(thread[0], process, thread[1], name, 0, 0, 0, {})
        state = str(labels.get("state", OTHER))
        place = Place(state, sites.of(sample.stack, state))
        sums[thread][place].add(_sample_sum(sample, columns, labels.get("open") == "yes"))
    return sums


def _columns(profile: Profile) -> tuple[int, int, int, int]:
    time = next(i for i, value_type in enumerate(profile.value_types) if value_type.name in _TIMES)
    return time, profile.index("count"), profile.index("min"), profile.index("max")


def _number(label: str | int | None) -> int:
    return label if isinstance(label, int) else 0


class _Sites:
    """Cached by identity: samples share their stacks, and hashing 40 frames costs more than it saves."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._known: dict[int, Site] = {}

    def of(self, stack: Stack, state: str) -> Site:
        found = self._known.get(id(stack))
        if found is None:
            found = self._known[id(stack)] = site(stack, self._shared)
        # A runnable thread no longer waits for what the kernel stack shows.
        return Site(found.frames, "") if state.startswith(RUNNABLE) else found


def _sample_sum(sample: Sample, columns: tuple[int, int, int, int], is_open: bool) -> Sum:
    time, count, least, most = (sample.values[i] for i in columns)
    return Sum(time, count, least, most, time if is_open else 0, count if is_open else 0)
