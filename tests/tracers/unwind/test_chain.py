"""The chain of records with and without hints: the same, whatever the hints are."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stallscope.tracers.unwind import chain
from stallscope.tracers.unwind.chain import CfiError, Records, Section, walk

CIE = struct.pack("<II", 12, 0) + b"\1\0\1\x78\x10\0\0\0"


def fde(cie_offset: int, at: int, body: bytes = b"12345678") -> bytes:
    return struct.pack("<II", 4 + len(body), at + 4 - cie_offset) + body


def section_of(*parts: bytes) -> tuple[bytes, list[int]]:
    """(content, where each part begins)."""
    places = [sum(len(part) for part in parts[:i]) for i in range(len(parts))]
    return b"".join(parts), places


def typical() -> tuple[bytes, list[int]]:
    """A CIE with two FDEs, a second one with one, and the closing zero."""
    data = CIE
    fdes = []
    for cie_at in (0, 0):
        fdes.append(len(data))
        data += fde(cie_at, len(data))
    second = len(data)
    data += CIE
    fdes.append(len(data))
    return data + fde(second, len(data), b"abcd") + bytes(4), fdes


def plain(records: Records) -> tuple[list[int], list[int], list[int], dict[int, tuple[int, int]], bool]:
    return records.cie_at.tolist(), records.body.tolist(), records.end.tolist(), records.cies, records.cut


def test_typical_section() -> None:
    data, fdes = typical()
    records = walk(Section(data, 0, True))
    assert records.body.tolist() == [at + 8 for at in fdes]
    assert records.cie_at.tolist() == [0, 0, 48]
    assert records.end.tolist() == [32, 48, 76]
    assert records.cies == {0: (8, 16), 48: (56, 64)}
    assert not records.cut


@pytest.mark.parametrize("keep", [slice(None), slice(1, None), slice(0, 1), slice(None, None, 2), slice(1, 2)])
def test_hints_change_nothing(keep: slice) -> None:
    data, fdes = typical()
    hints = np.array(fdes[keep], np.int64)
    assert chain._Walk(Section(data, 0, True)).by_hints(hints) is not None
    assert plain(walk(Section(data, 0, True, hints=hints))) == plain(walk(Section(data, 0, True)))


@pytest.mark.parametrize("extra", [0, 4, 17, 20, 48, 72, 1000, -1, -(1 << 40), 1 << 40])
def test_wrong_hints_are_not_believed(extra: int) -> None:
    data, fdes = typical()
    hints = np.array([*fdes, extra], np.int64)
    assert plain(walk(Section(data, 0, True, hints=hints))) == plain(walk(Section(data, 0, True)))


@settings(max_examples=300)
@given(st.data(), st.booleans())
def test_any_bytes_and_hints(data: st.DataObject, ends_at_zero: bool) -> None:
    content = bytearray(typical()[0])
    for _ in range(data.draw(st.integers(0, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.sampled_from([0, 1, 4, 8, 12, 0xFF]))
    hints = np.array(data.draw(st.lists(st.sampled_from([16, 32, 64, 48, 0, 20, 76]), max_size=5)), np.int64)
    section = Section(bytes(content), 0, True, ends_at_zero)
    try:
        expected = plain(walk(section))
    except CfiError:
        return
    assert plain(walk(section._replace(hints=hints))) == expected


def test_absurdly_many_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "_MAX_RECORDS", 100)
    with pytest.raises(CfiError):
        walk(Section(bytes(1000), 0, True))


@pytest.mark.parametrize(("ends_at_zero", "count"), [(False, 2), (True, 1)])
def test_record_of_no_length(ends_at_zero: bool, count: int) -> None:
    data, _ = section_of(CIE, fde(0, 16), bytes(4), fde(0, 36), bytes(4))
    for hints in (None, np.array([16, 36]), np.array([16])):
        assert len(walk(Section(data, 0, True, ends_at_zero, hints)).body) == count


def test_length_beyond_the_end_cuts() -> None:
    data, _ = section_of(CIE, fde(0, 16), struct.pack("<II", 1 << 20, 36) + bytes(16))
    for hints in (None, np.array([16])):
        records = walk(Section(data, 0, True, hints=hints))
        assert (len(records.body), records.cut) == (1, True)
