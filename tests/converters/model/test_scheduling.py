from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scheduling_traces import rows, run
from stallscope.converters.model.scheduling import (
    BLOCKED,
    CREATION,
    EXIT,
    LOSS,
    OPEN,
    SWITCH,
    THREAD,
    WAKE_UP,
    Scheduling,
    Threads,
    in_order,
    keep,
)


def events_of(scheduling: Scheduling) -> list[tuple[int, str, tuple[Any, ...]]]:
    """All events by time."""
    names = ("switches", "wakeups", "created", "exited")
    return sorted((int(event["time"]), name, event.item()) for name in names for event in getattr(scheduling, name))


def test_two_million_events_fit() -> None:
    """Two million events, with as many waits as half of them, take well under 500 MB."""
    assert 2_000_000 * max(kind.itemsize for kind in (SWITCH, WAKE_UP, CREATION, EXIT)) < 60e6
    assert 1_000_000 * BLOCKED.itemsize < 60e6


def test_nothing_is_a_recording_too() -> None:
    nothing = in_order(Scheduling(10))
    assert nothing.count() == 0
    assert nothing.lost() == {"scheduler events": 0}
    assert keep(nothing, 5, "newest").count() == 0
    assert list(Threads(nothing.threads).rows(np.array([1, 2]), np.array([3, 4]))) == [-1, -1]


def test_events_are_sorted_and_stay_as_they_were_within_one_time() -> None:
    switches = rows(SWITCH, time=[5, 3, 5, 1], next_tid=[1, 2, 3, 4])
    given_ = Scheduling(10, switches=switches)
    ordered = in_order(given_)
    assert ordered.switches["next_tid"].tolist() == [4, 2, 1, 3]
    assert given_.switches["next_tid"].tolist() == [1, 2, 3, 4]
    assert in_order(ordered) is ordered


def test_a_thread_id_means_the_thread_that_had_it_then() -> None:
    threads = Threads(rows(THREAD, tid=[7, 9, 7, 7], begin=[500, 0, 0, 900]))
    tids, times = [7, 7, 7, 7, 7, 9, 8, 7], [0, 499, 500, 899, 900, 1_000, 1, -5]
    assert threads.rows(np.array(tids), np.array(times)).tolist() == [2, 2, 0, 0, 3, 1, -1, 2]


def test_what_is_before_the_first_thread_of_an_id_is_its_own() -> None:
    """The clocks of two cores differ by a little."""
    threads = Threads(rows(THREAD, tid=[7], begin=[500]))
    assert threads.rows(np.array([7]), np.array([499])).tolist() == [0]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 20)), max_size=12), st.data())
def test_rows_are_found_as_one_would_by_hand(lives: list[tuple[int, int]], data: st.DataObject) -> None:
    lives = list(dict.fromkeys(lives))
    tids, begins = [tid for tid, _ in lives], [begin for _, begin in lives]
    threads = Threads(rows(THREAD, tid=tids, begin=begins))
    asked = data.draw(st.lists(st.tuples(st.integers(0, 6), st.integers(-2, 22)), min_size=1))
    for tid, time in asked:
        mine = [(begin, row) for row, (of, begin) in enumerate(lives) if of == tid]
        before = [each for each in mine if each[0] <= time]
        wanted = max(before)[1] if before else min(mine)[1] if mine else -1
        assert threads.rows(np.array([tid]), np.array([time])).tolist() == [wanted]


@pytest.mark.parametrize("limit", [1, 7, 700, 10**6])
def test_a_limit_keeps_the_newest_or_the_first_events_and_counts_the_others(limit: int) -> None:
    scheduling = run(1_500, seed=3).scheduling()
    everything = events_of(scheduling)
    count = min(limit, len(everything))
    newest, first = keep(scheduling, limit, "newest"), keep(scheduling, limit, "first")
    assert [each[0] for each in events_of(newest)] == [each[0] for each in everything[-count:]]
    assert [each[0] for each in events_of(first)] == [each[0] for each in everything[:count]]
    for cut in (newest, first):
        assert cut.count() == count
        assert cut.dropped == len(everything) - count
    if limit < len(everything):
        assert (newest.begin, newest.end) == (everything[-count][0], scheduling.end)
        assert (first.begin, first.end) == (0, everything[count - 1][0])
        assert newest.lost()["older scheduler events beyond the limit"] == newest.dropped
        assert first.lost()["newer scheduler events beyond the limit"] == first.dropped


def test_a_limit_is_exact_among_events_of_one_time() -> None:
    switches = rows(SWITCH, time=[5] * 6, next_tid=range(6))
    wakeups = rows(WAKE_UP, time=[5] * 4)
    assert keep(Scheduling(9, switches=switches, wakeups=wakeups), 7, "newest").count() == 7
    assert keep(Scheduling(9, switches=switches, wakeups=wakeups), 7, "first").count() == 7


def test_a_limit_may_be_kept_while_events_come() -> None:
    """Cut again and again, what is left is what one cut leaves."""
    scheduling = run(1_500, seed=5).scheduling()
    kept = Scheduling(0)
    for begin in range(0, scheduling.end, 1_000_000):
        more = {}
        for name in ("switches", "wakeups", "created", "exited"):
            events = getattr(scheduling, name)
            new = events[(events["time"] >= begin) & (events["time"] < begin + 1_000_000)]
            more[name] = np.concatenate([getattr(kept, name), new])
        kept = keep(replace(kept, end=scheduling.end, **more), 300, "newest")
    once = keep(scheduling, 300, "newest")
    assert events_of(kept) == events_of(once)
    assert (kept.begin, kept.dropped) == (once.begin, once.dropped)


def test_what_belongs_to_the_time_that_is_left_stays() -> None:
    switches = rows(SWITCH, time=[100, 200, 300], next_tid=[1, 2, 3])
    blocked = rows(BLOCKED, begin=[50, 60, 90, 250], end=[80, 260, OPEN, 400], woken=[70, 0, 0, 390], tid=[1, 2, 3, 4])
    threads = rows(THREAD, tid=[5, 6, 6, 9], tgid=[1, 6, 1, 1], begin=[0, 0, 150, 290])
    exited = rows(EXIT, time=[110, 120], tid=[5, 6])
    losses = rows(LOSS, time=[50, 250], count=[3, 4])
    parts: dict[str, Any] = {"blocked": blocked, "threads": threads, "losses": losses, "exited": exited}
    scheduling = Scheduling(400, switches=switches, **parts)
    newest = keep(scheduling, 2, "newest")
    assert newest.begin == 200
    assert newest.blocked["begin"].tolist() == [60, 90, 250]
    assert newest.losses["count"].tolist() == [4]
    assert newest.lost()["scheduler events"] == 7
    # Thread 5 is gone; thread 6 was a process, by whose name the process is known.
    assert newest.threads["begin"].tolist() == [0, 150, 290]
    first = keep(scheduling, 4, "first")
    assert first.end == 200
    assert first.blocked["begin"].tolist() == [50, 60, 90]
    assert first.blocked["end"].tolist() == [80, OPEN, OPEN]
    assert first.threads["tid"].tolist() == [5, 6, 6]
    assert scheduling.blocked["end"].tolist() == [80, 260, OPEN, 400]


def test_waits_of_threads_that_nobody_knows_are_counted() -> None:
    blocked = rows(BLOCKED, begin=[1, 2], tid=[7, 8])
    made = Scheduling(9, blocked=blocked, threads=rows(THREAD, tid=[7]))
    assert made.lost()["waits of unknown threads"] == 1


def test_it_can_go_to_another_process() -> None:
    scheduling = run(300).scheduling()
    assert events_of(pickle.loads(pickle.dumps(scheduling))) == events_of(scheduling)
