"""Figures of calls in which several processes were."""

from __future__ import annotations

import pytest
from stallscope.converters.model.sharing import SharedCall


def test_figures() -> None:
    call = SharedCall("A", "/dev/x", 100, 60, 250, 10, 340, 2, 20, {1: 60, 2: 20}, {(2, 1): 50, (3, 1): 5, (1, 2): 7})
    assert call.mean_inside == pytest.approx(2.5)
    assert call.factor == pytest.approx(4)
    assert call.turns_factor == pytest.approx(340 / 80)
    assert call.with_others_mean == pytest.approx(40), "the two calls that were alone do not count"
    assert call.held() == {1: 55, 2: 7}


def test_calls_that_were_all_alone_have_no_factor() -> None:
    call = SharedCall("A", "/dev/x", 100, 60, 250, 2, 20, 2, 20)
    assert call.factor is None
    assert call.with_others_mean == 0


def test_calls_that_were_never_alone_have_no_factor() -> None:
    call = SharedCall("A", "/dev/x", 100, 60, 250, 2, 20)
    assert call.factor is None
    assert call.with_others_mean == pytest.approx(10)


def test_what_is_not_known() -> None:
    call = SharedCall("A", "/dev/x")
    assert call.mean_inside == 0
    assert call.factor is None
    assert call.turns_factor is None
    assert call.held() == {}
