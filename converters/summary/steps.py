"""Steps told apart: how long each takes, what its thread does in it, and what is between one and the next.

A step is a call of a function that the user named, on one thread. A call inside another one of the same function is a
part of that one. Times are those of the call's begin and end, and of the scheduler's events: nothing is sampled.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..base.text import json_text
from ..base.units import duration, plural, share
from ..model.call_spans import of_threads
from ..model.scheduling import NO_STACK, Array, Scheduling, Threads
from ..model.thread_clocks import ThreadClocks
from .identity import kernel_id
from .wait_sites import Site, Sites

SLOWEST = 5
"""Steps of a thread that are told one by one."""
_WAITS = 8
"""Places of waits of a thread that are kept apart."""
NOWHERE = Site((), "")


class StepWait(NamedTuple):
    """What was blocked in one place; ns."""

    site: Site
    time: int
    number: int


@dataclass(frozen=True, slots=True)
class Spent:
    """Times in ns of ``count`` steps, or of what is between them: wall = on_cpu + blocked + runnable."""

    count: int
    wall: int
    on_cpu: int
    blocked: int
    waits: tuple[StepWait, ...] = ()
    """The longest first; those of less time than these are left out."""

    @property
    def runnable(self) -> int:
        return self.wall - self.on_cpu - self.blocked

    @property
    def mean(self) -> int:
        """0 without any."""
        return self.wall // self.count if self.count else 0


class Step(NamedTuple):
    """One step. ``begin``: ns since the trace began; ``before``: ns since the step before ended, None for the first."""

    number: int
    begin: int
    spent: Spent
    before: int | None


@dataclass(frozen=True, slots=True)
class Steps:
    """Those of a function and a thread that began and ended during the recording. Names are hostile."""

    name: str
    process: str
    pid: int
    thread: str
    tid: int
    steps: Spent
    between: Spent
    """From the end of a step to the begin of the thread's next one."""
    median: int
    max: int
    span: int
    """ns from the begin of the first one to that of the last one."""
    slowest: tuple[Step, ...]
    not_whole: int = 0
    """Steps that had begun before the recording, or that had not ended."""

    @property
    def per_second(self) -> float | None:
        """None for less than two steps."""
        return (self.steps.count - 1) * 1e9 / self.span if self.steps.count > 1 and self.span else None

    def to_json(self) -> dict[str, Any]:
        """Times in ns, shares as fractions of 1, null when unknown."""
        loop = self.steps.wall + self.between.wall
        return {
            "name": json_text(self.name),
            "process": json_text(self.process),
            "pid": kernel_id(self.pid) or None,
            "thread": json_text(self.thread),
            "tid": kernel_id(self.tid) or None,
            "steps_per_second": self.per_second,
            "median_ns": self.median,
            "max_ns": self.max,
            "not_whole": self.not_whole,
            "steps": _spent_json(self.steps),
            "between": _spent_json(self.between),
            "between_share": self.between.wall / loop if loop else None,
            "slowest": [
                {"number": each.number, "begin_ns": each.begin, "before_ns": each.before, **_spent_json(each.spent)}
                for each in self.slowest
            ],
        }


def steps_of(scheduling: Scheduling) -> tuple[Steps, ...]:
    """By function and thread, the longest time first. Empty if no function was named."""
    of_steps = np.array([each.kind == "step" for each in scheduling.call_names], bool)
    if not of_steps.any() or not len(scheduling.calls):
        return ()
    chosen = scheduling.calls[of_steps[scheduling.calls["name"]]]
    early = chosen["begin"] < scheduling.begin
    calls, rows = of_threads(replace(scheduling, calls=chosen), Threads(scheduling.threads))
    # `of_threads` moves begins into the recording.
    cut = calls["begin"] <= scheduling.begin if early.any() else np.zeros(len(calls), bool)
    clocks, places = ThreadClocks(scheduling), _Places(scheduling)
    found = []
    for own in _groups(rows, calls["name"]):
        row, name = int(rows[own[0]]), int(calls["name"][own[0]])
        own = own[_outer(calls["begin"][own], calls["end"][own])]
        whole = own[(calls["end"][own] <= scheduling.end) & ~cut[own]]
        thread = _Thread(scheduling, clocks, places, row)
        made = thread.steps(scheduling.call_names[name].name, calls["begin"][whole], calls["end"][whole])
        found.append(replace(made, not_whole=len(own) - len(whole)))
    return tuple(sorted(found, key=lambda each: (-each.steps.wall, each.name, each.tid)))


def _groups(rows: Array, names: Array) -> list[Array]:
    """The places of equal pairs, each in their order."""
    order = np.lexsort((names, rows))
    changes = (np.diff(rows[order]) != 0) | (np.diff(names[order]) != 0)
    return np.split(order, np.flatnonzero(changes) + 1) if len(order) else []


def _outer(begins: Array, ends: Array) -> Array:
    """Which spans, sorted by begin, are in no other one."""
    before = np.maximum.accumulate(np.concatenate([[-1], ends[:-1]]))
    found: Array = np.flatnonzero(begins >= before)
    return found


class _Places:
    """Where waits are, found out once per stack."""

    def __init__(self, scheduling: Scheduling) -> None:
        self._stacks, self._sites = scheduling.stacks, Sites()
        self._known: dict[int, Site] = {NO_STACK: NOWHERE}

    def of(self, stack: int) -> Site:
        """``stack``: an index, or `NO_STACK`."""
        if stack not in self._known:
            self._known[stack] = self._sites.of(self._stacks[stack])
        return self._known[stack]


class _Thread:
    """What a thread did in windows of its time."""

    def __init__(self, scheduling: Scheduling, clocks: ThreadClocks, places: _Places, row: int) -> None:
        self._scheduling, self._clocks, self._places, self._row = scheduling, clocks, places, row
        self._begins, ends, self._stacks = clocks.waits(row)
        self._lengths = ends - self._begins

    def steps(self, name: str, begins: Array, ends: Array) -> Steps:
        thread = self._scheduling.threads[self._row]
        names = self._scheduling.names
        walls = ends - begins
        order = np.lexsort((begins, -walls))[:SLOWEST]
        return Steps(
            name,
            names[thread["process"]],
            int(thread["tgid"]),
            names[thread["name"]],
            int(thread["tid"]),
            self._spent(begins, ends),
            self._spent(ends[:-1], begins[1:]),
            int(np.median(walls)) if len(walls) else 0,
            int(walls.max(initial=0)),
            int(begins[-1] - begins[0]) if len(begins) else 0,
            tuple(self._step(int(i), begins, ends) for i in order),
        )

    def _step(self, i: int, begins: Array, ends: Array) -> Step:
        before = int(begins[i] - ends[i - 1]) if i else None
        return Step(i + 1, int(begins[i]), self._spent(begins[i : i + 1], ends[i : i + 1]), before)

    def _spent(self, begins: Array, ends: Array) -> Spent:
        wall = int((ends - begins).sum())
        on_cpu, blocked = (
            int((clock(self._row, ends) - clock(self._row, begins)).sum())
            for clock in (self._clocks.on_cpu, self._clocks.blocked)
        )
        # Events that were lost can make a part longer than the whole.
        on_cpu = min(on_cpu, wall)
        return Spent(len(begins), wall, on_cpu, min(blocked, wall - on_cpu), tuple(self._waits(begins, ends)))

    def _waits(self, begins: Array, ends: Array) -> Iterator[StepWait]:
        """A thread that waits neither begins nor ends a step meanwhile, so that a wait is in one window or in none."""
        if not len(begins):
            return iter(())
        window = np.searchsorted(begins, self._begins, side="right") - 1
        inside = (window >= 0) & (self._begins < ends[np.maximum(window, 0)])
        times: dict[Site, int] = defaultdict(int)
        counts: dict[Site, int] = defaultdict(int)
        stacks, which = np.unique(self._stacks[inside], return_inverse=True)
        numbers = np.bincount(which, minlength=len(stacks))
        # Whole numbers are exact in doubles up to 2^53 ns.
        sums = np.bincount(which, weights=self._lengths[inside], minlength=len(stacks))
        for stack, time, number in zip(stacks.tolist(), sums.tolist(), numbers.tolist(), strict=True):
            site = self._places.of(stack)
            times[site] += int(time)
            counts[site] += number
        longest = sorted(times, key=lambda site: (-times[site], site))[:_WAITS]
        return (StepWait(site, times[site], counts[site]) for site in longest)


def sentence(found: Sequence[Steps]) -> str:
    """What is to be said of the function and thread with the longest time; "" without a whole step."""
    if not found or not found[0].steps.count:
        return ""
    first = found[0]
    spent, between = first.steps, first.between
    text = f"{plural(spent.count, 'step')} of {first.name} take {duration(spent.mean)} in the mean"
    text += f" in thread {first.tid} of {first.process}: {share(spent.on_cpu, spent.wall)} of it on a core"
    text += f", {share(spent.blocked, spent.wall)} blocked"
    if spent.waits and spent.waits[0].site.frames:
        most = spent.waits[0]
        text += f" ({share(most.time, spent.wall)} in {' → '.join(most.site.frames)})"
    if between.count:
        loop = spent.wall + between.wall
        text += f"; {duration(between.mean)} are between two steps, {share(between.wall, loop)} of the loop"
    return f"{text}."


def _spent_json(spent: Spent) -> dict[str, Any]:
    return {
        "count": spent.count,
        "wall_ns": spent.wall,
        "mean_ns": spent.mean,
        "on_cpu_ns": spent.on_cpu,
        "blocked_ns": spent.blocked,
        "runnable_ns": spent.runnable,
        "waits": [
            {
                "frames": [json_text(frame) for frame in wait.site.frames],
                "kernel_wait": json_text(wait.site.kernel),
                "time_ns": wait.time,
                "count": wait.number,
            }
            for wait in spent.waits
        ],
    }
