"""Wakers that ended waits, from lines."""

from __future__ import annotations

from stallscope.converters.model.wakers import links, own_part
from stallscope.converters.readers.stap.lines import Line, Lines, Wait, Woken
from stallscope.tracers.engines.stap.threads import Threads
from stallscope.tracers.engines.stap.wakes import Names, Wakes
from stallscope.tracers.measures.wakeup import WakeUp

NAMES = Names({1: "one", 2: "two", 3: "three", 9: "kthread"})
FRAMES = b"k 8 0 0xff [hrtimer_]\nk 8 1 hrtimer_wakeup+0x1/0x9\nk 7 0 flush_smp_call+0x1/0x9\n"


def wait(tid: int, since: int, blocked: int, runnable: int = 0, letter: str = "S", *, is_open: bool = False) -> Wait:
    return Wait(tid, tid, letter, 0, 0, since, 0, blocked, runnable, is_open)


def woken(tid: int, time: int, by: int, context: str = "t", *, kernel: int = 0, number: int = 0) -> Woken:
    return Woken(tid, tid, time, by, by, kernel, 0, context, number)


def took(*lines: Line, measure: WakeUp | None = None) -> dict[tuple[str, ...], list[int]]:
    """Values by thread and the names of those that ended its waits."""
    wakes = Wakes(measure or WakeUp(4))
    threads = Threads(0, waited=wakes.waited)
    for line in lines:
        wakes.take(line)
        threads.take(line)
    text = Lines()
    list(text.feed(FRAMES))
    rows = wakes.rows(text.stacks(None), NAMES, threads)
    return {
        (str(place.tid), *(link[-1].name for link in links(place.stack))): row
        for place, row in rows.items()
        if own_part(place.stack)
    }


def test_a_wait_and_who_ended_it() -> None:
    found = took(woken(1, 150, 2), wait(1, 100, 50, 5), woken(1, 250, 2), wait(1, 220, 30))
    assert found == {("1", "two-2"): [80, 2, 30, 50]}


def test_a_chain_divides_the_wait() -> None:
    """Thread 2 itself waited for 3, from 120 to 160, while 1 waited for 2 from 100 to 200."""
    found = took(woken(2, 160, 3), wait(2, 120, 40), woken(1, 200, 2), wait(1, 100, 100))
    assert found == {
        ("2", "three-3"): [40, 1, 40, 40],
        ("1", "two-2"): [60, 0, 0, 0],
        ("1", "two-2", "three-3"): [40, 1, 100, 100],
    }


def test_no_chain_if_the_waker_did_not_wait_meanwhile() -> None:
    found = took(woken(2, 60, 3), wait(2, 20, 40), woken(1, 200, 2), wait(1, 100, 100))
    assert found["1", "two-2"] == [100, 1, 100, 100]


def test_a_depth_of_one() -> None:
    lines = woken(2, 160, 3), wait(2, 120, 40), woken(1, 200, 2), wait(1, 100, 100)
    assert took(*lines, measure=WakeUp(1))["1", "two-2"] == [100, 1, 100, 100]


def test_a_thread_is_no_cause_of_its_own_wait() -> None:
    found = took(woken(2, 160, 1), wait(2, 120, 40), woken(1, 200, 2), wait(1, 100, 100))
    assert found["1", "two-2"] == [100, 1, 100, 100]


def test_interrupts() -> None:
    found = took(
        woken(1, 150, 0, "h", kernel=8),
        wait(1, 100, 50),
        woken(2, 150, 0, "h", kernel=7),
        wait(2, 100, 50),
        woken(3, 150, 0, "s", number=3),
        wait(3, 100, 50),
        woken(4, 150, 0, "c"),
        wait(4, 100, 50),
    )
    assert sorted(found) == [("1", "[timer]"), ("2", "[another core]"), ("3", "[softirq NET_RX]"), ("4", "[timer]")]


def test_waits_without_one() -> None:
    found = took(
        wait(1, 100, 50),
        wait(2, 0, 50, letter="?"),
        wait(3, 100, 50, is_open=True),
        wait(9, 100, 0, 50, letter="R"),
    )
    assert sorted(found) == [("1", "[unknown waker]"), ("2", "[unknown waker]"), ("3", "[still waiting]")]


def test_a_wake_up_counts_once() -> None:
    found = took(woken(1, 150, 2), wait(1, 100, 50), wait(1, 200, 10))
    assert found == {("1", "two-2"): [50, 1, 50, 50], ("1", "[unknown waker]"): [10, 1, 10, 10]}


def test_only_long_waits() -> None:
    lines = woken(1, 150, 2), wait(1, 100, 50), woken(1, 250, 2), wait(1, 200, 10)
    assert took(*lines, measure=WakeUp(1, shortest=20)) == {("1", "two-2"): [50, 1, 50, 50]}


def test_only_the_time_beside_other_measures() -> None:
    lines = woken(1, 150, 2), wait(1, 100, 50)
    assert took(*lines, measure=WakeUp(1, alone=False)) == {("1", "two-2"): [50]}


def test_a_waker_that_lost_its_core_before_it_woke() -> None:
    preempted = wait(2, 170, 0, 20, letter="R")
    found = took(woken(2, 160, 3), wait(2, 120, 40), preempted, woken(1, 200, 2), wait(1, 100, 100))
    assert found["1", "two-2", "three-3"] == [40, 1, 100, 100]
