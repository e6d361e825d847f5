"""Steps that nobody named: a thread comes back to one wait in regular intervals, and works in between.

A step is then from an end of a wait in that place to the next one. It is found from times alone, so that it has to be
clear, and is told with its evidence: intervals that are not regular, or that a timer makes, are no steps.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..facts import thresholds
from ..facts.regular_intervals import Regular, regular
from ..facts.wait_functions import COLLECTIVE, LOADER
from ..facts.wait_kinds import CHILD, EVENTS, HELD, PEER, SLEEP, THREAD
from ..model.scheduling import Array, Scheduling
from ..model.sites import Site
from ..model.steps import Found, Steps
from ..model.thread_clocks import ThreadClocks
from .ended_waits import Ended, EndedWaits
from .step_makers import Makers
from .steps import StepPlaces, StepThread

_BORDERS = frozenset((SLEEP, THREAD, PEER, CHILD, EVENTS, HELD))
"""Kinds of waits that can be the border of two steps: not locks, which are waited for whenever others have them, nor
waits for work."""


_NO_BORDER = -1


class _Candidate(NamedTuple):
    """A place in which a thread waits regularly. Times in ns."""

    row: int
    is_main: bool
    """Whether it is the main thread of its process."""
    site: Site
    job: str
    """Part of a training job that it waits for, as in `Wait.job`."""
    regular: Regular
    ends: Array
    places: Array
    """Indices of its waits among those of the thread."""
    waited: int
    work: int
    """Time from the first end to the last in which the thread neither waits there, nor for a timer."""
    is_timed: bool


def found_steps(scheduling: Scheduling) -> tuple[Steps, ...]:
    """Steps of each process that makes some regularly, of one of its threads; those of most work first."""
    waits, places = EndedWaits(scheduling), StepPlaces(scheduling)
    processes: dict[int, list[_Candidate]] = defaultdict(list)
    for row in waits.rows(int(thresholds.PERIOD_INTERVALS) + 1):
        processes[int(scheduling.threads[row]["tgid"])] += _candidates(scheduling, waits, places, row)
    best = {pid: _longest(found) for pid, found in processes.items() if found}
    if not best:
        return ()
    clocks, makers = ThreadClocks(scheduling), Makers(scheduling, waits)
    made = []
    for each in _agreed(best):
        thread = StepThread(scheduling, clocks, places, each.row)
        seen = np.ones(len(each.ends) - 2, bool)
        steps = thread.steps("", each.ends[:-1], each.ends[1:], seen)
        others = each.job == COLLECTIVE or each.is_timed
        window = int(each.ends[0]), int(each.ends[-1])
        reader = None if others else makers.of(each.row, each.places, steps.steps.count, window)
        found = Found(each.site, each.regular.deviation, each.waited, each.is_timed)
        made.append((-each.work, replace(steps, found=found, reader=reader)))
    return tuple(steps for _, steps in sorted(made, key=lambda entry: (entry[0], entry[1].tid)))


def _candidates(scheduling: Scheduling, waits: EndedWaits, places: StepPlaces, row: int) -> Iterator[_Candidate]:
    ended = waits.of(row)
    stacks, which = np.unique(ended.stacks, return_inverse=True)
    sites: dict[tuple[Site, str], int] = {}
    of_stack = np.full(len(stacks), _NO_BORDER)
    for i, stack in enumerate(stacks.tolist()):
        wait = waits.wait(stack)
        if wait.kind in _BORDERS:
            of_stack[i] = sites.setdefault((places.of(stack), wait.job), len(sites))
    of_wait = np.where(ended.over, of_stack[which], _NO_BORDER)
    counts = np.bincount(of_wait[of_wait != _NO_BORDER], minlength=len(sites))
    thread = scheduling.threads[row]
    is_main = bool(thread["tid"] == thread["tgid"])
    life = scheduling.end - max(scheduling.begin, int(thread["begin"]))
    for (site, job), number in sites.items():
        if counts[number] <= thresholds.PERIOD_INTERVALS:
            continue
        own = np.flatnonzero(of_wait == number)
        ends = ended.ends[own]
        if ends[-1] - ends[0] < thresholds.MOSTLY * life:
            continue
        if site.frames and (found := regular(np.diff(ends))):
            candidate = _Candidate(row, is_main, site, job, found, ends, own, *_work(ended, own))
            if _works(candidate):
                yield candidate


def _work(ended: Ended, own: Array) -> tuple[int, int, bool]:
    """``waited``, ``work`` and ``is_timed`` of a candidate."""
    first, last = int(own[0]) + 1, int(own[-1]) + 1
    lengths, is_timed = ended.lengths, bool(ended.timed[own].mean() > thresholds.MOSTLY)
    waited = int(lengths[own[1:]].sum())
    elsewhere = ended.timed[first:last].copy()
    elsewhere[own[1:] - first] = False
    whole = int(ended.ends[own[-1]] - ended.ends[own[0]])
    return waited, whole - waited - int(lengths[first:last][elsewhere].sum()), is_timed


def _works(each: _Candidate) -> bool:
    """Whether the thread does something in a step: a loop that asks at each tick of a clock makes none."""
    if each.job == LOADER:
        return True
    least = thresholds.PERIOD_TIMED_WORK if each.is_timed else thresholds.PERIOD_WORK
    return each.work >= least * int(each.ends[-1] - each.ends[0])


def _longest(found: Sequence[_Candidate]) -> list[_Candidate]:
    """Places that one thread comes back to in equally long steps, the longest: what is done several times in a step can
    be regular, too. The thread is the main one, or that which works most. That a job waits for its loader of data says
    what its steps are."""
    found = [each for each in found if each.job == LOADER] or list(found)
    row = max(found, key=lambda each: (each.is_main, each.work, -each.row)).row
    own = [each for each in found if each.row == row]
    least = thresholds.PERIOD_SAME * max(each.regular.median for each in own)
    return [each for each in own if each.regular.median >= least]


def _agreed(processes: Mapping[int, Sequence[_Candidate]]) -> Iterator[_Candidate]:
    """One place of each process: that of most processes, so that the ranks of a job can be compared."""
    votes = Counter(each.site for found in processes.values() for each in found)
    waited: Counter[Site] = Counter()
    for found in processes.values():
        for each in found:
            waited[each.site] += each.waited
    for found in processes.values():
        yield max(found, key=lambda each: (votes[each.site], waited[each.site], each.site))
