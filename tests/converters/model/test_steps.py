from __future__ import annotations

from stallscope.converters.model.steps import Spent, Steps


def steps(count: int, span: int) -> Steps:
    spent = Spent(count, 100 * count, 60 * count, 30 * count)
    between = Spent(max(count - 1, 0), 0, 0, 0)
    return Steps("f", "p", 5, "t", 7, spent, between, 100, 100, span, ())


def test_what_is_left_has_no_core() -> None:
    assert steps(3, 400).steps.runnable == 30
    assert (steps(3, 400).steps.mean, steps(0, 0).between.mean) == (100, 0)


def test_steps_per_second() -> None:
    assert steps(3, 400).per_second == 5_000_000
    assert steps(1, 0).per_second is None
