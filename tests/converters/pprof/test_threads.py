"""Places where threads were created, in a capture."""

from __future__ import annotations

from typing import Any

import pytest
from pprof_wire import loaded, saved
from stallscope.converters.model import Profile, ThreadTimes, ValueType
from stallscope.converters.pprof import threads


def times(*made_in: str) -> ThreadTimes:
    return ThreadTimes(1, "x", 2, "y", 10, 1, 1, {}, made_in=made_in)


def test_each_place_is_kept_once() -> None:
    given = [times("main", "\x1b[31m\udcff"), times(), times("a", "b"), times("main", "\x1b[31m\udcff")]
    entries: list[dict[str, Any]] = [{"pid": 1, "made_in": each.made_in} for each in given]
    found = threads.taken_out(entries)
    assert found == {"places": [["main", "\x1b[31m\udcff"], ["a", "b"]], "of": [[0, 0], [2, 1], [3, 0]]}
    assert entries == [{"pid": 1}] * 4
    back = [times() for _ in given]
    threads.put_back(found, back)
    assert back == given


def test_none_are_omitted_and_old_captures_have_none() -> None:
    assert threads.taken_out([{"made_in": ()}]) is None
    old = [times()]
    threads.put_back(None, old)
    assert old == [times()]


@pytest.mark.parametrize(
    "entry",
    [
        *([], 1, {}, {"places": []}, {"places": 1, "of": []}, {"places": [], "of": {}}),
        *(
            {"places": [["a"]], "of": [each]}
            for each in ([0, 1], [1, 0], [-1, 0], [0, -1], [0], [0, True], [0, "0"], 1)
        ),
        *({"places": [each], "of": []} for each in ("a", [1], {}, None, ["a"] * 65)),
        {"places": [], "of": [], "more": 1},
    ],
)
def test_what_no_capture_has_is_refused(entry: Any) -> None:
    with pytest.raises(ValueError, match=r"place|list"):
        threads.put_back(entry, [times()])


def test_a_capture_keeps_them() -> None:
    kept = Profile([ValueType("wall", "nanoseconds")], threads=[times("main", "a\udcff"), times(), times("b")])
    assert loaded(saved(kept)).threads == kept.threads
