"""Python functions, read from their process: name, file, and the table of lines."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeVar

from ..kernel.python import LONG, NO_STEP, checksum, skipped, text_hash
from ..outside.reads import Memory
from .layouts import Layout, Version
from .lines import line_of
from .memory import Readable, ReadAhead

_CODE_AHEAD, _TEXT_AHEAD, _TABLE_AHEAD = 256, 192, 512
"""Bytes that are read of each object before it is looked at: most are not larger."""
_MAX_TABLE = 1 << 16
"""Bytes of a table of lines; without it, a function has its first line only."""
_OBJECT = struct.Struct("<IHHQ")
"""PyObject: the count of references, its overflow and flags (from 3.14 on; else its higher half), and the type."""
_MAX_FLAGS = 1 << 8
_STRING = struct.Struct("<16xQqI")
"""Fields of PyASCIIObject: length, hash, state."""
_ASCII, _COMPACT, _KIND = 1 << 6, 1 << 5, 2
"""Bits of ``state``: two bits for interning are below."""
_SIZE = 16
"""Offset of ob_size in PyVarObject; up to 3.10, code objects have the counts of their arguments there."""
_BYTES_SIZE, _BYTES_DATA = 16, 32
"""PyBytesObject."""


_T = TypeVar("_T")


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


class Inside(NamedTuple):
    """An interpreter in a process, from which functions are read."""

    layout: Layout
    code_type: int
    text_type: int
    """Addresses of the types of code objects and of strings; 0 if unknown."""
    salt: int


def read_function(memory: Readable, inside: Inside, code: int, wanted: int) -> Function | None:
    """The function whose code object is at ``code``; None if there is another one by now, with another checksum than
    ``wanted``, or if it has been freed. OSError if the memory is not there."""
    draft = _draft(memory, inside, code, wanted)
    return draft[1] if draft and _is_still(memory, inside, code, wanted, draft[0]) else None


def read_functions(memory: Memory, inside: Inside, wanted: Sequence[tuple[int, int]]) -> list[Function | None]:
    """Reads many functions as `read_function` does one, by (address, checksum), in a few reads; None also where the
    memory is not there. OSError if the process does not answer."""
    codes = [code for code, _ in wanted]
    before = _ahead(memory, inside, codes, whole=True)
    drafts = [_or_none(_draft, before, inside, *each) for each in wanted]
    after = _ahead(memory, inside, codes, whole=False)
    return [
        draft[1] if draft and _or_none(_is_still, after, inside, *each, draft[0]) else None
        for each, draft in zip(wanted, drafts, strict=True)
    ]


def _or_none(function: Callable[..., _T], *arguments: object) -> _T | None:
    try:
        return function(*arguments)
    except (OSError, ValueError):
        return None


def _draft(memory: Readable, inside: Inside, code: int, wanted: int) -> tuple[_Head, Function] | None:
    """Head and function as they are, unless the code object was freed meanwhile."""
    head = _Head.read(memory, inside, code)
    if head is None or head.checksum(memory, inside) != wanted:
        return None
    name = _text(memory, inside, head.qualified or head.name)
    file = _text(memory, inside, head.file)
    table = _table(memory, head.lines)
    return (head, Function(name, file, head.line, inside.layout.version, table)) if name else None


def _is_still(memory: Readable, inside: Inside, code: int, wanted: int, head: _Head) -> bool:
    """Whether the code object still lives: as long as it does, what it refers to lives, too."""
    return _Head.read(memory, inside, code) == head and head.checksum(memory, inside) == wanted


def _ahead(memory: Memory, inside: Inside, codes: Sequence[int], *, whole: bool) -> ReadAhead:
    """Memory of these code objects that is needed; ``whole``: names and tables of lines, too."""
    ahead = ReadAhead(memory)
    ahead.expect([(code, _CODE_AHEAD) for code in codes])
    heads = [head for code in codes if (head := _or_none(_Head.read, ahead, inside, code))]
    places: dict[int, int] = {}
    for head in heads:
        if whole or not head.version:
            places |= dict.fromkeys((head.name, head.file), _TEXT_AHEAD)
        if whole:
            places |= {head.qualified: _TEXT_AHEAD, head.lines: _TABLE_AHEAD}
    ahead.expect(list(places.items()))
    return ahead


def function_at(memory: Readable, inside: Inside, code: int) -> Function | None:
    """The function whose code object is at ``code``; None if there is none, or if it is freed meanwhile. OSError if the
    memory is not there."""
    head = _Head.read(memory, inside, code)
    return read_function(memory, inside, code, head.checksum(memory, inside)) if head else None


def text_at(memory: Readable, inside: Inside, address: int) -> str:
    """A Python string; "" if it has a form that names do not have, or has been freed. OSError if the memory is not
    there."""
    return _text(memory, inside, address)


def is_alive(head: bytes, version: Version, kind: int) -> bool:
    """Whether 16 bytes begin a Python object of the type at ``kind`` (0: of any). Where one was freed, CPython's
    allocator has a pointer, or 0, instead of the count of references, and the C library's has one or two numbers."""
    count, overflow, flags, found = _OBJECT.unpack_from(head)
    if (version < (3, 14) and flags) or overflow or not count:
        return False
    return flags < _MAX_FLAGS and kind in (0, found)


class _Head(NamedTuple):
    """Head of a code object: addresses of strings and of the table, the first line, the size, and the version."""

    name: int
    qualified: int
    file: int
    lines: int
    line: int
    size: int
    version: int
    """0 if it has none."""

    @classmethod
    def read(cls, memory: Readable, inside: Inside, code: int) -> _Head | None:
        """None if there is none any more."""
        layout = inside.layout
        offsets = (layout.code_name, layout.code_qualified, layout.code_file, layout.code_lines)
        data = memory.read(code, max(*offsets, layout.code_line, _SIZE) + 8)
        if not is_alive(data, layout.version, inside.code_type):
            return None
        version = 0
        if layout.code_version != NO_STEP:
            version = int.from_bytes(data[layout.code_version : layout.code_version + 4], "little")
        name, qualified, file, lines = (
            int.from_bytes(data[offset : offset + 8], "little") if offset else 0 for offset in offsets
        )
        (line,) = struct.unpack_from("<I", data, layout.code_line)
        (size,) = struct.unpack_from("<Q", data, _SIZE)
        return cls(name, qualified, file, lines, line, size, version)

    def checksum(self, memory: Readable, inside: Inside) -> int:
        if self.version:
            last = [self.version]
        else:
            last = [memory.word(self.name + inside.layout.name_hash), _hash_of(memory, inside, self.file)]
        return checksum(inside.salt, (self.name, self.file, self.lines, self.line, self.size, *last))


def _hash_of(memory: Readable, inside: Inside, address: int) -> int:
    """Hash of the text of a string, as the probes have it."""
    length, _, state = _STRING.unpack(memory.read(address, _STRING.size))
    width = state >> _KIND & 7 if length <= LONG and state & _COMPACT else 0
    begin = skipped(length * width)
    layout = inside.layout
    text = address + (layout.ascii_size if state & _ASCII else layout.compact_size)
    return text_hash(length, memory.read(text + begin, length * width - begin))


def _text(memory: Readable, inside: Inside, address: int) -> str:
    """A Python string; "" if it has a form that names do not have, or has been freed."""
    layout = inside.layout
    head = memory.read(address, _STRING.size)
    length, _, state = _STRING.unpack(head)
    if not is_alive(head, layout.version, inside.text_type):
        return ""
    if not state & _COMPACT or not 0 < length <= LONG:
        return ""
    if state & _ASCII:
        return memory.read(address + layout.ascii_size, length).decode("latin-1")
    width = state >> _KIND & 7
    encoding = {1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}.get(width)
    if encoding is None:
        return ""
    return memory.read(address + layout.compact_size, length * width).decode(encoding, "backslashreplace")


def _table(memory: Readable, address: int) -> bytes:
    """The content of a bytes object; b"" if it is absurdly long."""
    size = memory.word(address + _BYTES_SIZE)
    return memory.read(address + _BYTES_DATA, size) if 0 < size <= _MAX_TABLE else b""
