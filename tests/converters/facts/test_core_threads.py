"""Threads that ran on cores from which interrupts take time, by the scheduler's events."""

from __future__ import annotations

import numpy as np
from stallscope.converters.facts.core_threads import THREADS, by_core, interrupted_cores, longest, recorded
from stallscope.converters.model import Profile, ThreadTimes, ValueType
from stallscope.converters.model.pressure import HARD, SOFT, STOLEN, CoreThread, Interrupts
from stallscope.converters.model.scheduling import SWITCH, Scheduling
from summary_profiles import SECOND

TEN = 10 * SECOND


def test_cores_that_lose_much() -> None:
    found = [
        Interrupts(HARD, "", TEN, 9, TEN),
        Interrupts(HARD, "", TEN // 200, 0, TEN, 1),
        Interrupts(SOFT, "", TEN // 200, 0, TEN, 1),
        Interrupts(SOFT, "", TEN // 101, 0, TEN, 2),
        Interrupts(STOLEN, "", TEN, 0, TEN, 3),
        Interrupts(SOFT, "", 0, 0, 0, 4),
    ]
    assert interrupted_cores(found) == {1}


def profile(events: bool = True) -> Profile:
    """A thread has core 0 for 4 s, then one of which nothing is known, then again until the end."""
    made = Profile([ValueType("wall", "nanoseconds")], duration_ns=TEN)
    made.threads = [ThreadTimes(7, "a", 8, "w", TEN, TEN, 0, {})]
    if events:
        switches = np.zeros(3, SWITCH)
        switches["time"], switches["prev_tid"] = [0, 4 * SECOND, 9 * SECOND], [0, 8, 99]
        switches["next_tid"] = [8, 99, 8]
        made.scheduling = Scheduling(TEN, switches=switches, every_switch=True)
    return made


def test_time_until_the_next_switch_and_the_end() -> None:
    assert recorded(profile(), {0, 5}) == [CoreThread(0, "a", "w", 7, 8, 5 * SECOND)]


def test_without_events_or_cores_there_is_nothing() -> None:
    assert recorded(profile(events=False), {0}) == []
    assert recorded(profile(), set()) == []


def test_few_of_each_core_are_kept() -> None:
    threads = [CoreThread(core, "a", "w", 7, tid, tid) for core in (1, 0) for tid in range(1, 20)]
    kept = longest(threads)
    assert [each.core for each in kept] == [0] * THREADS + [1] * THREADS
    assert kept[0].tid == 19
    assert {core: len(each) for core, each in by_core(threads).items()} == {0: THREADS, 1: THREADS}
