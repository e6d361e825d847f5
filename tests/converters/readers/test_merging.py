from __future__ import annotations

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import Frame, Profile, Sample, ValueType
from stallscope.converters.model.processes import ProcessTimes
from stallscope.converters.readers.merging import merge

A, B = (Frame("a"),), (Frame("a"), Frame("b"))
TYPES = [ValueType("time", "ns"), ValueType("low", "ns", "min"), ValueType("high", "ns", "max")]


def make(*samples: Sample, **more: object) -> Profile:
    return Profile(list(TYPES), list(samples), **more)  # type: ignore[arg-type]


def test_equal_samples_are_joined_by_aggregate() -> None:
    one = make(Sample(A, (1, 5, 5)), Sample(B, (2, 2, 2)), title="t", start_ns=10, duration_ns=5, lost={"x": 1})
    other = make(Sample(A, (3, 3, 7)), Sample(A, (1, 1, 1), (("pid", 1),)), title="t", start_ns=12, duration_ns=8)
    other.lost = {"x": 2, "y": 1}
    merged = merge([one, other])
    assert merged.samples == [Sample(A, (4, 3, 7)), Sample(B, (2, 2, 2)), Sample(A, (1, 1, 1), (("pid", 1),))]
    assert (merged.title, merged.start_ns, merged.duration_ns, merged.lost) == ("t", 10, 10, {"x": 3, "y": 1})


def test_processes_are_kept_side_by_side() -> None:
    one, other = (make(processes=[ProcessTimes(pid, "x")]) for pid in (1, 2))
    assert merge([one, other]).processes == [ProcessTimes(1, "x"), ProcessTimes(2, "x")]


def test_different_measures_are_refused() -> None:
    with pytest.raises(StallscopeError, match="different things") as caught:
        merge([make(), Profile([ValueType("count", "count")])])
    assert caught.value.exit_code == 2


def test_one_stays_as_it_is() -> None:
    profile = make()
    assert merge([profile]) is profile
