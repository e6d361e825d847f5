from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.readers.base import json_stream
from stallscope.converters.readers.base.source import Source
from stallscope.converters.readers.speedscope.json import JsonParts


def parts_of(text: bytes) -> JsonParts:
    """Read in chunks as small as the test has set."""
    source = Source(io.BytesIO(text), "x")
    source._ahead, source._file = b"", io.BytesIO(text)
    return JsonParts(source)


def rebuilt(parts: JsonParts, depth: int) -> Any:
    """The value that begins here, its parts taken one by one down to ``depth``."""
    if depth and parts.next() == "{":
        return {key: rebuilt(parts, depth - 1) for key in parts.keys_here()}
    if depth and parts.next() == "[":
        return [rebuilt(parts, depth - 1) for _ in parts.elements()]
    return parts.value()


def read(text: bytes, depth: int, size: int) -> Any:
    whole = json_stream._CHUNK
    json_stream._CHUNK = size
    try:
        parts = parts_of(text)
        value = rebuilt(parts, depth)
        parts.end()
        return value
    finally:
        json_stream._CHUNK = whole


NUMBERS = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False))
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=2), inner, max_size=4)),
    max_leaves=10,
)


@given(VALUES, st.booleans(), st.sampled_from([None, 1]), st.integers(0, 4), st.integers(1, 9))
def test_any_document_in_any_chunks(value: Any, ascii_: bool, indent: int | None, depth: int, size: int) -> None:
    text = json.dumps(value, ensure_ascii=ascii_, indent=indent).encode(errors="surrogatepass")
    assert read(text, depth, size) == json.loads(text)


LF = b"\n"
CUT = [b"", b" \n ", b"{", b'{"a"', b'{"a": "b', b"[1,\n\n 2", b'["\\u00', b"[tr", b"[1, -", b'{"a": [1, 2],\n']


@pytest.mark.parametrize("depth", [0, 1, 3])
@pytest.mark.parametrize("size", [1, 5, 1000])
@pytest.mark.parametrize(
    "text",
    [
        *CUT,
        b'{"a" 1}',
        b'{"a":}',
        b'{"a": 1 "b": 2}',
        b'{"a": 1,}',
        b'{"a": [1, {"b": 2 , \n \n }]}',
        b"[1,]",
        b"[[1, 2],\n\n \n]",
        b"{,}",
        b"{1: 2}",
        b"[1 2]",
        b"[1,,2]",
        b"[tru]",
        b'[{"a": [1, 2}]',
        b"[1]]",
        b'{"a": 1}\n x',
        b'["a\nb"]',
    ],
)
def test_what_is_no_json_is_told_as_json_loads_tells_it(text: bytes, depth: int, size: int) -> None:
    with pytest.raises(json.JSONDecodeError) as known:
        json.loads(text)
    where = f"x, line {known.value.lineno}: expected JSON ({known.value.msg} at column {known.value.colno})"
    if text in CUT:
        where = f"x is cut short: it ends in line {text.count(LF) + 1}, within its JSON"
    with pytest.raises(StallscopeError) as error:
        read(text, depth, size)
    assert error.value.cause == where


def test_bytes_that_are_no_text_are_told_with_their_place() -> None:
    with pytest.raises(ValueError, match="'utf-8' codec can't decode byte 0xff in position 9: invalid start byte"):
        read(b'{"a": "bc\xff"}', 1, 4)


def test_what_begins_with_a_mark_and_other_encodings() -> None:
    text = '{"a": ["\u00e9"]}'
    for encoding in ("utf-8-sig", "utf-16", "utf-32-be"):
        parts = JsonParts(Source(io.BytesIO(text.encode(encoding)), "x"))
        assert rebuilt(parts, 2) == {"a": ["\u00e9"]}


def test_a_run_ends_before_the_last_separator_and_is_told_once() -> None:
    parts = parts_of(b"[1, 2, 30, 4], 5, 6")
    for _ in parts.elements():
        run = parts.run(",", "]")
        if run:
            assert run == "1, 2, 30"
            assert parts.run(",", "]") == ""
            parts.skip(len(run) + 1)
        last = parts.value()
    assert last == 4
