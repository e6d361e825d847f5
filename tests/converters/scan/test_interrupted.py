"""Cores from which interrupts take time, and the threads that ran there."""

from __future__ import annotations

import json

import numpy as np
from stallscope.converters.model import Profile, ThreadTimes, ValueType
from stallscope.converters.model.pressure import ALL, HARD, SOFT, STOLEN, CoreThread, Interrupts
from stallscope.converters.model.processes import ProcessTimes
from stallscope.converters.model.scheduling import SWITCH, Scheduling
from stallscope.converters.scan.interrupted import cores, sentences
from summary_profiles import SECOND

TEN = 10 * SECOND
ALL_CORES = Interrupts(HARD, "", SECOND, 9, 4 * TEN)


def taken(core: int, time: int, kind: str = SOFT) -> Interrupts:
    return Interrupts(kind, "", time, 0, TEN, core)


def profile(*interrupts: Interrupts, cpus: str = "3") -> Profile:
    made = Profile([ValueType("wall", "nanoseconds")], duration_ns=TEN, interrupts=list(interrupts))
    made.processes = [ProcessTimes(7, "rx", cpus=cpus)]
    made.threads = [
        ThreadTimes(7, "rx", 7, "rx", TEN, 8 * SECOND, 0, {}),
        ThreadTimes(7, "rx", 8, "log", TEN, SECOND, 0, {}),
    ]
    return made


def test_a_core_and_the_thread_that_is_bound_to_it() -> None:
    found = cores(profile(ALL_CORES, taken(3, 2 * SECOND), taken(3, SECOND, HARD), taken(1, SECOND)))
    assert [(core.number, core.handled) for core in found] == [(3, 3 * SECOND), (1, SECOND)]
    assert found[0].threads == (CoreThread(3, "rx", "rx", 7, 7, 8 * SECOND), CoreThread(3, "rx", "log", 7, 8, SECOND))
    assert found[1].threads == ()
    assert sentences(found, [ALL_CORES]) == [
        "Interrupts take 30.0 % of the time of core 3, on which rx (tid 7) runs: about 2.40 s of its time."
    ]


def test_who_may_run_elsewhere_is_not_told_without_events() -> None:
    found = cores(profile(taken(3, 3 * SECOND), cpus="2-3"))
    assert found[0].threads == ()
    assert sentences(found, []) == ["Interrupts take 30.0 % of the time of core 3."]


def who_ran_on_core_3() -> Scheduling:
    switches = np.zeros(4, SWITCH)
    switches["cpu"] = 3
    switches["time"] = [0, 6 * SECOND, 9 * SECOND, 9 * SECOND + 1]
    switches["prev_tid"], switches["next_tid"] = [0, 8, 7, 99], [8, 7, 99, 0]
    return Scheduling(TEN, switches=switches, every_switch=True)


def test_events_tell_who_ran_where() -> None:
    """Thread 8 has core 3 for 6 s of 10, thread 7 for 3 s; thread 99 is not known."""
    made = profile(taken(3, 5 * SECOND), cpus="0-3")
    made.scheduling = who_ran_on_core_3()
    (core,) = cores(made)
    assert [(each.thread, each.time) for each in core.threads] == [("log", 6 * SECOND), ("rx", 3 * SECOND)]
    assert core.taken(6 * SECOND) == 3 * SECOND
    assert sentences([core], []) == [
        "Interrupts take 50.0 % of the time of core 3, on which log of rx (tid 8) runs: about 3.00 s of its time."
    ]


def test_who_ran_there_is_kept_without_events() -> None:
    made = profile(taken(3, 5 * SECOND), cpus="3")
    made.core_threads = [CoreThread(3, "kept", "w", 5, 6, SECOND), CoreThread(3, "kept", "w", 5, 6, SECOND)]
    made.core_threads.append(CoreThread(1, "elsewhere", "w", 5, 7, SECOND))
    (core,) = cores(made)
    assert core.threads == (CoreThread(3, "kept", "w", 5, 6, 2 * SECOND),), "added up, of merged captures"


def test_a_core_that_loses_less_or_as_much_as_others() -> None:
    assert sentences(cores(profile(taken(3, 5 * SECOND // 2 - 1))), []) == []
    everywhere = Interrupts(HARD, "", 8 * SECOND, 9, 4 * TEN)
    assert sentences(cores(profile(taken(3, 4 * SECOND - 1))), [everywhere]) == []
    assert sentences(cores(profile(taken(3, 4 * SECOND))), [everywhere]) != []
    assert sentences(cores(profile(taken(3, 9 * SECOND, STOLEN))), []) == [], "other machines are no interrupts"


def test_merged_captures_are_added_up() -> None:
    (core,) = cores(profile(taken(3, 3 * SECOND), taken(3, SECOND)))
    assert (core.handled, core.capacity) == (4 * SECOND, 2 * TEN)


def test_old_captures_have_no_cores() -> None:
    assert ALL_CORES.core == ALL
    assert cores(profile(ALL_CORES)) == ()
    assert sentences((), [ALL_CORES]) == []


def test_json_of_hostile_names() -> None:
    made = profile(taken(3, SECOND))
    made.threads[0].thread = "a\x1b[2J\udcff"
    data = [core.to_json() for core in cores(made)]
    assert json.loads(json.dumps(data, ensure_ascii=False).encode()) == data
    assert data[0]["threads"][0]["taken_ns"] == SECOND * 8 // 10
