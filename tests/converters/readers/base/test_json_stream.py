from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.readers.base import json_stream
from stallscope.converters.readers.base.json_stream import JsonStream, Unfinished
from stallscope.converters.readers.base.source import Source


def members(text: bytes) -> tuple[list[tuple[str, Any, bool]], bool | None]:
    """Members that come, and how they end: None well, else whether within a value."""
    found: list[tuple[str, Any, bool]] = []
    try:
        for member in JsonStream(Source(io.BytesIO(text), "x"), frozenset({"events"})).members():
            found.append(tuple(member))
    except Unfinished as end:
        return found, end.within
    return found, None


def test_array() -> None:
    assert members(b'\xef\xbb\xbf [ {"a": 1.50}, 2 ,\n"x", [3], null, true ]\n') == (
        [("", value, True) for value in ({"a": "1.50"}, 2, "x", [3], None, True)],
        None,
    )
    assert members(b"[]") == ([], None)


def test_object() -> None:
    text = b'{"a": [1, 2], "events": [1, {"b": 1e3}], "events ": {}, "c": 12}'
    assert members(text) == (
        [
            ("a", [1, 2], False),
            ("events", 1, True),
            ("events", {"b": "1e3"}, True),
            ("events ", {}, False),
            ("c", 12, False),
        ],
        None,
    )


@pytest.mark.parametrize(
    ("text", "count", "within"),
    [
        (b"[1, {}", 2, False),
        (b"[1, {},", 2, False),
        (b"[{}, {", 1, True),
        (b"[{}, -", 1, True),
        (b'[{}, {"a": "b', 1, True),
        (b'[{}, {"a": tru', 1, True),
        (b'[{}, {"a": "\\u12', 1, True),
        (b'{"events": [{}', 1, False),
        (b'{"events": [{}]', 1, False),
        (b'{"events": [{}], "x": [1,', 1, True),
        (b'{"events"', 0, False),
    ],
)
def test_unfinished(text: bytes, count: int, within: bool) -> None:
    found, ended = members(text)
    assert (len(found), ended) == (count, within)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (b"hello", 1),
        (b"\n\n12", 3),
        (b'[1,\n{"a" 1}, ' + b"2, " * 50 + b"]", 2),
        (b"[1,\n\nwhat, " + b"2, " * 50 + b"]", 3),
        (b'{"a": 1,\n 5: 2}', 2),
        (b'{"a" 1}' + b" " * 50, 1),
    ],
)
def test_no_json_says_the_line(text: bytes, line: int) -> None:
    with pytest.raises(StallscopeError, match=f"x, line {line}: expected"):
        members(text)


def test_a_number_that_python_does_not_convert_is_refused() -> None:
    with pytest.raises(StallscopeError, match="x, line 2: expected JSON numbers"):
        members(b'{"events": [\n' + b"9" * 100_000 + b"]}")


def test_a_value_without_an_end_is_refused_before_it_fills_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "MAX_VALUE", 1000)
    monkeypatch.setattr(json_stream, "_CHUNK", 100)
    with pytest.raises(StallscopeError, match="JSON values of less than"):
        members(b'["' + b"a" * 200_000)


@pytest.mark.parametrize("size", range(1, 9))
def test_numbers_are_not_cut_where_a_chunk_ends(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(json_stream, "_CHUNK", size)
    source = Source(io.BytesIO(text := b"[54.25,1e+5, 10.5e1,7,2.5]"), "x")
    source._ahead, source._file = b"", io.BytesIO(text)
    found = [member.value for member in JsonStream(source, frozenset()).members()]
    assert found == ["54.25", "1e+5", "10.5e1", 7, "2.5"]


VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=2), inner, max_size=3)),
    max_leaves=6,
)


@given(st.lists(VALUES, max_size=6), st.booleans(), st.integers(1, 9))
def test_chunks_of_any_size_give_what_json_loads_gives(values: list[Any], ascii_: bool, size: int) -> None:
    text = json.dumps(values, ensure_ascii=ascii_).encode(errors="replace")
    whole = json_stream._CHUNK
    json_stream._CHUNK = size
    try:
        source = Source(io.BytesIO(text), "x")
        source._ahead, source._file = b"", io.BytesIO(text)
        found = [member.value for member in JsonStream(source, frozenset()).members()]
    finally:
        json_stream._CHUNK = whole
    assert found == json.loads(text)


@pytest.mark.parametrize("chunk", [1, 7, 40, 1000])
def test_elements_that_are_taken_in_bulk_do_not_come(monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr(json_stream, "_CHUNK", chunk)
    events = [{"a": i, "b": "é" * (i % 5)} for i in range(40)]
    text = json.dumps({"x": [{}], "events": events, "y": 2}, ensure_ascii=False).encode()
    taken: list[Any] = []

    def take(key: str, data: bytes) -> int:
        assert key == "events"
        assert data.startswith(b"{")
        end = data.find(b"}, {")
        if end < 0 or len(taken) % 3 == 2:
            taken.append(None)
            return 0
        taken.append(json.loads(data[: end + 1]))
        return end + 3

    stream = JsonStream(Source(io.BytesIO(text), "x"), frozenset({"events"}), bulk=take)
    found = list(stream.members())
    assert [each.key for each in found if not each.element] == ["x", "y"]
    rest = [each.value for each in found if each.element]
    mine = [each for each in taken if each is not None]
    assert sorted(rest + mine, key=lambda each: each["a"]) == events
    assert bool(mine) == (chunk > 7)
