"""ELF files as an attacker makes them: with as many segments, sections, symbols and names as he likes."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

SYMTAB, STRTAB, NOBITS, DYNSYM = 2, 3, 8, 11
FUNCTION, VARIABLE = 2, 1
BASE, CODE = 0x400000, 0x1000
Section = tuple[bytes, int, bytes, int, int]
"""Name, type, content, link, entry size."""


def symbols(count: int, *, kind: int = FUNCTION, names: int | np.ndarray = 1) -> bytes:
    """``count`` symbols of one byte of code each; ``names``: where their names are."""
    rows = np.zeros(
        count,
        [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("shndx", "<u2"), ("value", "<u8"), ("size", "<u8")],
    )
    rows["name"], rows["info"], rows["shndx"], rows["size"] = names, 16 | kind, 1, 1
    rows["value"] = BASE + np.arange(count) % CODE
    return rows.tobytes()


def elf(sections: Sequence[Section], *, segments: int = 1) -> bytes:
    """A program with a page of code, which is section 1; the given sections follow."""
    head = 64 + 56 * segments
    parts: list[Section] = [(b"", 0, b"", 0, 0), (b".text", 1, bytes(CODE), 0, 0), *sections]
    strings = b"\0".join(name for name, *_ in parts) + b"\0"
    parts.append((b"", STRTAB, strings, 0, 0))
    at, contents, rows, name = head, [], [], 0
    for title, kind, content, link, each in parts:
        address, flags = (BASE, 6) if title == b".text" else (0, 0)
        rows.append(struct.pack("<IIQQQQIIQQ", name, kind, flags, address, at, len(content), link, 0, 1, each))
        contents.append(content)
        at, name = at + len(content), name + len(title) + 1
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    header = struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, 0, 64, at, 0, 64, 56, segments, 64, len(parts), len(parts) - 1)
    segment = struct.pack("<IIQQQQQQ", 1, 5, head, BASE, BASE, CODE, CODE, 4096)
    return ident + header + segment * segments + b"".join(contents) + b"".join(rows)


def with_symbols(count: int, names: bytes, *, kind: int = FUNCTION, at: int | np.ndarray = 1, tables: int = 1) -> bytes:
    """A program with so many symbol tables that share one table of names."""
    table: Section = (b".symtab", SYMTAB, symbols(count, kind=kind, names=at), 2 + tables, 24)
    return elf([*[table] * tables, (b".strtab", STRTAB, names, 0, 0)])
