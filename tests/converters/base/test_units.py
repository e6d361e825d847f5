from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stallscope.converters.base import units


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (850, "850 ns"),
        (999, "999 ns"),
        (1_000, "1.00 µs"),
        (9_994, "9.99 µs"),
        (9_996, "10.0 µs"),
        (99_960, "100 µs"),
        (999_499, "999 µs"),
        (999_501, "1.00 ms"),
        (1_520_000, "1.52 ms"),
        (17_900_000, "17.9 ms"),
        (999_600_000, "1.00 s"),
        (12_345_678_901, "12.3 s"),
        (59_940_000_000, "59.9 s"),
        (59_960_000_000, "1 min 00 s"),
        (125_000_000_000, "2 min 05 s"),
        (3_599_600_000_000, "1 h 00 min"),
        (3_900_000_000_000, "1 h 05 min"),
        (100 * 3_600_000_000_000, "4 d 04 h"),
        (-1_520_000, "-1.52 ms"),
    ],
)
def test_duration(ns: int, text: str) -> None:
    assert units.duration(ns) == text


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [
        (842, 1000, "84.2 %"),
        (0, 5, "0.0 %"),
        (1, 10_000, "<0.1 %"),
        (5, 5, "100.0 %"),
        (99_999, 100_000, ">99.9 %"),
        (103, 100, "103.0 %"),
        (1, 0, "-"),
    ],
)
def test_share(part: int, whole: int, text: str) -> None:
    assert units.share(part, whole) == text


def test_numbers() -> None:
    assert units.count(31204) == "31,204"
    assert units.plural(1, "process") == "1 process"
    assert units.plural(1200, "process") == "1,200 processes"
    assert units.plural(0, "thread") == "0 threads"


@pytest.mark.parametrize(
    ("total", "part", "text"),
    [
        (160 * 10**9, 67_364_000_000, "67.36 s"),
        (2 * 10**9, 67_364_000, "0.067 s"),
        (60_000 * 10**9, 1_234_567_000_000, "1,234.6 s"),
        (5_000_000, 1_234_567, "1.235 ms"),
        (999, 7, "7 ns"),
        (0, 0, "0 ns"),
    ],
)
def test_one_unit_for_a_column(total: int, part: int, text: str) -> None:
    scale = units.time_scale(total)
    assert scale.text(scale.steps([part])[0], part) == text


def test_what_rounds_to_nothing_is_not_zero() -> None:
    scale = units.time_scale(160 * 10**9)
    assert scale.text(0, 4_000_000) == "<0.01 s"
    assert scale.text(0, 0) == "0.00 s"
    assert units.share_scale(10**9).text(0, 1) == "<0.1 %"


def test_thirds_add_up_to_a_hundred() -> None:
    assert units.share_scale(3).steps([1, 1, 1]) == [334, 333, 333]
    assert units.apportion([], 10) == []


@given(st.lists(st.integers(0, 10**15), min_size=1), st.integers(1, 10**9))
def test_parts_add_up_and_are_off_by_less_than_a_step(parts: list[int], step: int) -> None:
    steps = units.apportion(parts, step)
    assert abs(sum(steps) * step - sum(parts)) * 2 <= step
    assert all(abs(n * step - part) < step for n, part in zip(steps, parts, strict=True))


@given(st.lists(st.integers(-(10**12), 10**12), min_size=1), st.integers(1, 10**6), st.integers(-100, 10**6))
def test_parts_add_up_to_the_total_that_is_asked_for(parts: list[int], step: int, total: int) -> None:
    assert sum(units.apportion(parts, step, total)) == total


@pytest.mark.parametrize(
    ("number", "kinds", "text"),
    [
        (1, "entries cut short", "1 entry cut short"),
        (2, "entries cut short", "2 entries cut short"),
        (2, "lines not understood", "2 lines not understood"),
        (1, "lines not understood", "1 line not understood"),
        (1, "branch stacks", "1 branch stack"),
        (1, "ends of calls without a begin", "1 end of calls without a begin"),
        (1_234, "waits that did not end", "1,234 waits that did not end"),
        (1, "lost events (before)", "1 lost event (before)"),
        (1, "loss", "1 loss"),
        (1, "processes gone", "1 process gone"),
    ],
)
def test_counted(number: int, kinds: str, text: str) -> None:
    assert units.counted(number, kinds) == text
