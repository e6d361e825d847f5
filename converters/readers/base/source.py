"""The decompressed bytes of one input: a file or standard input, plain, gzip or zstd."""

from __future__ import annotations

import codecs
import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, NoReturn, cast

from ...base import memory
from ...base.errors import StallscopeError
from ...base.text import printable

STDIN = "-"
HEAD = 1 << 16
"""Number of bytes on which the choice of a reader is based."""

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_READ = 1 << 18
_CHUNK = 1 << 16
"""Small enough that its lines stay in the core's cache and that the allocator reuses the memory: larger blocks are
mapped again each time, page by page."""
_PACKED = 1 << 10
"""Number of bytes passed to zstd at once: four of them may expand to 128 KiB (a run-length block, RFC 8878)."""
_MAX_CHUNK = 64 << 20
_FEW_SEPARATORS = 16 << 20
_LEAST, _TIMES = 320 << 20, 24
"""Bytes of memory that reading an input may take, or times its size (packed, if it is packed). Distinct folded stacks
of 60 frames of 50 characters take 16 times their size packed, and less than 3 times their size unpacked."""
_STEP = 4 << 20
"""Bytes of text after which it is looked how much was taken."""


class Source:
    """A stream whose first bytes (``head``) are known before it is read. ``name`` is printable, for messages."""

    def __init__(self, file: BinaryIO | Part, name: str, *, packed: bool = True) -> None:
        """``file`` must be at its start and may be ``packed`` (compressed). Raises StallscopeError when it cannot be
        read, as every method does."""
        self.name = name
        self.format = ""
        """The name of its format, once known: for messages."""
        self._input, self._may_be_packed = file, packed
        self._start = file.tell() if isinstance(file, io.IOBase) and file.seekable() else None
        self._begin()

    @property
    def can_rewind(self) -> bool:
        """False for a pipe."""
        return self._start is not None

    def rewind(self) -> None:
        """Returns to the beginning, if possible."""
        if self._start is not None:
            cast(BinaryIO, self._input).seek(self._start)
            self._begin()

    def _begin(self) -> None:
        self._raw = _Raw(self._input)
        self._file: Any = self._raw
        self._since = 0
        self._before = memory.used()
        magic = self._exactly(len(_ZSTD))
        self._file = _Joined(magic, self._raw)
        self.packed = self._may_be_packed and (magic.startswith(_GZIP) or magic == _ZSTD)
        """Whether the input is compressed."""
        if self.packed and magic == _ZSTD:
            self._file = _zstd(self._file, self.name)
        elif self.packed:
            self._file = gzip.GzipFile(fileobj=self._file)
        self._decode()
        self.lines = 0
        """Number of line ends in the text returned by `chunks`."""
        self.head = self._exactly(HEAD)
        self._ahead = self.head

    def _decode(self) -> None:
        """Removes a byte order mark, and converts UTF-16 to UTF-8."""
        mark = self._exactly(len(codecs.BOM_UTF8)) if self._may_be_packed else b""
        if mark.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            self._file = _Utf16(_Joined(mark, self._file))
            self.packed = True
        elif mark and mark != codecs.BOM_UTF8:
            self._file = _Joined(mark, self._file)

    def read(self, size: int = _READ) -> bytes:
        """The next bytes, at most ``size``; b"" at the end."""
        if self._ahead:
            data, self._ahead = self._ahead[:size], self._ahead[size:]
            return data
        return self._read(size)

    def read_all(self, limit: int) -> bytes:
        """The whole stream. StallscopeError when it has more than ``limit`` bytes."""
        parts, size = [], 0
        while data := self.read():
            parts.append(data)
            size += len(data)
            if size > limit:
                raise StallscopeError(
                    f"{self.name} has more than {limit >> 20} MiB, unpacked", "record for a shorter time"
                )
        return b"".join(parts)

    def chunks(self, separator: bytes = b"\n") -> Iterator[bytes]:
        """The stream in pieces that end after a ``separator`` (or, when that is rare, after a line). The last piece may
        end anywhere. StallscopeError for a line of more than 64 MiB."""
        rest = b""
        # If no separator is found, read more at a time: the same bytes would otherwise be searched too often.
        while data := self.read(max(_CHUNK, len(rest) // 4)):
            data = rest + data
            cut = data.rfind(separator) + len(separator)
            if cut < len(separator):
                cut = data.rfind(b"\n") + 1 if len(data) > _FEW_SEPARATORS else 0
            if not cut and len(data) > _MAX_CHUNK:
                raise StallscopeError(f"{self.name} has a line of more than {_MAX_CHUNK >> 20} MiB", "is it text?")
            rest = data[cut:]
            if cut:
                self.lines += data.count(b"\n", 0, cut)
                yield data[:cut]
        if rest:
            self.lines += rest.count(b"\n") + (rest[-1:] != b"\n")
            yield rest

    def check_memory(self, size: int = _STEP) -> None:
        """StallscopeError if reading has taken too much memory. To be called for every ``size`` bytes of text, or what
        takes as much."""
        self._since += size
        if self._since < _STEP:
            return
        self._since = 0
        most = max(_LEAST, _TIMES * self._raw.size)
        if memory.used() - self._before > most:
            raise StallscopeError(
                f"{self.name} has more than {most >> 20} MiB of distinct stacks, but {self._raw.size >> 20} MiB itself",
                "record for a shorter time; if it is yours, and packed, unpack it first",
            )

    def fail(self, line: int, expected: str) -> NoReturn:
        """Raises a StallscopeError that names the ``line`` and what was ``expected`` there."""
        raise StallscopeError(
            f"{self.name}, line {line}: expected {expected}", "is it this format? --from NAME chooses another one"
        )

    def fail_cut(self, line: int) -> NoReturn:
        """Raises a StallscopeError that says that the input's JSON is incomplete; ``line`` is the last line."""
        raise StallscopeError(
            f"{self.name} is cut short: it ends in line {line}, within its JSON",
            "copy it again, or record it again: the tool that writes it has to end by itself, and its disk needs room",
        )

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size and (more := self._read(size - len(data))):
            data += more
        return data

    def _read(self, size: int) -> bytes:
        try:
            data = cast(bytes, self._file.read(size))
            self.check_memory(len(data))
            return data
        except (OSError, EOFError, zlib.error) as error:
            raise self._damaged(error) from error
        except Exception as error:
            if type(error).__name__ != "ZstdError":
                raise
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> StallscopeError:
        return StallscopeError(f"{self.name} cannot be read: {error}", "copy it again from where it came from")


@contextmanager
def open_source(path: str, part: tuple[int, int] | None = None) -> Iterator[Source]:
    """Opens the input called ``path``; ``-`` is standard input. ``part`` limits a plain file to the bytes from its
    first offset up to its second. Raises StallscopeError."""
    if path == STDIN and sys.stdin is None:
        raise StallscopeError("standard input is closed", "name a file")
    if path == STDIN:
        yield Source(sys.stdin.buffer, "standard input")
        return
    name = printable(path)
    try:
        file = open(path, "rb")  # noqa: SIM115 - only errors of open() are handled here
    except (OSError, ValueError) as error:
        cause = error.strerror if isinstance(error, OSError) else error
        raise StallscopeError(f"{name or 'an empty path'} cannot be read: {cause}", "check the path") from error
    with file:
        yield Source(Part(file, *part), name, packed=part[0] == 0) if part else Source(file, name)


class Part:
    """Bytes from ``start`` to ``end`` of a seekable file."""

    def __init__(self, file: BinaryIO, start: int, end: int) -> None:
        file.seek(start)
        self._file = file
        self._left = end - start

    def read(self, size: int = -1) -> bytes:
        """Reads as `io.RawIOBase.read` does."""
        data = self._file.read(self._left if size < 0 else min(size, self._left))
        self._left -= len(data)
        return data


class _Raw:
    """Counts what is read of the input."""

    def __init__(self, file: BinaryIO | Part) -> None:
        self._file = file
        self.size = 0
        """Bytes."""

    def read(self, size: int = -1) -> bytes:
        """Reads as `io.RawIOBase.read` does."""
        data = self._file.read(size)
        self.size += len(data)
        return data


class _Joined:
    """Bytes that were read before, followed by the rest of the stream. Has the methods that GzipFile and zstandard
    call."""

    def __init__(self, first: bytes, file: _Raw | _Joined) -> None:
        self._first = first
        self._file = file

    def read(self, size: int = -1) -> bytes:
        if not self._first:
            return self._file.read(size)
        if size < 0:
            data, self._first = self._first + self._file.read(), b""
        else:
            data, self._first = self._first[:size], self._first[size:]
        return data


class _Utf16:
    """UTF-16 text with a byte order mark, converted to UTF-8."""

    def __init__(self, file: _Joined) -> None:
        self._file = file
        self._decode = codecs.getincrementaldecoder("utf-16")(errors="replace").decode
        self._rest = b""

    def read(self, size: int) -> bytes:
        """Reads as `io.RawIOBase.read` does."""
        while not self._rest:
            data = self._file.read(size)
            self._rest = self._decode(data, final=not data).encode()
            if not data:
                break
        part, self._rest = self._rest[:size], self._rest[size:]
        return part


class _Zstd:
    """Decompresses frame by frame, to detect truncated input, which zstandard's own reader accepts as complete."""

    def __init__(self, file: _Joined, decompressor: Any) -> None:
        self._file = file
        self._decompressor = decompressor
        self._frame: Any = None
        """The frame that is being decompressed, if any."""
        self._packed = self._data = b""
        self._at = 0
        """Offset of the unread part of ``_data``, which may have 32 MiB: too much to copy for each read."""

    def read(self, size: int) -> bytes:
        """Reads as `io.RawIOBase.read` does. EOFError when a frame is truncated."""
        while self._at >= len(self._data):
            packed = self._packed or self._file.read(_PACKED)
            if not packed:
                if self._frame is not None:
                    raise EOFError("Compressed file ended before the end of its last frame")
                return b""
            self._frame = self._frame or self._decompressor.decompressobj()
            self._data, self._at = self._frame.decompress(packed), 0
            self._packed = b""
            if self._frame.eof:
                self._packed, self._frame = self._frame.unused_data, None
        data = self._data[self._at : self._at + size]
        self._at += len(data)
        return data


def _zstd(file: _Joined, name: str) -> Any:
    try:
        import zstandard
    except ImportError:
        raise StallscopeError(
            f"{name} is packed with zstd, which needs the Python package zstandard",
            "pip install zstandard, or unpack it first: zstd -dc FILE | trace-convert -",
        ) from None
    return _Zstd(file, zstandard.ZstdDecompressor())
