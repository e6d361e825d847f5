"""Inputs to begin with: small files that are compiled or put together here."""

from __future__ import annotations

import functools
import gzip
import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import fuzz_elf
import go_tables
import pprof_wire
from fuzz_elf import image, note, symbol

DATA = Path(__file__).resolve().parents[1] / "data"
_C = r"""
#include <stdio.h>
#include <stdlib.h>
struct node { struct node *next; int depth; char name[8]; struct { long inside; }; };
int counter = 7;
static int table[4] = {1, 2, 3, 4};
__attribute__((noinline)) int choose(int n, const struct node *at)
{
	switch (n) {
	case 0: return puts("a"); case 1: return at->depth; case 2: return table[n & 3]; case 3: return rand();
	case 4: return putchar(n); case 5: return counter++; case 6: return n * 7; case 7: return getchar();
	}
	return -1;
}
__attribute__((noinline)) long deep(long n, double x) { volatile char room[64]; room[n & 63] = n;
	return n > 0 ? deep(n - 1, x) + room[n & 63] : choose(n, 0); }
__asm__(".pushsection .note.stapsdt,\"\",\"note\"\n.balign 4\n.4byte 8, 1f-0f, 3\n.asciz \"stapsdt\"\n"
	"0: .8byte choose\n.8byte 0\n.8byte 0\n"
	".asciz \"maker\"\n.asciz \"probe\"\n.asciz \"-4@%edi\"\n1: .balign 4\n.popsection");
int main(int argc, char **argv) { return deep(argc, 0.5) + choose(argc, (const struct node *)argv); }
"""
_FLAGS = (
    ("-O1", "-g", "-shared", "-fPIC", "-nostdlib", "-Wl,--hash-style=sysv", "-Wl,-z,noseparate-code"),
    ("-O2", "-g"),
    ("-O1", "-gdwarf-4", "-fno-asynchronous-unwind-tables", "-fno-pie", "-no-pie"),
    ("-O2", "-shared", "-fPIC", "-s"),
    ("-O1", "-g", "-fno-dwarf2-cfi-asm", "-gz"),
)


@functools.cache
def programs() -> tuple[bytes, ...]:
    """Programs and a library by this machine's compiler."""
    gcc = shutil.which("gcc")
    if not gcc:
        raise RuntimeError("the inputs need gcc")
    found = []
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder, "x.c"), Path(folder, "x")
        source.write_text(_C)
        for flags in _FLAGS:
            subprocess.run([gcc, "-w", *flags, "-o", made, source], check=True, cwd=folder)
            found.append(made.read_bytes())
    return tuple(found)


def with_symbols() -> Sequence[bytes]:
    """Functions, variables, an interpreter's symbols, a build-id, a link to a debug file, notes of probes."""
    names = b"\0".join(
        (b"", b"_ZN1a1bEv", b"plain", b"_PyRuntime", b"Py_Version", b"PyCode_Type", b"PyUnicode_Type", b"")
    )
    at = [names.index(name) for name in (b"_ZN1a1bEv", b"plain", b"_PyRuntime", b"Py_Version", b"PyCode_Type")]
    text = fuzz_elf.text_at(3)
    symbols = bytes(24) + symbol(at[0], text, 16) + symbol(at[1], text + 16, 0, binding=0) + symbol(at[1], text, 8)
    symbols += b"".join(symbol(name, fuzz_elf.DATA + 64 + 8 * name, 8, kind=1) for name in at[2:])
    probe = struct.pack("<QQQ", text + 4, 0, fuzz_elf.DATA + 8) + b"maker\0probe\0-4@%edi 8@%rsi\0"
    dynamic = struct.pack("<10q", 1, 1, 29, 11, 5, text, 10, len(names), 0x6FFFFFFB, 0x800)
    sections = [
        (".text", b"\x55\x48\x89\xe5\xc3" + b"\x90" * 59),
        (".symtab", symbols), (".strtab", names), (".dynsym", symbols), (".dynstr", names),
        (".note.gnu.build-id", note(b"GNU\0", 3, bytes(range(20)))), (".note.stapsdt", note(b"stapsdt\0", 3, probe)),
        (".gnu_debuglink", b"x.debug\0\x01\x02\x03\x04"), (".dynamic", dynamic), (".interp", b"/lib64/ld.so\0"),
        (".debug_info", b"x"), (".gnu_debugdata", _packed()),
    ]  # fmt: skip
    return [image(sections), image(sections[:3]), *programs()]


def _packed() -> bytes:
    import lzma

    text = fuzz_elf.text_at(0)
    inner = image(
        [(".text", b"\xc3" * 16), (".symtab", bytes(24) + symbol(1, text, 16, binding=0)), (".strtab", b"\0f\0")]
    )
    return lzma.compress(inner, lzma.FORMAT_XZ)


def section_of(name: str) -> Sequence[bytes]:
    """The content of a section of each program that has it."""
    from stallscope.tracers.images.elf import BytesSource, ElfFile

    found = (ElfFile(BytesSource(program)).section(name.encode()) for program in programs())
    return [data[:4096] for data in found if data]


def with_frames() -> Sequence[bytes]:
    """Files with frame records, a table of them and code; the first ones are small."""
    text, made = fuzz_elf.text_at(1), []
    for frames in [*eh_frames()[:2], debug_frames()[0]]:
        name = ".debug_frame" if frames[4] == 0xFF else ".eh_frame"
        symbols = bytes(24) + symbol(1, text, 64) + symbol(1, text + 64, 22)
        sections = [
            (".text", b"\x55\x48\x89\xe5\xc3" + b"\x90" * 59 + code()[0]), (name, frames),
            (".eh_frame_hdr", bytes(20)), (".symtab", symbols), (".strtab", b"\0f\0"),
        ]  # fmt: skip
        data = image(sections)
        where, header = (fuzz_elf.section_at(data, number) for number in (2, 3))
        table = struct.pack("<BBBBiIii", 1, 0x1B, 0x03, 0x3B, where - header - 4, 1, text - header, where + 24 - header)
        made.append(data[:header] + table + data[header + 20 :])
    return [*made, *with_symbols()]


def eh_frames() -> Sequence[bytes]:
    """Frame records for code at the first section of an image, and those of programs."""
    cie = _record(struct.pack("<IB3s", 0, 1, b"zR\0") + b"\x01\x78\x10\x01\x00\x0c\x07\x08\x90\x01", 20)
    made = []
    for program in (
        b"\x41\x0e\x10\x86\x02\x43\x0d\x06",
        b"\x0a\x0e\x18\x0b\x0f\x03\x77\x08\x06\x2e\x10\x16\x06\x02\x77\x78",
    ):
        fde = _record(struct.pack("<IQQB", len(cie) + 4, fuzz_elf.text_at(1), 64, 0) + program, 40)
        made.append(cie + fde + bytes(4))
    return [*made, *section_of(".eh_frame")]


def _record(body: bytes, size: int) -> bytes:
    return struct.pack("<I", size) + body.ljust(size, b"\0")[:size]


def debug_frames() -> Sequence[bytes]:
    """Frame records without a relation to where they are."""
    cie = _record(struct.pack("<IB1s", 0xFFFFFFFF, 3, b"\0") + b"\x01\x78\x10\x0c\x07\x08\x90\x01", 20)
    fde = _record(struct.pack("<IQQ", 0, fuzz_elf.text_at(1), 64) + b"\x41\x0e\x10\x86\x02\x43\x0d\x06", 36)
    return [cie + fde, *section_of(".debug_frame")]


def code() -> Sequence[bytes]:
    """Functions as compilers begin and end them."""
    table = (
        b"\x83\xff\x07\x77\x10\x48\x8d\x15\x14\x00\x00\x00\x48\x63\x04\xba\x48\x01\xd0\xff\xe0\xc3" + b"\x10\0\0\0" * 8
    )
    return [
        b"\xf3\x0f\x1e\xfa\x55\x48\x89\xe5\x53\x48\x83\xec\x18\x48\x83\xc4\x18\x5b\x5d\xc3",
        b"\x41\x57\x41\x56\x55\x53\x48\x81\xec\x88\x00\x00\x00\x74\x05\xe8\x00\x00\x00\x00\x48\x81\xc4\x88\0\0\0\x5b\x5d\xc3",
        b"\x48\x83\xe4\xf0\x4c\x8d\x54\x24\x08\xc9\xc3\xeb\xfe\x0f\x0b" + table,
        *(text[:600] for text in section_of(".text")),
    ]


def golang() -> Sequence[bytes]:
    """Go's table as versions 1.2, 1.16 and 1.18 wrote it, and with ``moduledata``: functions of 16 bytes."""
    names = b"main.f", b"runtime.goexit", b"runtime.mcall"
    tables = [go_tables.go_table(magic, names, text=0x100, header_text=0x100) for magic in go_tables.LAYOUTS]
    return [*tables, go_tables.go_table(go_tables.GO_20, names) + go_tables.module_data()]


def texts_of(format_name: str, suffix: str = ".golden") -> Callable[[], Sequence[bytes]]:
    """The samples of a reader."""

    def read() -> Sequence[bytes]:
        own = [path for path in sorted((DATA / format_name).iterdir()) if path.suffix != suffix]
        return [path.read_bytes()[: 64 << 10] for path in own]

    return read


def own(*names: str) -> Callable[[], Sequence[bytes]]:
    """Files of /proc, of this process."""

    def read() -> Sequence[bytes]:
        return [Path(f"/proc/{os.getpid()}", name).read_bytes()[:4096] for name in names]

    return read


def these(*texts: bytes) -> Callable[[], Sequence[bytes]]:
    """Inputs as they are here."""
    return lambda: texts


def library_cache() -> Sequence[bytes]:
    """A small ld.so.cache."""
    texts = b"libc.so.6\0/lib/libc.so.6\0"
    begin = 48 + 24 * 2
    entries = struct.pack("<iIIIQ", 0x0303, begin, begin + 10, 0, 0) * 2
    return [b"glibc-ld.so.cache1.1" + struct.pack("<II20x", 2, len(texts)) + entries + texts]


def kept_tables() -> Sequence[bytes]:
    """A table in its form on disk."""
    from stallscope.tracers.images.elf import BytesSource, ElfFile
    from stallscope.tracers.unwind import cache, compiler

    tables = [compiler.compile_table(ElfFile(BytesSource(program))) for program in programs()[:1]]
    return [cache.encode(bytes(16), table) for table in tables]


def recordings() -> Sequence[bytes]:
    """The begin of a recording of perf: a header, a mapping, an exec, an exit."""
    ids = struct.pack("<IIQ", 7, 7, 1000)
    executed = struct.pack("<IHHII", 3, 1 << 13, 16 + 16 + 16, 7, 7) + b"python3".ljust(16, b"\0") + ids
    exited = struct.pack("<IHHIIIIQ", 4, 0, 8 + 24 + 16, 7, 7, 7, 7, 1000) + ids
    data = struct.pack("<IHHI", 66, 0, 12, 16) + bytes(16)
    event = struct.pack("<IHHIIQQQ32xQ", 64, 0, 8 + 64 + 8, 1, 64, 0, 0, 1 << 16 | 7, 1000)
    mapping = struct.pack("<IHHIIQQQ24xII", 10, 2, 72 + 8 + 24, 7, 7, 1 << 40, 4096, 0, 5, 2) + b"//anon\0\0" + ids
    mapping += struct.pack("<Q", 1000)
    return [b"PERFILE2" + struct.pack("<Q", 16) + event + data + executed + mapping + exited]


def profiles() -> Sequence[bytes]:
    """Profiles of pprof, unpacked, ours and others', and one packed."""
    packed = [path.read_bytes() for path in sorted((DATA / "pprof").iterdir()) if path.suffix == ".gz"]
    saved = pprof_wire.saved(pprof_wire.profile())
    return [*(gzip.decompress(data) for data in (*packed, saved)), packed[0]]


def all_texts() -> Sequence[bytes]:
    """The begin of one sample of each reader."""
    folders = [path for path in sorted(DATA.iterdir()) if path.is_dir() and path.name != "summary"]
    return [texts_of(folder.name)()[0][:2000] for folder in folders]
