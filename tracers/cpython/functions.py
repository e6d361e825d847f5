"""Python functions, read from their process: name, file, and the table of lines."""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import NamedTuple

from ..kernel.python import NO_STEP, checksum
from .layouts import Layout, Version
from .lines import line_of
from .memory import Memory

_MAX_TEXT = 4096
"""Characters of a name."""
_MAX_TABLE = 1 << 18
"""Bytes of a table of lines; without it, a function has its first line only."""
_STRING = struct.Struct("<QqI")
"""Of PyASCIIObject from byte 16 on: length, hash, state."""
_ASCII, _COMPACT, _KIND = 1 << 6, 1 << 5, 2
"""In ``state``: two bits for interning are below."""
_BYTES_SIZE, _BYTES_DATA = 16, 32
"""PyBytesObject."""


class Function(NamedTuple):
    """A code object. Its texts are hostile input."""

    name: str
    file: str
    first_line: int
    version: Version
    lines: bytes

    @property
    def size(self) -> int:
        """Memory taken, about."""
        return 300 + len(self.name) + len(self.file) + len(self.lines)

    def line(self, instruction: int) -> int:
        """The line of the instruction at this byte of the code."""
        return _line_of(self.version, self.lines, self.first_line, instruction)


_line_of = lru_cache(maxsize=1 << 16)(line_of)


def read_function(memory: Memory, layout: Layout, code: int, wanted: int, salt: int) -> Function | None:
    """The function whose code object is at ``code``; None if there is another one by now, with another checksum than
    ``wanted``. OSError if the memory is not there."""
    head = _Head.read(memory, layout, code)
    if head.checksum(memory, layout, salt) != wanted:
        return None
    name = _text(memory, layout, head.qualified or head.name) or _text(memory, layout, head.name)
    file = _text(memory, layout, head.file)
    table = _table(memory, head.lines)
    # It may have been freed, and its memory used again, while it was read.
    if not name or _Head.read(memory, layout, code) != head or head.checksum(memory, layout, salt) != wanted:
        return None
    return Function(name, file, head.line, layout.version, table)


class _Head(NamedTuple):
    """Of a code object: addresses of strings and of the table, the first line, and the version."""

    name: int
    qualified: int
    file: int
    lines: int
    line: int
    version: int

    @classmethod
    def read(cls, memory: Memory, layout: Layout, code: int) -> _Head:
        offsets = (layout.code_name, layout.code_qualified, layout.code_file, layout.code_lines)
        data = memory.read(code, max(*offsets, layout.code_line) + 8)
        version = 0
        if layout.code_version != NO_STEP:
            version = int.from_bytes(data[layout.code_version : layout.code_version + 4], "little")
        name, qualified, file, lines = (
            int.from_bytes(data[offset : offset + 8], "little") if offset else 0 for offset in offsets
        )
        (line,) = struct.unpack_from("<I", data, layout.code_line)
        return cls(name, qualified, file, lines, line, version)

    def checksum(self, memory: Memory, layout: Layout, salt: int) -> int:
        last = self.version
        if layout.code_version == NO_STEP:
            last = memory.word(self.name + layout.name_hash)
        return checksum(salt, (self.name, self.file, self.lines, self.line, last))


def _text(memory: Memory, layout: Layout, address: int) -> str:
    """A Python string; "" if it has a form that names do not have."""
    length, _, state = _STRING.unpack(memory.read(address + 16, _STRING.size))
    if not state & _COMPACT or not 0 < length <= _MAX_TEXT:
        return ""
    if state & _ASCII:
        return memory.read(address + layout.ascii_size, length).decode("latin-1")
    width = state >> _KIND & 7
    encoding = {1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}.get(width)
    if encoding is None:
        return ""
    return memory.read(address + layout.compact_size, length * width).decode(encoding, "backslashreplace")


def _table(memory: Memory, address: int) -> bytes:
    """The content of a bytes object; b"" if it is absurdly long."""
    size = memory.word(address + _BYTES_SIZE)
    return memory.read(address + _BYTES_DATA, size) if 0 < size <= _MAX_TABLE else b""
