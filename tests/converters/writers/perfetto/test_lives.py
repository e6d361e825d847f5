from __future__ import annotations

from typing import Any

from scheduling_traces import rows
from stallscope.converters.model.scheduling import EXIT, SWITCH, THREAD, Scheduling, Threads
from stallscope.converters.writers.perfetto.lives import freed


def gone(threads: Any, exited: Any, switches: Any = None) -> list[tuple[int, int]]:
    scheduling = Scheduling(1_000, threads=threads, exited=exited)
    if switches is not None:
        scheduling.switches = switches
    return [(int(each["time"]), int(each["tid"])) for each in freed(scheduling, Threads(threads))]


def test_a_thread_is_gone_after_its_last_switch() -> None:
    threads = rows(THREAD, tid=[1, 2], tgid=[1, 1])
    switches = rows(SWITCH, time=[60, 70], prev_tid=[2, 2], prev_state=[1, 0x10])
    assert gone(threads, rows(EXIT, time=[50], tid=[2], tgid=[1]), switches) == [(71, 2)]
    assert gone(threads, rows(EXIT, time=[50], tid=[2], tgid=[1])) == [(51, 2)]


def test_the_first_thread_of_a_process_is_gone_last() -> None:
    threads = rows(THREAD, tid=[1, 2, 3], tgid=[1, 1, 1])
    exited = rows(EXIT, time=[50, 80, 70], tid=[1, 2, 3], tgid=[1, 1, 1])
    assert gone(threads, exited) == [(71, 3), (81, 1), (81, 2)]
    assert gone(threads, exited[:2]) == [(81, 2)]


def test_an_id_that_is_used_again_is_another_thread() -> None:
    threads = rows(THREAD, tid=[1, 2, 2], tgid=[1, 1, 1], begin=[0, 10, 200])
    exited = rows(EXIT, time=[50, 300], tid=[2, 2], tgid=[1, 1])
    switches = rows(SWITCH, time=[55, 305], prev_tid=[2, 2], prev_state=[0x10, 0x20])
    assert gone(threads, exited, switches) == [(56, 2), (306, 2)]


def test_exits_of_threads_that_nobody_knows_end_nothing() -> None:
    assert gone(rows(THREAD, tid=[1], tgid=[1]), rows(EXIT, time=[50], tid=[9], tgid=[9])) == []
