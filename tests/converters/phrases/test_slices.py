from __future__ import annotations

import pytest
from stallscope.converters.facts.slices import Phase
from stallscope.converters.model.slices import SliceSpent
from stallscope.converters.phrases import slices
from stallscope.converters.scan.over_time import LETTERS
from summary_profiles import SECOND


def test_every_kind_has_words() -> None:
    assert set(slices.DOES) == set(LETTERS) - {""}


def test_phases() -> None:
    place = SliceSpent("io", (), ("main", "load", "…", "read"))
    found = [Phase("cpu", SECOND, 3 * SECOND, 0.9), Phase("io", 3 * SECOND, 10 * SECOND, 0.9, place)]
    assert slices.phases(found, {}, SECOND) == (
        "for the first 2.00 s it runs, then for 7.00 s it is blocked in I/O (load → read)"
    )
    assert slices.phases(found, {}, 0).startswith("from second 1.0 on for 2.00 s it runs, ")
    assert slices.phases([], {}, 0) == ""


@pytest.mark.parametrize(
    ("begin", "end", "told"),
    [(0, 4, "until second 4.0"), (6, 10, "from second 6.0 on"), (3, 6, "from second 3.0 to second 6.0")],
)
def test_parts_of_a_trace(begin: int, end: int, told: str) -> None:
    assert slices.part_of_trace(begin * SECOND, end * SECOND, (0, 10 * SECOND)) == told
