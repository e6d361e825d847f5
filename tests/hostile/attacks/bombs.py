"""Maps files made to cost whoever reads them, sleeps in their code, and says "ready PID": bombs.py KIND FOLDER.

KIND is the name of one of the functions below, each of which makes a file that claims much more than it has.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import struct
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

_CODE = bytes.fromhex(
    "b823000000"  # mov $35,%eax: nanosleep
    "488d3d10000000"  # lea time(%rip),%rdi
    "31f6"  # xor %esi,%esi
    "0f05"  # syscall
    "ebee"  # jmp back
    "9090909090909090909090"
) + struct.pack("<QQ", 0, 20_000_000)
_SYMTAB, _STRTAB, _DYNSYM, _NOTE = 2, 3, 11, 7
_FUNCTION, _OBJECT = 0x12, 0x11
_CODE_AT = 0x1000
_SECONDS = 120


class Section(NamedTuple):
    """Section of an ELF file."""

    type: int
    offset: int
    size: int
    link: int = 0
    entsize: int = 0


def elf(parts: dict[int, bytes], sections: Sequence[Section], size: int = 0) -> bytearray:
    """A shared library of 64 bits for x86-64 with these bytes at their offsets, and `_CODE`."""
    parts = {_CODE_AT: _CODE, **parts}
    end = max(size, 2 * _CODE_AT, *(at + len(data) for at, data in parts.items()))
    table = b"".join(
        struct.pack("<IIQQQQIIQQ", 0, s.type, 0, s.offset, s.offset, s.size, s.link, 0, 8, s.entsize)
        for s in (Section(0, 0, 0), *sections)
    )
    count = len(sections) + 1
    loads = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, end, end, 4096)
    head = struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, end, 0, 64, 56, 1, 64, count if count < 0xFF00 else 0, 0)
    if count >= 0xFF00:  # the number is in the first section's size
        table = table[:32] + struct.pack("<Q", count) + table[40:]
    made = bytearray(end)
    for at, data in parts.items():
        made[at : at + len(data)] = data
    ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    made[: 64 + len(loads)] = ident + head + loads
    return made + table


def symbol(name: int, value: int, size: int, kind: int = _FUNCTION) -> bytes:
    return struct.pack("<IBBHQQ", name, kind, 0, 1, value, size)


def many_sections() -> tuple[str, bytearray]:
    """60,000 tables of symbols, which are all the same one of 200,000 rows: an interpreter, by its name."""
    rows = b"".join(symbol(1, _CODE_AT, 0x30, _OBJECT) for _ in range(1000)) * 200
    strings = b"\0name\0".ljust(1 << 20, b"x")
    at, names = 0x2000, 0x2000 + len(rows)
    tables = [Section(_STRTAB, names, len(strings))] + [Section(_DYNSYM, at, len(rows), 1, 24)] * 60_000
    return "libpython3.11.so.1.0", elf({at: rows, names: strings}, tables)


def long_names() -> tuple[str, bytearray]:
    """200,000 functions whose names are the ends of one text of 8 MB: 800 GB of names in 13 MB."""
    count, length = 200_000, 8 << 20
    rows = b"".join(symbol(1 + i, _CODE_AT + i % 16, 1) for i in range(count))
    strings = b"\0" + b"cudaMalloc_".ljust(length, b"x") + b"\0"
    at, names = 0x2000, 0x2000 + len(rows)
    tables = [Section(_STRTAB, names, len(strings)), Section(_DYNSYM, at, len(rows), 1, 24)]
    return "libcudart.so.12", elf({at: rows, names: strings}, tables)


def overlapping_tables() -> tuple[str, bytearray]:
    """100 tables of symbols, each in the same 100 MB, most of which no disk holds."""
    size, at = 100 << 20, 0x2000
    rows = b"".join(symbol(1, _CODE_AT, 0x30) for _ in range(100_000))
    strings = b"\0name\0"
    names = at + size // 24 * 24
    tables = [Section(_STRTAB, names, len(strings))]
    tables += [
        Section(_SYMTAB if i % 2 else _DYNSYM, at + i * 24, (size - i * 24) // 24 * 24, 1, 24) for i in range(100)
    ]
    return "liboverlap.so", elf({at: rows, names: strings}, tables)


def sparse() -> tuple[str, bytearray]:
    """A file of 8 TB, which its headers say is full of symbols."""
    size = 8 << 40
    tables = [Section(_STRTAB, 0x2000, size // 2), Section(_SYMTAB, 0x2000, (size // 2) // 24 * 24, 1, 24)]
    return "libsparse.so", elf({}, tables)


_KINDS = {made.__name__: made for made in (many_sections, long_names, overlapping_tables, sparse)}


def write(path: Path, content: bytearray) -> None:
    """Writes a file with holes where it is zero."""
    with path.open("wb") as file:
        for at in range(0, len(content), 1 << 16):
            if piece := content[at : at + (1 << 16)].rstrip(b"\0"):
                file.seek(at)
                file.write(piece)
        file.truncate(8 << 40 if path.name == "libsparse.so" else len(content))


def run_code_of(path: Path, offset: int = _CODE_AT) -> None:
    """Sleeps again and again in the file's code; does not return."""
    with path.open("rb") as file:
        memory = mmap.mmap(
            file.fileno(), 2 * _CODE_AT, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC | mmap.PROT_WRITE
        )
    place = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    print(f"ready {os.getpid()}", flush=True)
    ctypes.CFUNCTYPE(None)(place + offset)()


def main(kind: str, folder: str) -> None:
    signal.alarm(_SECONDS)
    name, content = _KINDS[kind]()
    path = Path(folder) / name
    write(path, content)
    del content
    run_code_of(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
