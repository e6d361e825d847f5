from __future__ import annotations

import codecs
import gzip
import io
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.readers.base.source import HEAD, Source, open_source

TEXT = b"".join(b"line %d\n\n" % i for i in range(300_000))


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_chunks_end_after_separators_and_lose_nothing(pack: Callable[[bytes], bytes]) -> None:
    source = Source(io.BytesIO(pack(TEXT)), "x")
    assert source.head == TEXT[:HEAD]
    chunks = list(source.chunks(b"\n\n"))
    assert len(chunks) > 2
    assert b"".join(chunks) == TEXT
    assert all(chunk.endswith(b"\n\n") for chunk in chunks)


def test_rest_without_separator_is_a_chunk() -> None:
    assert list(Source(io.BytesIO(b"a\n\nb"), "x").chunks(b"\n\n")) == [b"a\n\n", b"b"]
    assert list(Source(io.BytesIO(b""), "x").chunks()) == []


def test_a_separator_that_does_not_come_is_not_looked_for_in_the_same_bytes_again() -> None:
    file = _Counted(b"x" * (8 << 20) + b"\n\nrest")
    assert [len(chunk) for chunk in Source(file, "x").chunks(b"\n\n")] == [(8 << 20) + 2, 4]
    assert file.reads < 40


class _Counted(io.BytesIO):
    reads = 0

    def read(self, size: int | None = -1) -> bytes:
        self.reads += 1
        return super().read(size)


def test_zstd_in_small_reads() -> None:
    source = Source(io.BytesIO(zstandard.ZstdCompressor().compress(TEXT)), "x")
    parts = [source.read(1 + i % 999) for i in range(len(TEXT) // 400)]
    assert b"".join(parts) == TEXT and parts[-1] == b""


def test_limit() -> None:
    assert Source(io.BytesIO(TEXT), "x").read_all(len(TEXT)) == TEXT
    with pytest.raises(StallscopeError, match="more than"):
        Source(io.BytesIO(TEXT), "x").read_all(len(TEXT) - 1)


@pytest.mark.parametrize("cut", [5, 20, -1])
def test_damaged_gzip_is_named(cut: int) -> None:
    data = gzip.compress(TEXT)[:cut]
    with pytest.raises(StallscopeError, match="x cannot be read"):
        Source(io.BytesIO(data), "x").read_all(1 << 30)


def test_zstd() -> None:
    packed = zstandard.ZstdCompressor().compress(TEXT)
    skippable = b"\x50\x2a\x4d\x18\x03\0\0\0abc"
    for data in (packed, packed + packed, packed + skippable + packed, packed + skippable):
        source = Source(io.BytesIO(data), "x")
        assert source.packed
        assert b"".join(source.chunks()) == TEXT * data.count(packed)


@pytest.mark.parametrize("cut", [5, 20, 70_000, -1])
def test_damaged_zstd_is_named(cut: int) -> None:
    packed = zstandard.ZstdCompressor(level=1).compress(random.Random(1).randbytes(300_000))
    for data in (packed[:cut], packed + packed[:cut], packed[:cut] + b"junk" * 9000, packed + b"junk"):
        with pytest.raises(StallscopeError, match="x cannot be read"):
            Source(io.BytesIO(data), "x").read_all(1 << 30)


def test_zstd_names_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(StallscopeError, match="needs the Python package zstandard"):
        Source(io.BytesIO(b"\x28\xb5\x2f\xfd\x00\x00"), "x.zst")


def test_paths_that_cannot_be_opened(tmp_path: Path) -> None:
    for path in (str(tmp_path), str(tmp_path / "missing"), "a\0b", ""):
        with pytest.raises(StallscopeError, match="cannot be read"), open_source(path):
            pass


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_a_file_can_be_read_again_from_where_it_began(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    text = b"line\n" * 50_000
    path = tmp_path / "x"
    path.write_bytes(b"before" + pack(text))
    with path.open("rb") as file:
        file.seek(6)
        found = Source(file, "x")
        assert found.read_all(1 << 20) == text
        assert found.can_rewind
        found.rewind()
        assert found.head == text[: len(found.head)]
        assert found.read_all(1 << 20) == text


def test_a_pipe_cannot_be_read_again() -> None:
    read, write = os.pipe()
    os.write(write, b"text")
    os.close(write)
    with os.fdopen(read, "rb") as file:
        assert not Source(file, "x").can_rewind


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_utf_16_is_read(codec: str, pack: Callable[[bytes], bytes]) -> None:
    text = "größe;𝄞 3\n" * 50_000
    mark = {"utf-16": b"", "utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}[codec]
    source = Source(io.BytesIO(pack(mark + text.encode(codec))), "x")
    assert source.packed
    assert source.head == text.encode()[: len(source.head)]
    assert b"".join(source.chunks()) == text.encode()
    source.rewind()
    assert source.read_all(1 << 30) == text.encode()


def test_the_mark_of_utf_8_is_taken_off() -> None:
    source = Source(io.BytesIO(codecs.BOM_UTF8 + b"a 1\n"), "x")
    assert (source.head, source.packed) == (b"a 1\n", False)
    assert Source(io.BytesIO(codecs.BOM_UTF8[:2]), "x").head == codecs.BOM_UTF8[:2]


def test_lines_are_counted() -> None:
    for text, lines in ((b"a\nb\n", 2), (b"a\nb", 2), (b"", 0), (b"a\n" * 100_000 + b"b", 100_001)):
        source = Source(io.BytesIO(text), "x")
        assert b"".join(source.chunks()) == text
        assert source.lines == lines
