from __future__ import annotations

import marshal
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stallscope.converters.readers.python.marshal_data import decode

SCALARS = st.one_of(
    st.integers(-(2**200), 2**200), st.floats(allow_nan=False), st.text(max_size=300), st.none(), st.booleans()
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(tuple), st.dictionaries(st.one_of(st.integers(), st.text()), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(VALUES, st.integers(0, 4))
def test_what_marshal_writes(value: object, version: int) -> None:
    if isinstance(value, float) and version < 2:
        value = 1.5
    data = marshal.dumps(value, version)
    if _depth(value) < 15:
        assert decode(data) == value


def _depth(value: object) -> int:
    if isinstance(value, tuple | dict):
        parts = value.values() if isinstance(value, dict) else value
        return 1 + max(map(_depth, parts), default=0)
    return 0


def test_strings_of_python_2() -> None:
    interned = b"t" + struct.pack("<I", 1) + b"a"
    assert decode(b"(" + struct.pack("<I", 3) + interned + b"R" + struct.pack("<I", 0) + b"s\1\0\0\0b") == (
        "a",
        "a",
        "b",
    )


def test_one_object_twice() -> None:
    shared = ("x", 1)
    assert decode(marshal.dumps((shared, shared))) == (shared, shared)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "byte 0: cut short"),
        (b"0", "byte 0: no value"),
        (b"i\1", "byte 1: cut short"),
        (b"(\xff\xff\xff\x7f", "cut short"),
        (b")\2N", "byte 3: cut short"),
        (b")\1" * 30, "nested too deeply"),
        (b"c" + bytes(100), "'c' is no number, string, tuple or dictionary"),
        (b"[\0\0\0\0", "is no number"),
        (b"r\0\0\0\0", "list index out of range"),
        (b"\xa9\1r\0\0\0\0", "'r' is no number"),
        (b"{{0N0", "a dictionary's key that is none"),
        (b"{N0", "a value is missing"),
        (b"l\xff\xff\xff\x7f", "a number is too large"),
        (b"u\1\0\0\0\xff", "can't decode"),
        (b"f\1x", "could not convert"),
    ],
)
def test_malformed(data: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        decode(data)


@given(st.binary(max_size=60))
def test_any_bytes(data: bytes) -> None:
    try:
        decode(data)
    except ValueError:
        return


@given(VALUES, st.integers(0, 200), st.integers(0, 255))
def test_a_byte_changed(value: object, place: int, byte: int) -> None:
    data = bytearray(marshal.dumps(value))
    data[place % len(data)] = byte
    try:
        decode(bytes(data))
    except ValueError:
        return
