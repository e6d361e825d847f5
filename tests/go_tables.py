"""Go's tables of functions, and programs that have them, as Go's linkers make them and as an attacker does."""

from __future__ import annotations

import struct
from collections.abc import Sequence

GO_2, GO_16, GO_18, GO_20 = 0xFFFFFFFB, 0xFFFFFFFA, 0xFFFFFFF0, 0xFFFFFFF1
LAYOUTS = GO_2, GO_16, GO_18, GO_20
TEXT, TABLE, DATA = 0x401000, 0x402000, 0x408000
"""Virtual addresses of the code, of the table, and of what can be written."""
_BASE = 0x400000
_SIZE = 16
"""Bytes of code of each function."""
_NOTE = b"\x04\0\0\0\x04\0\0\0\x04\0\0\0Go\0\0abcd"
_LOAD, _DYNAMIC, _NOTES = 1, 2, 4


def go_table(magic: int, names: Sequence[bytes], *, text: int = TEXT, header_text: int = 0) -> bytes:
    """Table of functions of 16 bytes of code, of which 8 have one word on the stack. ``header_text``: what the header
    says of the begin of the code, from which Go 1.18 and newer count."""
    new = magic in (GO_18, GO_20)
    pair, record = ("<II", "<IiIII") if new else ("<QQ", "<QiIII")
    steps = bytes([2, 8, 16, 8, 0])  # -1 + 1, 8 bytes; + 8, 8 bytes
    strings = b"\0".join(names) + b"\0"
    begin, width = 0 if new else text, struct.calcsize(pair)
    if magic == GO_2:
        head = struct.pack("<IHBBQ", magic, 0, 1, 8, len(names))
        first = 16 + width * len(names) + width // 2
        first_name = first + 40 * len(names)
        step = first_name + len(strings)
    else:
        functions = 72 + len(strings) + len(steps)
        fields = (header_text, 72, 0, 0, 72 + len(strings) - 1, functions)
        head = struct.pack("<IHBB8Q", magic, 0, 1, 8, len(names), 0, *(fields if new else (*fields[1:], 0)))
        head += strings + steps
        first_name, step, first = 0, 1, width * len(names) + width // 2
    pairs = blobs = b""
    for i, name in enumerate(names):
        pairs += struct.pack(pair, begin + _SIZE * i, first + 40 * i)
        at = first_name + strings.index(name + b"\0")
        blobs += struct.pack(record, begin + _SIZE * i, at, 0, 0, step).ljust(40, b"\0")
    pairs += struct.pack(pair[:2], begin + _SIZE * len(names))
    return head + pairs + blobs + (strings + steps if magic == GO_2 else b"")


def module_data(table: int = TABLE, first: int = TEXT, text: int = TEXT) -> bytes:
    """The words of Go's ``moduledata`` that tell where the table and the code are."""
    return struct.pack("<25Q", table, *[0] * 19, first, 0, text, 0, 0)


def go_program(
    table: bytes,
    *,
    sections: Sequence[str] = (".gopclntab",),
    module: bytes = b"",
    relocations: Sequence[tuple[int, int]] = (),
    note: bool = True,
) -> bytes:
    """A program with a page of code, then the table, then ``module`` at `DATA`. ``sections``: those with a header,
    of ".gopclntab" and ".go.module". ``relocations``: addresses of words, and what they are loaded with."""
    relative = b"".join(struct.pack("<QQq", at, 8, value) for at, value in relocations)
    dynamic = struct.pack("<6Q", 7, DATA + 0x1000, 8, len(relative), 0, 0)
    parts = [
        (_LOAD, 5, TEXT, bytes([0xC3]) * 0x1000),
        (_LOAD, 4, TABLE, table),
        (_LOAD, 6, DATA, module.ljust(0x1000, b"\0") + relative),
        (_DYNAMIC, 6, DATA + 0x3000, dynamic),
        *([(_NOTES, 4, DATA + 0x4000, _NOTE)] if note else []),
    ]
    image = bytearray(DATA + 0x5000 - _BASE)
    rows = b""
    for kind, flags, vaddr, content in parts:
        at = vaddr - _BASE
        image[at : at + len(content)] = content
        rows += struct.pack("<IIQQQQQQ", kind, flags, at, vaddr, vaddr, len(content), len(content), 4096)
    places = {".gopclntab": (TABLE, len(table)), ".go.module": (DATA, len(module))}
    names = b"\0" + b"\0".join(name.encode() for name in (*sections, ".shstrtab")) + b"\0"
    headers = [bytes(64)]
    for name in sections:
        vaddr, size = places[name]
        headers.append(_header(names.index(name.encode()), 1, vaddr, vaddr - _BASE, size))
    headers.append(_header(names.index(b".shstrtab"), 3, 0, len(image), len(names)))
    at = len(image) + len(names) if sections else 0
    count = len(headers) if sections else 0
    image[:16] = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    image[16:64] = struct.pack(
        "<HHIQQQIHHHHHH", 2, 62, 1, TEXT, 64, at, 0, 64, 56, len(parts), 64 if sections else 0, count, max(count - 1, 0)
    )
    image[64 : 64 + len(rows)] = rows
    return bytes(image) + (names + b"".join(headers) if sections else b"")


def _header(name: int, kind: int, vaddr: int, offset: int, size: int) -> bytes:
    return struct.pack("<IIQQQQIIQQ", name, kind, 2, vaddr, offset, size, 0, 0, 1, 0)
