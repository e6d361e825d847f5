from __future__ import annotations

from stallscope.converters.model import Frame, Module, ValueType
from stallscope.converters.model.details import Details, Function, Mapping, merged

F, G, H = Frame("f"), Frame("g"), Frame("h")
SPACE = ValueType("space", "bytes")


def test_nothing_is_nothing() -> None:
    assert merged([]) is None
    assert merged([None, None]) is None


def test_several_are_one_and_the_first_counts() -> None:
    one = Details(
        SPACE, 10, "d", "", "", {F: Function("_f")}, {H}, {F: [(F, G)]}, {Module("/x"): Mapping(1, 2, 3)}, {"a": "b"}
    )
    other = Details(
        SPACE, 20, "e", "k", "u", {F: Function("other"), G: Function("_g")}, {G}, {F: [(F, G, H)], G: [(G, H)]},
        {Module("/x"): Mapping(4, 5, 6), Module("/y"): Mapping(7, 8, 9)}, {"a": "c", "n": "m"},
    )  # fmt: skip
    assert merged([None, one, other]) == Details(
        SPACE, 20, "d", "k", "u", {F: Function("_f"), G: Function("_g")}, {G, H}, {F: [(F, G, H), (F, G)], G: [(G, H)]},
        {Module("/x"): Mapping(1, 2, 3), Module("/y"): Mapping(7, 8, 9)}, {"a": "b", "n": "m"},
    )  # fmt: skip


def test_a_period_in_another_unit_does_not_count() -> None:
    both = merged([Details(SPACE, 10), Details(ValueType("cpu", "nanoseconds"), 99)])
    assert both is not None
    assert (both.period_type, both.period) == (SPACE, 10)
