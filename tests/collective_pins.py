"""Collectives made by hand, by the quantity that a threshold is compared with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from collective_calls import MS, STREAM, SYNC, Table, told
from collective_profiles import MEETINGS, one_late, pair, profile_of, spent
from job_profiles import polling_ranks
from stallscope.converters.collectives.told import Trace
from stallscope.converters.facts.who_can_end import nobody
from stallscope.converters.model import Frame
from stallscope.converters.model.collectives import Collectives
from stallscope.converters.rules.late_rank import KEPT, WANTS, LateRank, find
from stallscope.converters.rules.standing_ranks import standing_in
from stallscope.converters.summary.judging import read
from summary_profiles import EXE, FUTEX, POOL, SECOND, SLEEP, Tracee, empty, user


class Pin(NamedTuple):
    """A value below the threshold, one above, and what is found of either."""

    below: float
    above: float
    found: Callable[[float], object]


def _late(of: Collectives) -> LateRank | None:
    details = [verdict.detail for verdict in find(read(profile_of(of)).facts)]
    late = [each for each in details if isinstance(each, LateRank)]
    assert len(late) == len(details)
    return late[0] if late else None


def stands(steps: float) -> bool:
    """Whether ranks stand still of which one is missing for so many of the longest steps, of 200 ms."""
    table = Table()
    for pid, number in ((10, 5), (11, 4)):
        for step in range(number):
            table.reduce(pid, step * 200 * MS)
            table.add(pid, step * 200 * MS + MS, SYNC, STREAM, ended=step * 200 * MS + 100 * MS)
    (found,) = told(table.made(), Trace(round((800 + 200 * steps) * MS), {}))
    return bool(found.standing)


def stands_for(seconds: float) -> bool:
    """Whether they do if one is missing for so long, and steps take 10 ms."""
    table = Table()
    table.steps(10, 0)
    table.steps(11, MS, of=7)
    (found,) = told(table.made(), Trace(round(70 * MS + seconds * 1e9), {}))
    return bool(found.standing)


def meet(number: float) -> bool:
    return _late(replace(one_late(), meetings=round(number))) is not None


def mostly(share: float) -> bool:
    found = _late(one_late(last=round(share * MEETINGS)))
    return found is not None and found.late is not None


def by_itself(share: float) -> bool:
    """Whether a rank that comes 8 ms late is told to do more than the others if it does for this share of that."""
    of = one_late()
    late = replace(of.ranks[1], between=spent(round(share * 8 * MS)))
    found = _late(replace(of, ranks=(of.ranks[0], late, *of.ranks[2:])))
    return found is not None and found.excess is not None and found.excess.kind != KEPT


def beyond(mads: float) -> bool:
    found = _late(replace(one_late(), deviation=round(8 * MS / mads)))
    return found is not None and found.late is not None


def of_two(share: float) -> bool:
    found = _late(pair(last=round(share * MEETINGS)))
    return found is not None and found.late is not None


def by_chance(probability: float) -> bool:
    """Whether one of four ranks is told of that comes last to so many meetings by chance."""
    number, last = {0.00095: (38, 20), 0.00108: (33, 18)}[probability]
    found = _late(replace(one_late(last=last), meetings=number))
    return found is not None and found.late is not None


def seldom(number: int, *caused: int, alike: int = 100) -> Collectives:
    """Four ranks, of which rank 1 comes last to this part of the meetings in %, and for which others wait so long."""
    of = one_late(last=number)
    waited = (SECOND, 0, SECOND, SECOND)
    kinds = (
        replace(of.kinds[0], last=(20, number, 20, 20), lateness=(0,) * 4, waited=waited, caused=caused, alike=alike),
    )
    return replace(of, kinds=kinds)


def causes(share: float) -> bool:
    """Whether a rank that comes last to few meetings is told if others wait for it for this share of the time."""
    found = _late(seldom(10, *(round(each * SECOND) for each in (0.4, share, 0.6 - share, 0))))
    return found is not None and found.late is not None


def wants(runs: float, queued: float) -> bool:
    """Whether a rank is told to run for longer that waits for a core so much longer than the others, which run for
    2 ms; times in ms."""
    of = one_late()
    late = replace(of.ranks[1], between=spent(0, on_cpu=round(runs * MS), queued=round(queued * MS)))
    found = _late(replace(of, ranks=(of.ranks[0], late, *of.ranks[2:])))
    return found is not None and found.excess is not None and found.excess.kind == WANTS


def polls_elsewhere(share: float) -> bool:
    """Whether a rank that polls is not told to stand if it is blocked elsewhere for so much of its time."""
    made = polling_ranks({(*user(EXE, "main"), *user(None, "MPI_Allreduce")): 100}, waits=SLEEP, waited=share)
    return standing_in(read(made).facts, 100) is None


def knows(share: float) -> bool:
    """Whether a thread beside one that waits in Python is known to run none, if it waits for so much of its time."""
    made = empty()
    get = (Frame("get", "python", file="/t/job.py", line=4), *user(None, "PyThread_acquire_lock_timed"), *FUTEX)
    Tracee(made, 1, "app", 1, "app").wait(get, "interruptible", 10 * SECOND, 1)
    other = Tracee(made, 1, "app", 2, "pool").wait(POOL, "interruptible", round(share * 10 * SECOND))
    other.run(round((1 - share) * 10 * SECOND))
    facts = read(made).facts
    (place,) = facts.waits_of((1, 1))
    return bool(nobody(facts, (1, 1), place))


PINS = {
    "CAUSES_MOST": (Pin(0.49, 0.51, causes),),
    "LATE_BEYOND": (Pin(2.9, 3.1, beyond),),
    "LATE_BY_CHANCE": (Pin(0.00095, 0.00108, by_chance),),
    "LATE_ITSELF": (Pin(0.199, 0.201, by_itself),),
    "LATE_MOSTLY": (Pin(0.49, 0.51, mostly),),
    "LATE_OF_TWO": (Pin(0.79, 0.81, of_two),),
    "MEETINGS": (Pin(9, 10, meet),),
    "POLLS_ELSEWHERE": (Pin(0.0099, 0.0101, polls_elsewhere),),
    "RUNS_MORE": (Pin(0.49, 0.51, lambda more: wants(2 + 2 * more, 4)),),
    "RUNS_PART": (Pin(0.149, 0.151, lambda part: wants(4, 2 / part - 2)),),
    "STACKS_KNOWN": (Pin(0.89, 0.91, knows),),
    "STANDS_LEAST": (Pin(0.49, 0.51, stands_for),),
    "STANDS_STILL": (Pin(4.9, 5.1, stands),),
}
