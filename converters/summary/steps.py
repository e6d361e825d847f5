"""Steps told apart: how long each takes, what its thread does in it, and what is between one and the next.

A step is a call of a function that the user named, on one thread. A call inside another one of the same function is a
part of that one. Times are those of the call's begin and end, and of the scheduler's events. Only what a thread ran
while it was on a core is known from samples.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..facts import thresholds
from ..facts.hot_sites import hot_site
from ..facts.slow_steps import slow_steps
from ..facts.wait_functions import LOADER
from ..facts.wait_sites import GAP, Sites
from ..model.call_spans import of_threads
from ..model.scheduling import NO_STACK, Array, CallName, Scheduling, Threads
from ..model.sites import Site
from ..model.steps import Reader, SlowSteps, Spent, Step, StepRun, Steps, StepWait
from ..model.thread_clocks import ThreadClocks
from .ended_waits import EndedWaits
from .step_makers import Makers

NOWHERE = Site((), "")
_MANY = 90
"""Percentile of the steps' lengths that is told."""


def steps_of(scheduling: Scheduling) -> tuple[Steps, ...]:
    """Steps by function and thread, the longest time first. Empty if no function was named."""
    of_steps = np.array([each.kind == "step" for each in scheduling.call_names], bool)
    if not of_steps.any() or not len(scheduling.calls):
        return ()
    chosen = scheduling.calls[of_steps[scheduling.calls["name"]]]
    early = chosen["begin"] < scheduling.begin
    calls, rows = of_threads(replace(scheduling, calls=chosen), Threads(scheduling.threads))
    # `of_threads` moves begins into the recording.
    cut = calls["begin"] <= scheduling.begin if early.any() else np.zeros(len(calls), bool)
    clocks, places = ThreadClocks(scheduling), StepPlaces(scheduling)
    readers, found = _Readers(scheduling), []
    for own in _groups(rows, calls["name"]):
        row, name = int(rows[own[0]]), int(calls["name"][own[0]])
        own = own[_outer(calls["begin"][own], calls["end"][own])]
        whole = own[(calls["end"][own] <= scheduling.end) & ~cut[own]]
        thread = StepThread(scheduling, clocks, places, row)
        begins, ends = calls["begin"][whole], calls["end"][whole]
        made = thread.called(scheduling.call_names[name], begins, ends)
        found.append(replace(made, not_whole=len(own) - len(whole), reader=readers.of(row, begins, ends)))
    return tuple(sorted(found, key=lambda each: (-each.steps.wall, each.name, each.tid)))


class _Readers:
    """Readers of the batches of threads that wait for their loader of data."""

    def __init__(self, scheduling: Scheduling) -> None:
        self._waits = EndedWaits(scheduling)
        self._makers = Makers(scheduling, self._waits)

    def of(self, row: int, begins: Array, ends: Array) -> Reader | None:
        """``begins``, ``ends``: of the thread's steps."""
        ended = self._waits.of(row)
        stacks, which = np.unique(ended.stacks, return_inverse=True)
        for_loader = np.array([self._waits.wait(stack).job == LOADER for stack in stacks.tolist()], bool)[which]
        places = np.flatnonzero(for_loader & ended.over)
        if not len(places) or not len(begins):
            return None
        return self._makers.of(row, places, len(begins), (int(begins[0]), int(ends[-1])))


def _groups(rows: Array, names: Array) -> list[Array]:
    """The places of equal pairs, each in their order."""
    order = np.lexsort((names, rows))
    changes = (np.diff(rows[order]) != 0) | (np.diff(names[order]) != 0)
    return np.split(order, np.flatnonzero(changes) + 1) if len(order) else []


def _outer(begins: Array, ends: Array) -> Array:
    """Indices of the spans, sorted by begin, that are in no other one."""
    before = np.maximum.accumulate(np.concatenate([[-1], ends[:-1]]))
    found: Array = np.flatnonzero(begins >= before)
    return found


def _inside(times: Array, begins: Array, ends: Array) -> Array:
    """True for each of the times that is in one of the windows, which are sorted and apart."""
    if not len(begins):
        return np.zeros(len(times), bool)
    window = np.searchsorted(begins, times, side="right") - 1
    found: Array = (window >= 0) & (times < ends[np.maximum(window, 0)])
    return found


class StepPlaces:
    """Places of waits, and of samples, found out once per stack."""

    def __init__(self, scheduling: Scheduling) -> None:
        self._stacks, self._sites = scheduling.stacks, Sites()
        self._known: dict[int, Site] = {NO_STACK: NOWHERE}
        self._hot: dict[int, tuple[str, ...]] = {NO_STACK: ()}
        samples = scheduling.samples
        self._rows = Threads(scheduling.threads).rows(samples["tid"], samples["time"])
        self._samples = samples

    def of(self, stack: int) -> Site:
        """``stack``: an index, or `NO_STACK`."""
        if stack not in self._known:
            self._known[stack] = self._sites.of(self._stacks[stack])
        return self._known[stack]

    def samples(self, row: int) -> Array:
        """Samples of a thread, in their order."""
        found: Array = self._samples[self._rows == row]
        return found

    def running(self, stack: int) -> tuple[str, ...]:
        """Functions that a sample with this stack runs, without one that has no name, such as an interpreter, if its
        caller has."""
        if stack not in self._hot:
            frames = hot_site(self._stacks[stack], self._sites).frames
            while len(frames) > 1 and (frames[-1] == GAP or frames[-1].startswith("[")):
                frames = frames[:-1]
            self._hot[stack] = frames
        return self._hot[stack]


class StepThread:
    """Waits and samples of a thread in windows of its time."""

    def __init__(self, scheduling: Scheduling, clocks: ThreadClocks, places: StepPlaces, row: int) -> None:
        self._scheduling, self._clocks, self._places, self._row = scheduling, clocks, places, row
        self._begins, ends, self._stacks = clocks.waits(row)
        self._lengths = ends - self._begins
        self._samples = places.samples(row)

    def called(self, called: CallName, begins: Array, ends: Array) -> Steps:
        """Calls as steps."""
        return self.steps(called.name, begins, ends, self._follow(called, begins, ends))

    def steps(self, name: str, begins: Array, ends: Array, seen: Array) -> Steps:
        """Steps from these begins to these ends. ``seen``: true for each step but the first if nothing was missed since
        the one before."""
        thread = self._scheduling.threads[self._row]
        names = self._scheduling.names
        walls = ends - begins
        order = np.lexsort((begins, -walls))[: thresholds.SLOWEST_STEPS]
        return Steps(
            name,
            names[thread["process"]],
            int(thread["tgid"]),
            names[thread["name"]],
            int(thread["tid"]),
            self.spent(begins, ends),
            self.spent(ends[:-1][seen], begins[1:][seen]),
            int(np.median(walls)) if len(walls) else 0,
            int(walls.max(initial=0)),
            int(np.diff(begins)[seen].sum()),
            tuple(self._step(int(i), begins, ends, bool(i and seen[i - 1])) for i in order),
            # A period is one of all steps.
            slow=self._slow(begins, ends) if seen.all() else None,
            p90=int(np.percentile(walls, _MANY)) if len(walls) else 0,
        )

    def _follow(self, called: CallName, begins: Array, ends: Array) -> Array:
        """True for each step but the first if all calls since the one before were seen."""
        process = int(self._scheduling.threads[self._row]["tgid"])
        seen = np.ones(max(len(begins) - 1, 0), bool)
        for pid, begin, end in called.unwatched:
            if pid == process:
                seen &= (begins[1:] <= begin) | (ends[:-1] >= end)
        return seen

    def _slow(self, begins: Array, ends: Array) -> SlowSteps | None:
        found = slow_steps(ends - begins)
        if not found:
            return None
        others = np.setdiff1d(np.arange(len(begins)), found.places)
        spent, rest = (self.spent(begins[places], ends[places]) for places in (found.places, others))
        return SlowSteps(spent, rest, int(found.places[0]) + 1, found.every)

    def _step(self, i: int, begins: Array, ends: Array, is_next: bool) -> Step:
        before = int(begins[i] - ends[i - 1]) if is_next else None
        return Step(i + 1, int(begins[i]), self.spent(begins[i : i + 1], ends[i : i + 1]), before)

    def spent(self, begins: Array, ends: Array) -> Spent:
        """Times in windows, which are sorted and apart."""
        wall = int((ends - begins).sum())
        on_cpu, blocked = (
            int((clock(self._row, ends) - clock(self._row, begins)).sum())
            for clock in (self._clocks.on_cpu, self._clocks.blocked)
        )
        # Events that were lost can make a part longer than the whole.
        on_cpu = min(on_cpu, wall)
        waits = tuple(self._waits(begins, ends))
        return Spent(len(begins), wall, on_cpu, min(blocked, wall - on_cpu), waits, *self._ran(begins, ends))

    def _ran(self, begins: Array, ends: Array) -> tuple[int, tuple[StepRun, ...]]:
        """The number of samples in these windows, and what they show."""
        inside = _inside(self._samples["time"], begins, ends)
        counts: dict[tuple[str, ...], int] = defaultdict(int)
        stacks, numbers = np.unique(self._samples["stack"][inside], return_counts=True)
        for stack, number in zip(stacks.tolist(), numbers.tolist(), strict=True):
            counts[self._places.running(stack)] += number
        most = sorted(counts, key=lambda frames: (-counts[frames], frames))[: thresholds.STEP_PLACES]
        return int(inside.sum()), tuple(StepRun(frames, counts[frames]) for frames in most)

    def _waits(self, begins: Array, ends: Array) -> Iterator[StepWait]:
        """A thread that waits neither begins nor ends a step meanwhile, so that a wait is in one window or in none."""
        inside = _inside(self._begins, begins, ends)
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
        longest = sorted(times, key=lambda site: (-times[site], site))[: thresholds.STEP_PLACES]
        return (StepWait(site, times[site], counts[site]) for site in longest)
