"""The part of a stack that tells who ended the wait."""

from __future__ import annotations

import pytest
from stallscope.converters.model import Frame, Sample
from stallscope.converters.model.wakers import SEPARATOR, WAKER, has_waker, joined_tids, links, own_part, tids_of

OWN = (Frame("main"), Frame("read"), Frame("schedule", "kernel"))
FIRST = (Frame("try_to_wake_up", WAKER), Frame("write", WAKER), Frame("writer-12", WAKER))
SECOND = (Frame("[timer]", WAKER),)


def test_links_in_order() -> None:
    stack = (*OWN, SEPARATOR, *FIRST, SEPARATOR, *SECOND)
    assert has_waker(stack)
    assert own_part(stack) == OWN
    assert links(stack) == [FIRST, SECOND]


def test_without_a_waker() -> None:
    for stack in ((), OWN, (*OWN, Frame("--", "other"))):
        assert not has_waker(stack)
        assert own_part(stack) == stack
        assert links(stack) == []


def test_functions_that_are_called_like_the_separator() -> None:
    own, waker = (Frame("--"), Frame("x")), (Frame("--", WAKER), Frame("writer-12", WAKER))
    stack = (*own, SEPARATOR, *waker)
    assert own_part(stack) == own
    assert links(stack) == [waker]


def test_a_stack_that_lost_its_separator_is_whole() -> None:
    assert own_part(FIRST) == FIRST
    assert links(FIRST) == []


@pytest.mark.parametrize(
    ("labels", "tids"),
    [
        ((("chain_tids", joined_tids([12, 13, 0])), ("waker_tid", 12)), [12, 13, 0]),
        ((("waker_tid", 12),), [12, 0, 0]),
        ((("waker", "[timer]"),), [0, 0, 0]),
        ((("chain_tids", "12 x\n -3 99999999999999 5"),), [12, 0, 0]),
    ],
)
def test_threads_of_links(labels: tuple[tuple[str, str | int], ...], tids: list[int]) -> None:
    assert tids_of(Sample(OWN, (1,), labels), 3) == tids
