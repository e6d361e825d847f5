from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stallscope.converters.scan.live.keys import LONGEST, keys
from stallscope.converters.scan.live.state import BACKSPACE, DOWN, END, ENTER, ESCAPE, HOME, PAGE_DOWN, PAGE_UP, UP


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"qj/", ["q", "j", "/"]),
        (b"\r\n\x7f\x08", [ENTER, ENTER, BACKSPACE, BACKSPACE]),
        (b"\x1b[A\x1bOB\x1b[H\x1b[4~", [UP, DOWN, HOME, END]),
        (b"\x1b[5~\x1b[6~", [PAGE_UP, PAGE_DOWN]),
        ("é→".encode(), ["é", "→"]),
        (b"\x1b[200~x\x1b[1;5C", ["x"]),
        (b"\x1bq", [ESCAPE, "q"]),
        (b"\xff", ["\ufffd"]),
    ],
)
def test_keys(data: bytes, found: list[str]) -> None:
    assert keys(data, is_all=False) == (found, b"")


@pytest.mark.parametrize("data", [b"\x1b", b"\x1b[", b"\x1bO", b"\x1b[5", "é".encode()[:1]])
def test_the_begin_of_a_key_waits_for_its_rest(data: bytes) -> None:
    assert keys(b"a" + data, is_all=False) == (["a"], data)


def test_an_escape_that_nothing_follows_is_the_key() -> None:
    assert keys(b"\x1b", is_all=True) == ([ESCAPE], b"")


@given(st.binary(max_size=60), st.booleans())
def test_any_bytes_are_taken(data: bytes, is_all: bool) -> None:
    found, rest = keys(data, is_all=is_all)
    assert all(found)
    assert data.endswith(rest)
    assert not (is_all and rest)


def test_what_never_ends_is_not_kept() -> None:
    assert keys(b"\x1b[" + b"1" * LONGEST, is_all=False)[1] == b""
