"""The part of a stack that tells who ended the wait."""

from __future__ import annotations

from stallscope.converters.model import Frame
from stallscope.converters.model.wakers import SEPARATOR, WAKER, has_waker, links, own_part

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
