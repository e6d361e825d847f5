"""Hand-made records: each field, each encoding, each way to be wrong."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stallscope.tracers.unwind.cfi import read_frames
from stallscope.tracers.unwind.chain import CfiError, Section

AT = 0x5000
BODY = bytes([1, 0x78, 16])  # code alignment 1, data alignment -8, return address in 16
INITIAL = bytes.fromhex("0c07089001")


def record(link: int, body: bytes) -> bytes:
    return struct.pack("<II", 4 + len(body), link) + body


def eh(fde: bytes, augmentation: bytes = b"zR", data: bytes = b"\x1b", cie: bytes = BODY, version: int = 1) -> Section:
    size = bytes([len(data)]) if augmentation[:1] == b"z" else b""
    head = record(0, bytes([version]) + augmentation + b"\0" + cie + size + data + INITIAL)
    return Section(head + record(len(head) + 4, fde), AT, True)


def only(section: Section) -> tuple[int, int, bytes]:
    frames = read_frames(section)
    assert not frames.refused
    assert len(frames.pc) == 1
    cie = frames.cies[int(frames.cie[0])]
    assert section.data[cie.begin : cie.end] == INITIAL
    return int(frames.pc[0]), int(frames.size[0]), section.data[int(frames.begin[0]) : int(frames.end[0])]


def pc_at(section: Section) -> int:
    """Virtual address of the FDE's first address."""
    return AT + 8 + 4 + struct.unpack_from("<I", section.data)[0]


@pytest.mark.parametrize(
    ("encoding", "layout", "start"),
    [(0x1B, "<iI", -64), (0x1C, "<qQ", -64), (0x1A, "<hH", -64), (0x13, "<II", 64), (0x10, "<QQ", 64)],
)
def test_relative_addresses(encoding: int, layout: str, start: int) -> None:
    section = eh(struct.pack(layout, start, 32) + b"\0\x41\x0e\x10", data=bytes([encoding]))
    assert only(section) == (pc_at(section) + start, 32, b"\x41\x0e\x10")


@pytest.mark.parametrize(("encoding", "layout"), [(0x00, "<QQ"), (0x03, "<II"), (0x04, "<QQ"), (0x02, "<HH")])
def test_absolute_addresses(encoding: int, layout: str) -> None:
    assert only(eh(struct.pack(layout, 0x4321, 32) + b"\0", data=bytes([encoding]))) == (0x4321, 32, b"")


@pytest.mark.parametrize("size", [0, 4, 127, 128, 300])
def test_augmentation_data_is_skipped(size: int) -> None:
    length = bytes([size]) if size < 128 else bytes([size & 0x7F | 0x80, size >> 7])
    fde = struct.pack("<iI", 16, 32) + length + b"\xee" * size + b"\x41"
    assert only(eh(fde))[2] == b"\x41"


@pytest.mark.parametrize(
    ("letters", "data"),
    [(b"zPLR", b"\x9b\1\2\3\4\x1b\x1b"), (b"zPLR", b"\x03\1\2\3\4\x1b\x1b"), (b"zRS", b"\x1b"), (b"zSR", b"\x1b"),
     (b"zPR", b"\xff\x1b")],
)  # fmt: skip
def test_augmentation_letters(letters: bytes, data: bytes) -> None:
    assert only(eh(struct.pack("<iI", 16, 32) + b"\0\x41", letters, data))[1:] == (32, b"\x41")


@pytest.mark.parametrize(
    ("letters", "data", "cie", "version"),
    [
        (b"eh", b"", BODY, 1),
        (b"zQ", b"\x1b", BODY, 1),
        (b"zPR", b"\x50\1\2\3\4\5\6\x1b", BODY, 1),
        (b"zR", b"", BODY, 1),
        (b"zR", b"\x1b", bytes([1, 0x78, 30]), 1),
        (b"zR", b"\x1b", b"\x80" * 20, 1),
        (b"zR", b"\x1b", BODY, 2),
        (b"zR", b"\x1b", BODY, 4),
    ],
)
def test_common_entry_not_understood(letters: bytes, data: bytes, cie: bytes, version: int) -> None:
    frames = read_frames(eh(struct.pack("<iI", 16, 32) + b"\0", letters, data, cie, version))
    assert not len(frames.pc)
    assert frames.refused == {"common information entry missing or not understood": 1}


@pytest.mark.parametrize("encoding", [0x9B, 0x3B, 0x01, 0x09, 0x50])
def test_encodings_that_need_the_running_program_are_refused(encoding: int) -> None:
    frames = read_frames(eh(struct.pack("<qQ", 16, 32) + b"\0", data=bytes([encoding])))
    assert not len(frames.pc)
    assert frames.refused == {"record cut short": 1}


@pytest.mark.parametrize("fde", [b"", b"\1\2\3\4", struct.pack("<iI", 1, 2), struct.pack("<iI", 1, 2) + b"\5abc"])
def test_description_cut_short(fde: bytes) -> None:
    frames = read_frames(eh(fde))
    assert not len(frames.pc)
    assert frames.refused == {"record cut short": 1}


def test_address_range_beyond_the_end_of_memory() -> None:
    frames = read_frames(eh(struct.pack("<QQ", 2**64 - 8, 16) + b"\0", data=b"\0"))
    assert frames.refused == {"absurd addresses": 1}
    assert not len(frames.pc)


def test_pointer_to_no_common_entry() -> None:
    good = eh(struct.pack("<iI", 16, 32) + b"\0\x41")
    more = good.data + record(12, struct.pack("<iI", 16, 32) + b"\0") + record(2**32 - 1, b"12345678")
    frames = read_frames(Section(more, AT, True))
    assert len(frames.pc) == 1
    assert frames.refused == {"common information entry missing or not understood": 2}


def test_records_before_a_damaged_length_count() -> None:
    good = eh(struct.pack("<iI", 16, 32) + b"\0\x41").data
    frames = read_frames(Section(good + struct.pack("<II", 1 << 20, 7) + bytes(64), AT, True))
    assert len(frames.pc) == 1
    assert frames.refused == {"records beyond the section's end": 1}


@pytest.mark.parametrize(("ends_at_zero", "count"), [(False, 2), (True, 1)])
def test_record_of_no_length(ends_at_zero: bool, count: int) -> None:
    one = eh(struct.pack("<iI", 16, 32) + b"\0").data
    assert len(read_frames(Section(one + bytes(4) + one, AT, True, ends_at_zero)).pc) == count


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("version", [1, 3, 4])
def test_debug_frame(wide: bool, version: int) -> None:
    def debug_record(link: int, body: bytes) -> bytes:
        if wide:
            return struct.pack("<IQQ", 2**32 - 1, 8 + len(body), link % 2**64) + body
        return struct.pack("<II", 4 + len(body), link % 2**32) + body

    sizes = b"\x08\x00" if version == 4 else b""
    cie = debug_record(-1, bytes([version, 0]) + sizes + BODY + INITIAL)
    first = debug_record(0, struct.pack("<QQ", 0x4000, 8))
    section = Section(cie + debug_record(0, struct.pack("<QQ", 0x4321, 32) + b"\x41") + first, 0, False)
    frames = read_frames(section)
    assert frames.pc.tolist() == [0x4321, 0x4000]
    assert not frames.refused
    assert section.data[frames.begin[0] : frames.end[0]] == b"\x41"


@settings(max_examples=300)
@given(st.binary(max_size=200), st.booleans(), st.integers(0, 60))
def test_any_bytes(data: bytes, is_eh: bool, cut: int) -> None:
    good = eh(struct.pack("<iI", 16, 32) + b"\0\x41").data
    try:
        frames = read_frames(Section(good[:cut] + data, AT, is_eh))
    except CfiError:
        return
    assert (frames.begin <= frames.end).all()
    assert (frames.end <= cut + len(data)).all()
    assert len(frames.cies) > max(frames.cie.tolist(), default=-1)
