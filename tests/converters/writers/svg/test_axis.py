from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from stallscope.converters.writers.svg.axis import axis, position, ticks
from stallscope.converters.writers.svg.text import Unit

NS, COUNT = Unit("nanoseconds"), Unit("count")


@pytest.mark.parametrize(
    ("value", "step", "largest", "unit", "text"),
    [
        (12_345_678_901, 5_000, 12_345_683_901, NS, "12.345679 s"),
        (12_345_678_901, 1, 12_345_678_902, NS, "12.345678901 s"),
        (12_345_678_901, 10**9, 12_345_678_902, NS, "12 s"),
        (7_265_000_000_000, 10**6, 7_265_001_000_000, NS, "7,265.000 s"),
        (0, 100, 900, NS, "0 ns"),
        (0, 100, 5_000, NS, "0.0 µs"),
        (1_500, 0, 1_500, NS, "1.500 µs"),
        (1_500, 500, 2_000, Unit("microseconds"), "1.5 ms"),
        (99, 99, 198, Unit("seconds", 1 / 99), "1 s"),
        (12_345, 5, 12_350, COUNT, "12,345"),
        (5, 5, 10, Unit("pages", 2.0), "10 pages"),
    ],
)
def test_a_position_has_the_digits_that_tell_neighbours_apart(
    value: int, step: int, largest: int, unit: Unit, text: str
) -> None:
    assert position(value, step, largest, unit) == text


@pytest.mark.parametrize("whole", [1, 2, 7, 999, 1_000, 123_456_789, 10**15])
@pytest.mark.parametrize("width", [176, 1176, 19_976])
def test_ticks_are_round_and_have_room(whole: int, width: int) -> None:
    for unit in (NS, COUNT):
        found = list(ticks(whole, width, unit))
        places = [x for x, _ in found]
        assert places[0] == 0
        assert places[-1] <= width + 1e-6
        assert all(after - before >= 110 * 0.999 for before, after in zip(places, places[1:], strict=False))
        assert len(found) >= min(width // 300, whole)
        assert len({text for _, text in found}) == len(found)


def test_ticks_of_a_second() -> None:
    assert list(ticks(10**9, 1000, NS)) == [(i * 200, f"{i * 0.2:.1f} s") for i in range(6)]


def test_the_element_ends_where_the_frames_end() -> None:
    root = ET.fromstring(axis(26, 12, 788, 106, COUNT))
    assert [text.text for text in root.iter("text")] == ["0", "5", "10", "15", "20", "25"]
    assert root.find("path") is not None
    hostile = ET.fromstring(axis(3, 12, 788, 106, Unit('<b>&"')))
    assert next(hostile.iter("text")).text == '0 <b>&"'
