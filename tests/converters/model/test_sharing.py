"""Figures of calls in which several processes were."""

from __future__ import annotations

import pytest
from stallscope.converters.model.sharing import SharedCall


def test_figures() -> None:
    call = SharedCall("A", "/dev/x", 100, 60, 250, 10, 400, 2, 20, {1: 60, 2: 20}, {(2, 1): 50, (3, 1): 5, (1, 2): 7})
    assert call.mean_inside == pytest.approx(2.5)
    assert call.factor == pytest.approx(4)
    assert call.turns_factor == pytest.approx(5)
    assert call.held() == {1: 55, 2: 7}


def test_what_is_not_known() -> None:
    call = SharedCall("A", "/dev/x")
    assert call.mean_inside == 0
    assert call.factor is None
    assert call.turns_factor is None
    assert call.held() == {}
