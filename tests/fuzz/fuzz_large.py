"""Inputs that are too large to be kept, and are therefore made: (target, what it is, how it is made)."""

from __future__ import annotations

import gzip
import io
import struct
from collections.abc import Callable
from typing import NamedTuple

import fuzz_elf
from fuzz_elf import image, symbol


class Large(NamedTuple):
    """An input."""

    target: str
    what: str
    make: Callable[[], bytes]


def _overlapping_names(kind: str) -> bytes:
    """Each symbol's name is the end of one long name: 16,000 symbols, 4 GB of names."""
    text, count = fuzz_elf.text_at(0), 16_000
    strings = b"\0" + b"n" * 500_000 + b"\0"
    symbols = bytes(24) + b"".join(
        symbol(1 + 8 * i, text + i % 64, 1, kind=2 if kind == "f" else 1) for i in range(count)
    )
    return image([(".text", b"\x90" * 64), (".symtab", symbols), (".strtab", strings)])


def _many_tables(sections: int) -> bytes:
    """Sections that are all the same symbol table."""
    text = fuzz_elf.text_at(0)
    symbols = bytes(24) + b"".join(symbol(1, text + i % 64, 1, kind=1 + i % 2) for i in range(8000))
    data = image([(".text", b"\x90" * 64), (".symtab", symbols), (".strtab", b"\0_PyRuntime\0")])
    shoff, number = struct.unpack_from("<Q", data, 40)[0], struct.unpack_from("<H", data, 60)[0]
    headers = data[shoff : shoff + 64 * number] + data[shoff + 128 : shoff + 192] * (sections - number)
    return data[:60] + struct.pack("<H", sections) + data[62:shoff] + headers


def _bomb() -> bytes:
    """300 KB of gzip that unpack to 300 MB."""
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as file:
        for _ in range(300):
            file.write(bytes(1 << 20))
    return packed.getvalue()


def _maps() -> bytes:
    """Maps with as many mappings as a process may have, each of a file with a long path."""
    path = b"/" + b"/".join([b"d" * 200] * 4)
    row = b"%x-%x r-xp 00000000 fd:01 %d %b\n"
    return b"".join(row % (0x10000000 + i * 8192, 0x10000000 + i * 8192 + 4096, i + 1, path) for i in range(8192))


def _many_frames(count: int) -> bytes:
    """Records of frames for the same function, with programs that remember and restore."""
    cie = struct.pack("<IIB3s", 20, 0, 1, b"zR\0") + b"\x01\x78\x10\x01\x00\x0c\x07\x08\x90\x01".ljust(12, b"\0")
    out = bytearray(cie[:24])
    text = fuzz_elf.text_at(1)
    for i in range(count):
        body = struct.pack("<IQQB", len(out) + 4, text + i % 64, 64, 0) + b"\x0a\x41\x0b\x0e\x10\x41\x0a\x0e\x20\x0b"
        out += struct.pack("<I", 36) + body.ljust(36, b"\0")
    return bytes(out) + bytes(4)


def _many_places() -> bytes:
    return b"Thread 1 (LWP 7):\n#0  0x00007f6a781ab8ec in clone3 () at a" + b" in clone3 () at /a/b.c" * 45_000


def _spaces() -> bytes:
    head = b"Thread 0x00007f0000001000 (most recent call first):\n"
    return head + b'  File "/a.py", line 3 in ' + b"f" + b" " * 200_000 + b"g\n"


LARGE = (
    Large("elf-names", "names of functions that overlap", lambda: _overlapping_names("f")),
    Large("elf-symbols", "names of functions that overlap", lambda: _overlapping_names("f")),
    Large("elf-variables", "names of variables that overlap", lambda: _overlapping_names("v")),
    Large("elf-variables", "5,000 tables that are the same one", lambda: _many_tables(5000)),
    Large("elf-names", "5,000 tables that are the same one", lambda: _many_tables(5000)),
    Large("elf-symbols", "5,000 tables that are the same one", lambda: _many_tables(5000)),
    Large("elf", "65,000 sections", lambda: _many_tables(65_000)),
    Large("unwind", "65,000 sections", lambda: _many_tables(65_000)),
    Large("read-pprof", "a small file that unpacks to 300 MB", _bomb),
    Large("maps", "8,192 mappings with long paths", _maps),
    Large(
        "perf-map", "functions that all overlap", lambda: b"".join(b"%x 40000000 f%d\n" % (i, i) for i in range(60_000))
    ),
    Large("eh-frame", "20,000 records for the same code", lambda: _many_frames(20_000)),
    Large(
        "read-speedscope",
        "lists in lists",
        lambda: b'{"$schema":"https://www.speedscope.app/file-format-schema.json","profiles":' + b"[" * 500_000,
    ),
    Large("read-chrome", "objects in objects", lambda: b'{"traceEvents":[' + b'{"args":' * 200_000),
    Large("parameters", "lists in lists", lambda: b"[" * 500_000),
    Large("symbolizer-json", "lists in lists", lambda: b"[" * 200_000 + b"\n"),
    Large("read-vtune", "a header with a long field", lambda: b'Function Stack,"' + b"x" * 200_001 + b'"\n'),
    Large("read-austin", "parentheses without an end", lambda: b"P7;T0:8;" + b"f (" * 100_000 + b";x 20\n"),
    Large("read-austin", "a file with many semicolons", lambda: b"P7;T0:8;" + b"a;" * 100_000 + b"x 20\n"),
    Large("read-austin", "a comment with many semicolons", lambda: b"# mode: memory;T0:" + b"8;" * 65_000),
    Large("detect", "digits without an end", lambda: b"P7;T0:8;" + b"9" * 60_000 + b"x\n"),
    Large("python-lines", "numbers without an end", lambda: b"\xf4" * (1 << 18)),
    Large("code", "jumps into the middle of the jumps before", lambda: b"\x75\x13" * (1 << 17)),
    Large("code", "jumps by one byte", lambda: b"\x75\x13\x75" * (1 << 18)),
    Large("code", "one function of 1 MB", lambda: b"\x90" * (1 << 20)),
    Large("read-folded", "a weight of very many digits", lambda: b"a;b " + b"9" * 200_000 + b";c\n"),
    Large("read-folded", "a stack of a million frames", lambda: b"a;b;" * 500_000 + b"c 1\n"),
    Large("read-bcc", "a weight of very many digits", lambda: b"a;b " + b"9" * 200_000 + b"x\na;b 3\n"),
    Large("read-dtrace", "keys of spaces", lambda: (b"  a" + b" " * 14_000 + b"b\n  m`f+0x1\n    3\n\n") * 70),
    Large("read-perf", "headers of spaces", lambda: (b"a" + b" " * 1000 + b"b\n") * 1000),
    Large("read-gdb", "a last frame of very many places", _many_places),
    Large("read-faulthandler", "a function of spaces", _spaces),
    Large("environ", "one variable again and again", lambda: b"RANK=1\0" * 40_000),
)
