from __future__ import annotations

import gc

import pytest
from stallscope.converters.base.collection import no_collection


@no_collection()
def is_enabled() -> bool:
    return gc.isenabled()


def test_the_collector_rests_meanwhile_and_not_longer() -> None:
    assert gc.isenabled()
    assert not is_enabled()
    assert gc.isenabled()
    with pytest.raises(ValueError, match="x"), no_collection():
        raise ValueError("x")
    assert gc.isenabled()


def test_inside_of_another_it_stays_off() -> None:
    with no_collection():
        assert not is_enabled()
        assert not gc.isenabled()
