"""Rows of threads that slept when they were found."""

from __future__ import annotations

from stallscope.converters.model import Frame, Stack
from stallscope.converters.model.states import INTERRUPTIBLE, WOKEN
from stallscope.tracers.engines.asleep import Asleep
from stallscope.tracers.engines.bcc.naming import with_sleepers
from stallscope.tracers.engines.named_rows import NO_STACK, Place

NONE: Stack = (Frame(NO_STACK, "other"),)
SLEEP: Stack = (Frame("main"), Frame("pause"))
SEEN = {7: 100}


class Looks(Asleep):
    """Thread 7 was looked at, at 150."""

    def has(self, tid: int, until: int) -> bool:
        return tid == 7 and until >= 150

    def stack(self, tid: int) -> Stack:
        return SLEEP


def place(state: str = INTERRUPTIBLE, stack: Stack = NONE, *, tid: int = 7, is_open: bool = False) -> Place:
    return Place(7, tid, state, stack, is_open)


def rows(*given: tuple[Place, list[int]]) -> dict[Place, list[int]]:
    return with_sleepers(dict(given), Looks(), SEEN, 1000)


def test_a_wait_that_goes_on_has_its_stack() -> None:
    assert rows((place(is_open=True), [900, 1, 900, 900])) == {place(stack=SLEEP, is_open=True): [900, 1, 900, 900]}


def test_one_that_ended_has_it_with_what_follows() -> None:
    """The wait that ended was woken at 160, and ran at 200."""
    found = rows((place(WOKEN), [40, 1, 40, 40]), (place(), [60, 1, 60, 60]))
    assert found == {place(stack=SLEEP): [60, 1, 60, 60], place(WOKEN, SLEEP): [40, 1, 40, 40]}


def test_one_that_ended_before_the_look_has_none() -> None:
    given = (place(WOKEN), [40, 1, 40, 40]), (place(), [20, 1, 20, 20])
    assert rows(*given) == dict(given)


def test_other_rows_stay() -> None:
    given = (
        (place(tid=8, is_open=True), [900, 1, 900, 900]),
        (place(), [900, 2, 400, 500]),
        (place(stack=(Frame("main"),)), [900, 1, 900, 900]),
    )
    assert rows(*given) == dict(given)


def test_equal_places_are_one() -> None:
    found = rows((place(), [60, 1, 60, 60]), (place(stack=SLEEP), [10, 2, 4, 6]))
    assert found == {place(stack=SLEEP): [70, 3, 4, 60]}
