from __future__ import annotations

import pytest
from stallscope.tracers.expressions.types import NO_FLOATS, TEXT, TYPES, Array, Integer, Pointer, of_name


def test_sizes_and_titles() -> None:
    assert {name: kind.size for name, kind in TYPES.items()} | {"u16": 2} == {name: TYPES[name].size for name in TYPES}
    assert (of_name("u16", 0).size, of_name("int", 0).size, of_name("i8", 1).size) == (2, 4, 8)
    assert of_name("u32", 2).title == "u32**"
    assert (TEXT.title, Pointer(None).title) == ("str", "ptr")
    assert Array(Integer(32, True), 3).size == 12


def test_there_is_no_other_type() -> None:
    with pytest.raises(KeyError):
        of_name("struct", 0)
    assert not NO_FLOATS.keys() & TYPES.keys()
