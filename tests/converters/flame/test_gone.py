from __future__ import annotations

import pytest
from stallscope.converters.flame.gone import undrawn
from stallscope.converters.model import Frame, Profile, Sample, ValueType
from stallscope.converters.writers.base.options import WriteOptions

MAIN, OLD, NEW = Frame("main"), Frame("old"), Frame("new\x1b")


def compared(*samples: Sample) -> Profile:
    return Profile([ValueType("after", "count"), ValueType("before", "count")], list(samples))


def told(profile: Profile, **options: object) -> str:
    return undrawn(profile, WriteOptions(**options), lambda value: f"{value:,}")  # type: ignore[arg-type]


BOTH = compared(
    Sample((MAIN, OLD, Frame("deep")), (0, 2_000)),
    Sample((MAIN, OLD), (0, 500)),
    Sample((MAIN, Frame("kept")), (900, 10)),
    Sample((MAIN, Frame("small")), (0, 30)),
    Sample((MAIN, Frame("tiny")), (0, 2)),
    Sample((MAIN, NEW), (700, 0)),
)


def test_the_outermost_call_of_what_is_gone_the_largest_first() -> None:
    assert told(BOTH) == "gone: old -2,500, small -30"


def test_where_before_is_drawn_what_is_new_has_no_width() -> None:
    assert told(BOTH, value="before") == "new: new\\x1b +700"


def test_of_innermost_functions_where_these_are_drawn() -> None:
    assert told(BOTH, reverse=True) == "gone: deep -2,000, old -500, small -30"


def test_calls_of_one_name_are_added_up() -> None:
    calls = [Sample((MAIN, Frame(f"caller{i}"), OLD), (0, 9)) for i in range(2)]
    callers = [Sample((MAIN, Frame(f"caller{i}")), (1, 1)) for i in range(2)]
    assert told(compared(*calls, *callers)) == "gone: old -18"


def test_all_of_a_side() -> None:
    assert told(compared(Sample((MAIN,), (0, 5))), value="before") == ""
    assert told(compared(Sample((OLD,), (0, 5)), Sample((NEW,), (1, 0)))) == "gone: old -5"


def test_more_than_a_line_has_room_for() -> None:
    samples = [Sample((Frame(f"f{i}" * 100),), (0, 100 - i)) for i in range(7)]
    text = told(compared(Sample((MAIN,), (1, 1)), *samples))
    assert text.count("…") == 5
    assert ", 2 more of at least 0.1 %" in text


@pytest.mark.parametrize("profile", [compared(), compared(Sample((MAIN,), (5, 4))), Profile([ValueType("v", "count")])])
def test_nothing_is_gone(profile: Profile) -> None:
    assert told(profile) == ""
