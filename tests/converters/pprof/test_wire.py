"""Bytes, which are protobuf's own."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from stallscope.converters.pprof.schema import messages
from stallscope.converters.pprof.wire import bytes_tag, number_tag, signed, sized, varint

EDGES = [1, *(each for bits in (7, 14, 21, 28, 35, 63) for each in ((1 << bits) - 1, 1 << bits)), (1 << 64) - 1]


@pytest.mark.parametrize("number", EDGES)
def test_numbers(number: int) -> None:
    assert number_tag(3) + varint(number) == messages().Location(address=number).SerializeToString()
    value = number - (1 << 63) or 1
    assert number_tag(3) + signed(value) == messages().Label(num=value).SerializeToString()


def test_zero_is_a_byte() -> None:
    assert (varint(0), signed(0)) == (b"\0", b"\0")


def test_nested() -> None:
    for length in (1, 127, 128, 20_000):
        content = bytes(length)
        assert bytes_tag(5000) + sized(content) == messages().Profile(stallscope=content).SerializeToString()


@pytest.mark.parametrize(
    ("encode", "number"), [(varint, -1), (varint, 1 << 64), (signed, 1 << 63), (signed, -(1 << 63) - 1)]
)
def test_what_does_not_fit_is_refused(encode: Callable[[int], bytes], number: int) -> None:
    with pytest.raises(ValueError, match="64 bits"):
        encode(number)
