"""Adds up the waits of a profile: per thread and place."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import NamedTuple, TypeVar

from ..model import Labels, Profile, Stack, ThreadTimes
from ..model.samples import least
from ..model.sites import Site
from ..model.states import OTHER, RUNNABLE, RUNNING
from ..model.wait_objects import LABEL
from .identity import is_sum
from .memory_waits import waits_on
from .server_waits import server_of
from .shared_frames import Shared, shared_frames
from .stacks import Stacks
from .wait_sites import site_of
from .waits import Wait, Waits
from .wakers import Waker, Wakers, waker_pid

_TIMES = ("wall", "off-cpu", "blocked")
"""Possible names of the time column."""

_Key = TypeVar("_Key")
Thread = tuple[int, int]
"""(pid, tid)"""
LOST: Thread = (0, 0)
"""Stand-in for a thread whose samples are lost time of other threads."""


class Giver(NamedTuple):
    """A place in a thread that ends the waits of others there."""

    frames: tuple[str, ...]
    """See `wakers.Waker`."""
    tid: int
    """The kernel's id; 0 if it is not known."""


_SLEEPS_OF_PYTHON = frozenset(("time_sleep", "pysleep"))
"""Functions of CPython that are what a script calls as ``time.sleep`` (Modules/timemodule.c)."""


class Place:
    """A wait site, a state, and what the wait is for. Hashed and compared often, so its hash is found out once."""

    __slots__ = ("_first", "_hash", "_like", "_others", "_own_call", "_stack", "_time", "kind", "site", "state", "wait")

    def __init__(self, state: str, site: Site, wait: Wait, like: Place | None = None) -> None:
        """``like``: the place of which it is another view: it has the stacks."""
        self.state = state
        self.site = site
        self.wait = wait
        self.kind = wait.kind
        """See `wait_kinds`."""
        self._hash = hash((state, site))
        self._first: Stack | None = None
        self._time = 0
        """The time in the first stack: most places have no other one."""
        self._others: dict[int, tuple[int, Stack]] | None = None
        """The time in each of the others, by its identity."""
        self._stack: Stack | None = None
        """Result of `stack`; None: not found out since the last stack was seen."""
        self._own_call: bool | None = None
        """Result of `is_own_call`; None: likewise."""
        self._like = like

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Place) and self._key == other._key)

    def __lt__(self, other: Place) -> bool:
        return self._key < other._key

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Place({self.state!r}, {self.site!r})"

    def seen(self, stack: Stack, time: int) -> None:
        """A thread waited here with this stack."""
        self._stack = self._own_call = None
        if self._first is None or self._first is stack:
            self._first, self._time = stack, self._time + time
            return
        if self._others is None:
            self._others = {}
        self._others[id(stack)] = self._others.get(id(stack), (0, stack))[0] + time, stack

    def as_wait(self, wait: Wait) -> Place:
        """Place like this one, in which a thread waits for something else than the place alone tells."""
        return Place(self.state, self.site, wait, self._like or self)

    @property
    def stack(self) -> Stack:
        """The stack of most of the time: all its frames, as they were recorded. () if none was. Equal stacks count as
        one, whether they are one object, as in a file that was read, or not."""
        if self._like:
            return self._like.stack
        if self._first is None or self._others is None:
            return self._first or ()
        if self._stack is None:
            self._stack = self._most()
        return self._stack

    @property
    def is_own_call(self) -> bool:
        """Whether the program itself, and no library, makes the call in which it waits."""
        if self._like:
            return self._like.is_own_call
        if self._own_call is None:
            parts = Stacks().of(self.stack)
            callers = (told for told in reversed(parts.user[: parts.end]) if not told.is_plumbing)
            caller = next(callers, None)
            if caller and caller.bare in _SLEEPS_OF_PYTHON and (script := next(callers, None)) and script.is_python:
                caller = script
            self._own_call = caller is not None and caller.is_own
        return self._own_call

    def _most(self) -> Stack:
        """The stack of most of the time, of several."""
        assert self._first is not None and self._others is not None
        times: Counter[tuple[object, ...]] = Counter()
        stacks: dict[tuple[object, ...], Stack] = {}
        for time, stack in ((self._time, self._first), *self._others.values()):
            key = _told(stack)
            times[key] += time
            stacks[key] = stack
        return stacks[max(times, key=lambda key: (times[key], key))]

    @property
    def _key(self) -> tuple[str, Site, Wait]:
        return self.state, self.site, self.wait

    @property
    def has_user_frames(self) -> bool:
        return self.wait.has_user_frames


def _told(stack: Stack) -> tuple[object, ...]:
    """Frames of a stack as they are shown: they can be compared, and do not have addresses."""
    shown = ((each.name, each.kind, each.module.path if each.module else "", each.file, each.line) for each in stack)
    return tuple(shown)


@dataclass(slots=True)
class Sum:
    """Sums of intervals, in ns."""

    time: int = 0
    count: int = 0
    min: int = 0
    max: int = 0
    open_time: int = 0
    open_count: int = 0
    samples: int = 0
    """Number of samples that the sums rest on; 0 if the waits were counted."""
    wakers: dict[Waker, int] = field(default_factory=dict)
    """Time by who ended the waits, if that was recorded."""
    objects: dict[int, int] | None = None
    """Time by what the waits are on (`model.wait_objects`), as far as that is known: of most waits it is not."""
    by_peers: dict[tuple[int, int], int] | None = None
    """Time of waits on an epoll descriptor (its number) that a process at the other end of one of its connections (its
    pid) has ended."""
    givers: dict[Giver, int] | None = None
    """Time of waits by the functions and threads that ended them, without those that an end of a thread has ended."""

    def copy(self) -> Sum:
        """Sum that can be added to without a change of this one."""
        objects, by_peers, givers = _copy(self.objects), _copy(self.by_peers), _copy(self.givers)
        return replace(self, wakers=dict(self.wakers), objects=objects, by_peers=by_peers, givers=givers)

    def add(self, other: Sum) -> None:
        self.min = least(self.min, other.min)
        self.max = max(self.max, other.max)
        self.time += other.time
        self.count += other.count
        self.open_time += other.open_time
        self.open_count += other.open_count
        self.samples += other.samples
        for waker, time in other.wakers.items():
            self.woken_by(waker, time)
        for number, time in (other.objects or {}).items():
            self.on(number, time)
        for (number, pid), time in (other.by_peers or {}).items():
            self.ended_by_peer(number, pid, time)
        for giver, time in (other.givers or {}).items():
            self.given_by(giver, time)

    def add_sample(self, figures: tuple[int, ...], is_open: bool) -> None:
        """``figures``: time, number, the shortest and the longest wait, samples. ``is_open``: it has not ended."""
        time, count, shortest, longest, samples = figures
        self.min = least(self.min, shortest)
        self.max = max(self.max, longest)
        self.time += time
        self.count += count
        self.samples += samples
        if is_open:
            self.open_time += time
            self.open_count += count

    def on(self, number: int, time: int) -> None:
        """Time of waits on this object."""
        if self.objects is None:
            self.objects = {}
        self.objects[number] = self.objects.get(number, 0) + time

    def ended_by_peer(self, number: int, pid: int, time: int) -> None:
        """Time of waits on this object that a process at another end has ended."""
        if self.by_peers is None:
            self.by_peers = {}
        self.by_peers[number, pid] = self.by_peers.get((number, pid), 0) + time

    def given_by(self, giver: Giver, time: int) -> None:
        """Time of waits that a thread has ended in these functions."""
        if self.givers is None:
            self.givers = {}
        self.givers[giver] = self.givers.get(giver, 0) + time

    def woken_by(self, waker: Waker, time: int) -> None:
        self.wakers[waker] = self.wakers.get(waker, 0) + time


def _copy(times: dict[_Key, int] | None) -> dict[_Key, int] | None:
    return dict(times) if times else None


Sums = dict[Thread, dict[Place, Sum]]


def merged_threads(times: list[ThreadTimes]) -> dict[Thread, ThreadTimes]:
    """Threads by (pid, tid). A thread id that was used twice counts as one thread with both times."""
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
                exited=old.exited or new.exited,
                count=old.count + new.count if is_sum(new.tid) else 1,
            )
        threads[new.pid, new.tid] = new
    return threads


def add_up_waits(profile: Profile, threads: dict[Thread, ThreadTimes]) -> Sums:
    """Waits per thread; a thread found only in samples is added to ``threads``, without times."""
    columns = _columns(profile)
    time, figures_of = columns[0], itemgetter(*columns)
    known = _Labelled(threads)
    # The stack of a preempted thread shows no wait.
    wakers = Wakers()
    woken = next((i for i, value_type in enumerate(profile.value_types) if value_type.name == "blocked"), -1)
    waits = (
        (wakers.own(sample.stack), sample.values[time]) for sample in profile.samples if known.of(sample.labels).is_wait
    )
    places = _Places(shared_frames(waits), {each.id for each in profile.objects if each.mapped})
    peers = {each.id: {peer.pid for peer in each.peers} for each in profile.objects if each.peers}
    for sample in profile.samples:
        of = known.of(sample.labels)
        if of.is_running:
            continue
        own = wakers.own(sample.stack)
        place = places.of(own, of.state)
        total = of.sums.get(place)
        if total is None:
            total = of.sums[place] = Sum()
        if own is not sample.stack and (waker := wakers.of(sample)):
            total.woken_by(waker, sample.values[woken])
            if waker.frames and not wakers.is_exit(sample.stack):
                total.given_by(Giver(waker.frames, _number(sample.label("waker_tid"))), sample.values[woken])
            if of.object in peers and (pid := waker_pid(sample)) in peers[of.object]:
                total.ended_by_peer(of.object, pid, sample.values[woken])
        if own is sample.stack or woken == time:  # else the wait is in another sample, too
            total.add_sample(figures_of((*sample.values, 0)), of.is_open)
            place.seen(own, sample.values[time])
            if of.is_wait and (number := places.waits_on(own, of.object)):
                total.on(number, sample.values[time])
    return known.sums


def _columns(profile: Profile) -> tuple[int, int, int, int, int]:
    """Columns of time, number, shortest and longest wait, and samples; -1 (a 0 after all others) if there are none."""
    time = next(i for i, value_type in enumerate(profile.value_types) if value_type.name in _TIMES)
    samples = next((i for i, value_type in enumerate(profile.value_types) if value_type.name == "samples"), -1)
    return time, profile.index("count"), profile.index("min"), profile.index("max"), samples


@dataclass(slots=True)
class _Of:
    """Labels of samples, read."""

    state: str
    is_open: bool
    is_running: bool
    is_wait: bool
    sums: dict[Place, Sum]
    """Sums of the thread that has these labels, by place."""
    object: int
    """Id of what the wait is on; 0: not known."""


class _Labelled:
    """Cached by identity: samples share their labels."""

    def __init__(self, threads: dict[Thread, ThreadTimes]) -> None:
        self.sums: Sums = {}
        self._threads = threads
        self._known: dict[int, _Of] = {}

    def of(self, labels: Labels) -> _Of:
        return self._known.get(id(labels)) or self._read(labels)

    def _read(self, given: Labels) -> _Of:
        labels = dict(given)
        state = str(labels.get("state", OTHER))
        is_running = state == RUNNING
        thread = _number(labels.get("pid")), _number(labels.get("tid"))
        if not is_running and thread not in self._threads:
            process, name = str(labels.get("process", "?")), str(labels.get("thread", "?"))
            self._threads[thread] = ThreadTimes(thread[0], process, thread[1], name, 0, 0, 0, {})
        is_wait = not str(labels.get("state")).startswith((RUNNING, RUNNABLE))
        sums = {} if is_running else self.sums.setdefault(thread, {})
        number = _number(labels.get(LABEL))
        found = self._known[id(given)] = _Of(state, labels.get("open") == "yes", is_running, is_wait, sums, number)
        return found


def _number(label: str | int | None) -> int:
    return label if isinstance(label, int) else 0


class _Places:
    """Cached by identity, too: samples share their stacks, and hashing 40 frames costs more than it saves."""

    def __init__(self, shared: Shared, mapped: Container[int]) -> None:
        """``mapped``: ids of what page faults were on."""
        self._stacks, self._mapped = Stacks(shared), mapped
        self._waits = Waits()
        self._known: dict[str, dict[int, Place]] = defaultdict(dict)
        self._waits_on: dict[tuple[int, int], int] = {}
        self._places: dict[Place, Place] = {}

    def of(self, stack: Stack, state: str) -> Place:
        known = self._known[state]
        return known.get(id(stack)) or known.setdefault(id(stack), self._find(stack, state))

    def waits_on(self, stack: Stack, number: int) -> int:
        """See `memory_waits.waits_on`; else the server that the kernel's functions tell."""
        key = id(stack), number
        if key not in self._waits_on:
            self._waits_on[key] = waits_on(stack, number, self._mapped) or server_of(stack)
        return self._waits_on[key]

    def _find(self, stack: Stack, state: str) -> Place:
        parts = self._stacks.of(stack)
        site = Site((parts.parked,), parts.kernel) if parts.parked else site_of(parts)
        if state.startswith(RUNNABLE):
            # It no longer waits for what the kernel stack shows.
            site = Site(site.frames, "")
        place = Place(state, site, self._waits.at(parts, state))
        return self._places.setdefault(place, place)
