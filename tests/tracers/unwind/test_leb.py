from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stallscope.tracers.unwind.leb import LebError, sleb, uleb


@pytest.mark.parametrize(("data", "number"), [(b"\x02", 2), (b"\x80\x01", 128), (b"\xe5\x8e\x26", 624485)])
def test_unsigned(data: bytes, number: int) -> None:
    assert uleb(b"?" + data + b"?", 1) == (number, 1 + len(data))


@pytest.mark.parametrize(
    ("data", "number"), [(b"\x02", 2), (b"\x7e", -2), (b"\xff\x00", 127), (b"\x81\x7f", -127), (b"\x80\x7f", -128)]
)
def test_signed(data: bytes, number: int) -> None:
    assert sleb(data, 0) == (number, len(data))


@pytest.mark.parametrize("data", [b"", b"\x80", b"\x80" * 20, b"\xff" * 9 + b"\x7e"])
def test_without_end_or_too_large(data: bytes) -> None:
    with pytest.raises(LebError):
        uleb(data, 0)


@given(st.binary(max_size=12), st.integers(0, 14))
def test_any_bytes(data: bytes, at: int) -> None:
    for read, low, high in ((uleb, 0, 1 << 64), (sleb, -1 << 63, 1 << 63)):
        try:
            number, end = read(data, at)
        except LebError:
            continue
        assert low <= number < high
        assert at < end <= len(data)
