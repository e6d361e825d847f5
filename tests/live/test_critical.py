"""The critical path of a thread, against a workload in which it is known."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from stallscope.converters.model.scheduling import INTERRUPT, NO_STACK, Scheduling
from stallscope.converters.model.states import BLOCKED, RUNNABLE_STATES, RUNNING
from stallscope.converters.transforms.critical_path import critical_path, path_profile, thread_of
from stallscope.tracers.measures.timeline import Timeline
from stallscope.tracers.measures.wakeup import WakeUp
from tracing import Trace

MS = 1_000_000


def test_path_leads_through_the_worker_to_the_holder_of_the_lock(trace: Trace) -> None:
    rounds, hold = 8, 20 * MS
    found = trace("waits_through", rounds, hold // MS, measures=(WakeUp(), Timeline()))
    scheduling = found.profile.scheduling
    assert scheduling is not None
    main = thread_of(scheduling, found.truth["pid"])
    path = critical_path(scheduling, main)
    wall = found.thread(found.truth["pid"]).wall
    assert sum(segment.time for segment in path.segments) == path.wall
    # Both begin and end a little apart, which takes longer where the tracer waits for a core.
    assert path.wall == pytest.approx(wall, rel=0.01, abs=20 * MS)
    names = {segment.thread: scheduling.names[scheduling.threads["name"][segment.thread]] for segment in path.segments}
    by: Counter[tuple[str, str]] = Counter()
    for segment in path.segments:
        by[names[segment.thread], segment.state] += segment.time
    # What runs on the path is known; what they wait for a core meanwhile is not: others work in that time, off the
    # path.
    late = sum(time for (_, state), time in by.items() if state in RUNNABLE_STATES)
    for name, expected in (("waits_through", hold // 10), ("holder", hold), ("worker", hold // 2)):
        off = rounds * expected - by[name, RUNNING]
        may = max(rounds * expected // 10, 6 * MS)
        assert -may <= off <= may + late, (name, by)
    # Nothing is left of waits for each other, except before the start, and after the end.
    blocked = [s for s in path.segments if s.state in BLOCKED and "await_start" not in functions(scheduling, s.stack)]
    begin = min(s.begin for s in path.segments if s.state == RUNNING and names[s.thread] == "holder")
    end = max(s.end for s in path.segments if s.state == RUNNING and names[s.thread] == "worker")
    inside = sum(min(s.end, end) - max(s.begin, begin) for s in blocked if s.end > begin and s.begin < end)
    assert inside <= 0.02 * path.wall, by
    deepest = max(path.segments, key=lambda segment: len(segment.behind))
    chain = [scheduling.names[scheduling.threads["name"][row]] for row in deepest.behind]
    assert (*chain, names[deepest.thread]) == ("waits_through", "worker", "holder")
    drawn = path_profile(found.profile, path)
    assert drawn.total("critical") == path.wall


def functions(scheduling: Scheduling, stack: int) -> set[str]:
    return set() if stack == NO_STACK else {frame.name for frame in scheduling.stacks[stack]}


def test_timer_does_not_lead_to_whom_it_interrupted(trace: Trace) -> None:
    found = trace("sleeps", 20, measures=(WakeUp(), Timeline()), scope=None)
    scheduling = found.profile.scheduling
    assert scheduling is not None
    woken = scheduling.wakeups[scheduling.wakeups["tid"] == found.truth["pid"]]
    woken = woken[np.argsort(woken["time"])]
    interrupted = woken["flags"] & INTERRUPT > 0
    assert interrupted.sum() >= 0.95 * 60
    path = critical_path(scheduling, thread_of(scheduling, found.truth["pid"]))
    # It waits for others at its gate only.
    asleep = sum(s.time for s in path.segments if any(f.startswith("sleep_") for f in functions(scheduling, s.stack)))
    slept = sum(wait["ns"] for wait in found.truth["waits"] if wait["function"].startswith("sleep_"))
    waited = found.thread(found.truth["pid"]).runnable  # for a core, after it was woken
    # Where a thread ends a sleep (ksoftirqd, on a busy core), the path leads to that thread for the time of the sleep.
    longest = sum(wait["ns"] for wait in found.truth["waits"] if wait["function"] == "sleep_25ms") - 19 * 25 * MS
    by_threads = np.minimum(np.diff(woken["time"])[~interrupted[1:]], longest).sum()
    assert asleep >= 0.97 * (slept - waited - by_threads) - MS
