from __future__ import annotations

import random

import numpy as np
import pytest
from stallscope.converters.facts.slow_steps import slow_steps


def found(walls: list[int]) -> tuple[list[int], int | None] | None:
    slow = slow_steps(np.array(walls, np.int64))
    return slow and (slow.places.tolist(), slow.every)


def regular(first: int, every: int, number: int = 100) -> list[int]:
    return [800 if i % every == first else 20 + i % 3 for i in range(number)]


@pytest.mark.parametrize(("first", "every"), [(0, 20), (19, 20), (3, 7), (4, 33)])
def test_steps_that_come_regularly(first: int, every: int) -> None:
    assert found(regular(first, every)) == (list(range(first, 100, every)), every)


def test_one_that_is_not_slow_makes_it_no_rule() -> None:
    walls = regular(0, 10)
    walls[30] = 20
    assert found(walls) == ([each for each in range(0, 100, 10) if each != 30], None)


def test_others_may_be_slow_by_chance() -> None:
    """The others may have slow steps of little time; the slowest may be one of them."""
    walls = regular(0, 10)
    walls[13], walls[57] = 900, 70
    assert found(walls) == (list(range(0, 100, 10)), 10)
    walls[14] = walls[15] = walls[16] = 800
    slow = found(walls)
    assert slow
    assert slow[1] is None
    assert {13, 14, 57} <= set(slow[0])


def test_no_group() -> None:
    assert found([]) is None
    assert found([0] * 20) is None
    assert found([20, 20, 900]) is None, "few steps"
    assert found([20] * 100) is None
    assert found([*[20] * 99, 61]) is None, "little time"
    assert found([*[20] * 99, 800]) == ([99], None)


def test_irregular_ones_have_no_rule() -> None:
    chance = random.Random(1)
    for _ in range(50):
        walls = [20] * 200
        places = sorted(chance.sample(range(200), 12))
        for place in places:
            walls[place] = 800
        assert found(walls) == (places, None)
