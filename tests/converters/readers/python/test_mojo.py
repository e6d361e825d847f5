from __future__ import annotations

import contextlib
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import Frame, Profile, Sample
from stallscope.converters.readers.base.options import ReadOptions
from stallscope.converters.readers.base.source import Source
from stallscope.converters.readers.python import mojo

DATA = Path(__file__).resolve().parents[3] / "data" / "mojo"
A, B = Frame("a", "python", file="x.py", line=3), Frame("b", "python", file="x.py", line=4)


def read(data: bytes) -> Profile:
    return mojo.read(Source(io.BytesIO(data), "x"), ReadOptions())


def varint(number: int) -> bytes:
    """Number encoded as the format's description says."""
    first = (number < 0) << 6 | abs(number) & 0x3F
    rest, more = abs(number) >> 6, []
    while rest:
        more.append(rest & 0x7F)
        rest >>= 7
    encoded = [first, *more]
    return bytes(byte | 0x80 for byte in encoded[:-1]) + bytes(encoded[-1:])


def event(number: int, *fields: int | str) -> bytes:
    return bytes([number]) + b"".join(
        varint(field) if isinstance(field, int) else field.encode() + b"\0" for field in fields
    )


def header(version: int, mode: str = "wall") -> bytes:
    return b"MOJ" + varint(version) + event(1, "mode", mode)


STRINGS = event(11, 100, "x.py") + event(11, 101, "a") + event(11, 102, "b")
FRAMES = STRINGS + event(3, 7, 100, 101, 3, 0, 0, 0) + event(3, 8, 100, 102, 4, 0, 0, 0)


def test_the_description_s_example() -> None:
    assert varint(-131) == b"\xc3\x02"


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_versions(version: int) -> None:
    stack = event(2, 5, 0, "1f") if version > 2 else event(2, 5, "1f")
    frames = FRAMES if version > 1 else STRINGS + event(3, 7, 100, 101, 3) + event(3, 8, 100, 102, 4)
    data = header(version) + stack + frames + event(5, 7) + event(5, 8) + event(9, 1_000_000)
    assert read(data).samples == [Sample((A, B), (10**9, 1), (("pid", 5), ("tid", 31)))]


def test_full_mode_and_special_frames() -> None:
    data = header(3, "full") + event(2, 5, 0, "1f") + FRAMES + event(5, 7) + event(6, "vfs_read") + event(7)
    data += event(9, 20) + event(10, 4096) + event(2, 5, 0, "1f") + event(4) + event(8) + event(9, 5) + event(10, -7)
    samples = read(data).samples
    assert [s.values for s in samples] == [(20_000, 20_000, 4096, 0, 1), (5_000, 0, 0, 7, 1)]
    assert samples[0].stack == (A, Frame("vfs_read", "kernel"), Frame("[garbage collection]", "other"))
    assert samples[1].stack == (Frame("[invalid]", "other"),)


def test_version_4_repeats_stacks_and_has_tasks() -> None:
    stack = event(2, 5, 0, "1f")
    native = event(11, 103, "libc.so") + event(3, 9, 103, 101, 0, 0, 0, 0)
    data = header(4) + stack + FRAMES + native + event(5, 7) + event(5, 9) + event(9, 1)
    tasks = event(14, 900, 0, 2) + event(5, 8) + event(5, 8) + event(15, 900, 901) + event(16, 900)
    data += stack + event(5, 8) + event(13) + event(9, 2) + tasks
    c = Frame("a", "native", file="libc.so")
    assert [(s.stack, s.values) for s in read(data).samples] == [((A, c), (1_000, 1)), ((A, B), (2_000, 1))]


def test_references_belong_to_a_process() -> None:
    data = header(3) + event(2, 5, 0, "1f") + FRAMES + event(5, 7) + event(9, 1)
    data += event(2, 6, 0, "1f") + event(5, 7) + event(9, 1)
    profile = read(data)
    assert [s.stack for s in profile.samples] == [(A,), (Frame("[invalid]", "other"),)]
    assert profile.lost == {"frames without a definition": 1}


def test_recording_has_the_sums_of_its_text() -> None:
    """The totals of what austin-python's mojo2austin makes of the file."""
    profile = read((DATA / "full.mojo").read_bytes())
    assert (profile.total("wall"), profile.total("count")) == (2_901_635_000, 58)
    assert {s.label("tid") for s in profile.samples} == {13038, 13040, 13041}
    assert profile.lost == {}


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_chunks_of_any_size_give_the_same(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data = (DATA / "full.mojo").read_bytes()
    whole = read(data).samples
    monkeypatch.setattr(mojo, "_CHUNK", size)
    source = Source(io.BytesIO(data), "x")
    source._ahead, source._file = b"", io.BytesIO(data)
    assert mojo.read(source, ReadOptions()).samples == whole


def test_cut_and_malformed() -> None:
    data = header(3) + event(2, 5, 0, "1f") + FRAMES + event(5, 7) + event(9, 1)
    assert read(data + event(2, 5)).lost == {"events cut short at the end": 1}
    with pytest.raises(StallscopeError, match=f"x, byte {len(data)}: expected an event of the MOJO format"):
        read(data + b"\x63")
    for wrong in (b"MOJ\x05", b"MO", b"MOJ\x03\x09" + b"\xff" * 20, b"MOJ\x03\x01" + b"a" * 70_000):
        with pytest.raises(StallscopeError, match="expected an event of the MOJO format"):
            read(wrong)


@given(st.lists(st.sampled_from([FRAMES, *(bytes([i]) for i in range(18)), event(2, 5, 0, "1f"), b"\xff", b"a\0"])))
def test_anything_is_read_or_refused(parts: list[bytes]) -> None:
    with contextlib.suppress(StallscopeError):
        read(header(4) + b"".join(parts))
