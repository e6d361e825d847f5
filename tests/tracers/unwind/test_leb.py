from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stallscope.tracers.unwind.leb import LIMIT, MAX_BYTES, LebError, leb_sizes, lebs, sleb, uleb


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


@given(st.lists(st.binary(max_size=3) | st.sampled_from([b"\x80" * 9, b"\xff" * 9, b"\x80" * 12]), max_size=20))
def test_in_bulk_as_one_by_one(parts: list[bytes]) -> None:
    data = b"".join(parts) + b"\x01"
    octets = np.frombuffer(data + b"\x80" * (MAX_BYTES + 1), np.uint8)
    at = np.arange(len(data))
    sizes, unsigned, signed = leb_sizes(octets, at), lebs(octets, at, False), lebs(octets, at, True)
    for place in range(len(data)):
        for read, numbers in ((uleb, unsigned), (sleb, signed)):
            try:
                number, end = read(data, place)
            except LebError:
                continue
            assert sizes[place] == end - place
            assert numbers[place] == min(max(number, -LIMIT), LIMIT)
    assert not len(leb_sizes(octets, at[:0]))


def test_sizes_in_bulk_without_an_end() -> None:
    octets = np.full(30, 0x80, np.uint8)
    octets[15] = 1
    assert leb_sizes(octets, np.array([0, 5, 6, 14, 15])).tolist() == [MAX_BYTES + 1, MAX_BYTES + 1, 10, 2, 1]
