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


def test_what_was_made_is_old_then_and_still_collected() -> None:
    gc.collect()
    with no_collection():
        made: list[object] = [[] for _ in range(100_000)]
        made.append(made)
        del made
        assert gc.get_count()[0] > 100_000
    assert gc.get_count()[0] < 10_000
    assert gc.get_freeze_count() == 0
    assert gc.collect() > 100_000 - 1_000
