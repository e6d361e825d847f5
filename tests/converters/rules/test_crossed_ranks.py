"""Communicators that wait for each other."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from collective_profiles import of_ranks, rank
from stallscope.converters.model.collectives import Collectives, Standing
from stallscope.converters.rules.crossed_ranks import circles
from summary_profiles import SECOND


def of(inside: Collection[int], outside: Collection[int]) -> Collectives:
    """A communicator of ranks that are in its collective 26, and of others that have made 25."""
    numbers = sorted({*inside, *outside})
    standing = tuple(
        Standing(10 + number, 26 if number in inside else 25, "all-reduce" if number in inside else "", 4096, SECOND)
        for number in numbers
    )
    return replace(of_ranks(*map(rank, numbers)), standing=standing)


def test_two_that_wait_for_each_other() -> None:
    one, other = of({0}, {1}), of({1}, {0})
    assert circles([one, other]) == [(one, other)]
    assert circles([one, of({1}, {2})]) == [], "one waits for the other"
    assert circles([one, replace(other, standing=())]) == []


def test_a_circle_of_three() -> None:
    """A pipeline: each rank is in a collective with the next one, which is in another."""
    first, second, third = of({0}, {1}), of({1}, {2}), of({2}, {0})
    assert circles([first, second, third]) == [(first, second, third)]
    assert circles([first, second, of({2}, {3})]) == []


def test_the_shortest_circle_comes_first_and_none_is_told_twice() -> None:
    one, other = of({0, 2}, {1}), of({1}, {0, 2})
    behind = of({1}, {2})
    assert circles([behind, one, other]) == [(behind, one)]
    assert circles([one, other, of({5}, {6}), of({6}, {5})]) == [(one, other), circles([of({5}, {6}), of({6}, {5})])[0]]
