from __future__ import annotations

import numpy as np
import pytest
from google.protobuf.internal.decoder import _DecodeVarint
from hypothesis import given, settings
from hypothesis import strategies as st
from stallscope.converters.writers.perfetto import wire

NUMBERS = st.integers(-(1 << 63), (1 << 63) - 1)


@settings(deadline=None)
@given(st.lists(NUMBERS))
def test_numbers_are_what_protobuf_reads(values: list[int]) -> None:
    column = wire.varints(np.array(values, np.int64))
    data, place = column.bytes(), 0
    for value, length in zip(values, column.lengths, strict=True):
        assert wire.varint(value) == data[place : place + length]
        found, place = _DecodeVarint(data, place)
        assert found == value % (1 << 64)
    assert place == len(data)


@pytest.mark.parametrize("kind", ["u1", "u2", "i2", "i4", "u8", "?"])
def test_all_kinds_of_numbers(kind: str) -> None:
    assert wire.varints(np.ones(3, kind)).bytes() == b"\x01\x01\x01"


def test_numbers_beyond_63_bits() -> None:
    assert wire.varints(np.array([(1 << 64) - 1], np.uint64)).bytes() == wire.varint((1 << 64) - 1)


@settings(deadline=None)
@given(st.lists(st.tuples(st.binary(max_size=5), st.integers(0, 300), st.booleans())))
def test_records_are_their_pieces_one_after_the_other(records: list[tuple[bytes, int, bool]]) -> None:
    table = sorted({text for text, _, _ in records})
    which = np.array([table.index(text) for text, _, _ in records], np.int64)
    numbers = np.array([number for _, number, _ in records], np.int64)
    shown = np.array([there for _, _, there in records], bool)
    columns = [
        wire.texts(1, table, which),
        wire.where(shown, wire.numbers(2, numbers)),
        wire.constant(b"!", len(records)),
    ]
    expected = [
        wire.text(1, text) + (wire.number(2, number) if there else b"") + b"!" for text, number, there in records
    ]
    assert wire.joined(columns).bytes() == b"".join(expected)
    assert wire.messages(7, columns).bytes() == b"".join(wire.text(7, each) for each in expected)
    backwards = np.arange(len(records))[::-1]
    assert wire.picked(wire.joined(columns), backwards).bytes() == b"".join(expected[::-1])
    assert wire.stacked([wire.joined(columns)] * 2).bytes() == b"".join(expected * 2)


def test_packed_numbers_are_one_field() -> None:
    assert wire.packed(3, np.array([1, 300])) == wire.text(3, b"\x01\xac\x02")
    assert wire.packed(3, np.array([], np.int64)) == b""


def test_parts_cover_everything_once() -> None:
    for count in (0, 1, 1 << 14, (1 << 14) + 1):
        assert sum(part.stop - part.start for part in wire.parts(count)) == count
