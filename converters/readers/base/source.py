"""The bytes of one input, unpacked: a file or standard input, plain, gzip or zstd."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, NoReturn, cast

from ..errors import StallscopeError
from ..text import printable

STDIN = "-"
HEAD = 1 << 16
"""Bytes that a reader may look at before it is chosen."""

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_READ = 1 << 18
_CHUNK = 1 << 16
"""Small enough that the lines made from it stay in the cache of a core, and that the allocator keeps its memory: larger
ones come from the kernel each time, page by page."""
_PACKED = 1 << 10
"""Bytes that are given to zstd at once: 128 KiB may come of each four of them (a run-length block, RFC 8878)."""
_MAX_CHUNK = 64 << 20
_FEW_SEPARATORS = 16 << 20


class Source:
    """A stream whose first bytes (``head``) are known before it is read. ``name`` is printable, for messages."""

    def __init__(self, file: BinaryIO | Part, name: str, *, packed: bool = True) -> None:
        """``file`` is at its start, and may be ``packed``. Raises StallscopeError, as every method does, when it cannot
        be read."""
        self.name = name
        self._input, self._may_be_packed = file, packed
        self._start = file.tell() if isinstance(file, io.IOBase) and file.seekable() else None
        self._begin()

    @property
    def can_rewind(self) -> bool:
        """False of a pipe."""
        return self._start is not None

    def rewind(self) -> None:
        """Goes back to where it began, if it can."""
        if self._start is not None:
            cast(BinaryIO, self._input).seek(self._start)
            self._begin()

    def _begin(self) -> None:
        self._file: Any = self._input
        magic = self._exactly(len(_ZSTD))
        self._file = _Joined(magic, self._input)
        self.packed = self._may_be_packed and (magic.startswith(_GZIP) or magic == _ZSTD)
        if self.packed and magic == _ZSTD:
            self._file = _zstd(self._file, self.name)
        elif self.packed:
            self._file = gzip.GzipFile(fileobj=self._file)
        self.head = self._exactly(HEAD)
        self._ahead = self.head

    def read(self, size: int = _READ) -> bytes:
        """The next bytes, ``size`` at most; b"" at the end."""
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
        """The stream in pieces that end after a ``separator`` (or, when that is rare, after a line). The last may
        end anywhere. StallscopeError for a line of more than 64 MiB."""
        rest = b""
        # More at once where a separator does not come, or it would be looked for in the same bytes too often.
        while data := self.read(max(_CHUNK, len(rest) // 4)):
            data = rest + data
            cut = data.rfind(separator) + len(separator)
            if cut < len(separator):
                cut = data.rfind(b"\n") + 1 if len(data) > _FEW_SEPARATORS else 0
            if not cut and len(data) > _MAX_CHUNK:
                raise StallscopeError(f"{self.name} has a line of more than {_MAX_CHUNK >> 20} MiB", "is it text?")
            rest = data[cut:]
            if cut:
                yield data[:cut]
        if rest:
            yield rest

    def fail(self, line: int, expected: str) -> NoReturn:
        """Raises the StallscopeError that says where in the input what was expected."""
        raise StallscopeError(
            f"{self.name}, line {line}: expected {expected}", "is it this format? --from NAME chooses another one"
        )

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size and (more := self._read(size - len(data))):
            data += more
        return data

    def _read(self, size: int) -> bytes:
        try:
            return cast(bytes, self._file.read(size))
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
    """The input called ``path``; ``-`` is standard input. ``part`` limits a plain file to the bytes from its first to
    before its second offset. Raises StallscopeError."""
    if path == STDIN and sys.stdin is None:
        raise StallscopeError("standard input is closed", "name a file")
    if path == STDIN:
        yield Source(sys.stdin.buffer, "standard input")
        return
    name = printable(path)
    try:
        file = open(path, "rb")  # noqa: SIM115 - only what opening raises is meant here
    except (OSError, ValueError) as error:
        cause = error.strerror if isinstance(error, OSError) else error
        raise StallscopeError(f"{name or 'an empty path'} cannot be read: {cause}", "check the path") from error
    with file:
        yield Source(Part(file, *part), name, packed=False) if part else Source(file, name)


class Part:
    """Bytes ``start`` to ``end`` of a file that can seek."""

    def __init__(self, file: BinaryIO, start: int, end: int) -> None:
        file.seek(start)
        self._file = file
        self._left = end - start

    def read(self, size: int = -1) -> bytes:
        """As `io.RawIOBase.read`."""
        data = self._file.read(self._left if size < 0 else min(size, self._left))
        self._left -= len(data)
        return data


class _Joined:
    """What was read already, then the rest of a stream; just what GzipFile and zstandard call."""

    def __init__(self, first: bytes, file: BinaryIO | Part) -> None:
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


class _Zstd:
    """Unpacks frame by frame. The reader of zstandard takes input that was cut for a whole one: this does not."""

    def __init__(self, file: _Joined, decompressor: Any) -> None:
        self._file = file
        self._decompressor = decompressor
        self._frame: Any = None
        """The one that has begun and not ended."""
        self._packed = self._data = b""
        self._at = 0
        """Where the bytes of ``_data`` begin that were not read: up to 32 MiB of it, too much to copy for each read."""

    def read(self, size: int) -> bytes:
        """As `io.RawIOBase.read`. EOFError when a frame is cut."""
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
