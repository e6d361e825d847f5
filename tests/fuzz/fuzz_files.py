"""Targets that read files of programs: ELF, notes, symbols, frame records, code, debug information."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from typing import Any

import fuzz_elf
import fuzz_seeds
import go_tables
import numpy as np
from fuzz_mutators import as_elf, havoc
from fuzz_target import Target
from stallscope.tracers.cpython import runtime
from stallscope.tracers.dwarf import child
from stallscope.tracers.dwarf.parameters import parameters_of
from stallscope.tracers.images import data_symbols, debugfile, needed, symtab, usdt
from stallscope.tracers.images import functions as named
from stallscope.tracers.images.elf import BytesSource, ElfError, ElfFile, Source
from stallscope.tracers.images.go_table import GoFunctions, GoPlace, find_go_table
from stallscope.tracers.images.maps import AddressSpace, Mapping
from stallscope.tracers.probe_targets.entries import entry
from stallscope.tracers.symbols.lines import LineTool
from stallscope.tracers.unwind import cache, chunks, compiler, golang
from stallscope.tracers.unwind.functions import function_bounds
from stallscope.tracers.unwind.rows import ROW, ROW_SIZE, UnwindTable
from stallscope.tracers.unwind.sections import UnwindError
from stallscope.tracers.unwind.walking import Registers, Walker

_ADDRESSES = np.array([0, 1, 64, 0x100, 0x1000, 0x1139, fuzz_elf.DATA + 64, 1 << 32, (1 << 64) - 1], np.uint64)
_SECONDS = 5
"""Seconds for the debug information of one file; the tracer allows more."""


def in_memory(data: bytes) -> int:
    """A descriptor of a file with this content: see `fuzz_elf.content`."""
    data, size = fuzz_elf.content(data)
    fd = os.memfd_create("input", os.MFD_CLOEXEC)
    os.write(fd, data)
    os.ftruncate(fd, max(size, len(data)))
    return fd


def headers(data: bytes) -> None:
    """All that is read of a file before its symbols."""
    elf = fuzz_elf.opened(data)
    _ = elf.code_end
    elf.to_vaddrs(_ADDRESSES)
    for address in map(int, _ADDRESSES):
        elf.mapped_at(address)
        elf.to_offset(address)
        elf.mapped_from(address)
        elf.code_at(address, 16)
    elf.build_id()
    named.is_of_go(elf)
    symtab.has_symtab(elf)
    debugfile.has_lines(elf)
    for read in (elf.debug_link, elf.embedded, lambda: elf.section(b".text")):
        without_error(read)


def without_error(read: Callable[[], object]) -> None:
    """ElfError is an answer, too."""
    try:
        read()
    except ElfError:
        return


def debug_file(data: bytes) -> None:
    """Reads what a server of debug files, or a folder, gives: also as one with the right build-id."""
    for build_id in ("", bytes(range(20)).hex()):
        found = debugfile.verified(in_memory(data), build_id, 0x04030201)
        if found is not None:
            os.close(found[1])


def symbols(data: bytes) -> None:
    """Functions and variables by address."""
    elf = fuzz_elf.opened(data)
    files = [elf]
    try:
        inner = elf.embedded()
        files += [inner] if inner is not None else []
    except ElfError:
        pass
    table = symtab.SymbolTable(files, lambda: symtab.Bounds(*_bounds(elf)))
    table.find(_ADDRESSES)
    table.named(["plain", "main", "", "b", "\udcff"])


def _bounds(elf: ElfFile) -> tuple[Any, Any]:
    try:
        return function_bounds(elf)
    except UnwindError:
        return tuple(symtab.Bounds.none())


def names(data: bytes) -> None:
    """Functions by name."""
    elf = fuzz_elf.opened(data)
    without_error(lambda: named.function_names(elf))
    for found in named.find_functions(elf, lambda name: "a" in name, 32):
        entry(found.code)


def variables(data: bytes) -> None:
    """Variables by address, and an interpreter's."""
    elf = fuzz_elf.opened(data)
    for address in map(int, _ADDRESSES):
        data_symbols.is_data(elf, address)
        data_symbols.variable_in(elf, address)
    found = runtime.find_runtime(elf, "/usr/lib/libpython3.9.so")
    if found is not None:
        runtime.address_of(elf, Mapping(1 << 40, 1 << 41, 0, "/x", 1, 1), found.vaddr)


def probes(data: bytes) -> None:
    """USDT probes."""
    for probe in usdt.usdt_probes(fuzz_elf.opened(data)):
        _ = probe.title, probe.arguments


def dynamic(data: bytes) -> None:
    """Reads what a program needs. ValueError, struct.error: see `needed._read`."""
    elf = fuzz_elf.opened(data)
    if elf.machine in needed._MACHINES:
        needed._parse("/bin/x", "/bin", elf)


def library_cache(data: bytes) -> None:
    """ld.so.cache."""
    fd, before = in_memory(data), needed._CACHE
    needed._CACHE = f"/proc/self/fd/{fd}"
    try:
        needed._read_cache(62)
    finally:
        needed._CACHE = before
        os.close(fd)


def unwind(data: bytes) -> None:
    """The table of a file, its chunks, and a walk by it through memory that has the file's bytes."""
    elf = fuzz_elf.opened(data)
    table = compiler.compile_table(elf, elf)
    for chunk in chunks.cut(table):
        _ = chunk.words
    digest = bytes(16)
    assert cache.decode(cache.encode(digest, table), digest) is not None
    tables: Any = type("Cache", (), {"table": lambda self, elf: table})()
    space = AddressSpace([Mapping(1 << 40, (1 << 40) + (1 << 20), 0, "/x", 1, 1)])
    pcs = table.rows["pc"][:64].tolist() if len(table.rows) else []
    walker = Walker(tables)
    for pc in pcs:
        walker.walk(
            space,
            lambda mapping: elf,
            Registers((1 << 40) + table.base + pc, 4096, 8192),
            lambda address: int.from_bytes(data[address % 4096 :][:8], "little"),
        )


def _as(name: str, beside: Callable[[], Sequence[tuple[str, bytes]]] = tuple) -> Callable[[bytes], None]:
    """Bytes as one section of a file that has code, too."""

    def run(data: bytes) -> None:
        sections = [(".text", b"\x55\x48\x89\xe5\xc3" + b"\x90" * 59), *beside(), (name, data)]
        unwind(fuzz_elf.image(sections))

    return run


def _frames() -> Sequence[tuple[str, bytes]]:
    return [(".eh_frame", fuzz_seeds.eh_frames()[0])]


def code(data: bytes) -> None:
    """Code that nothing describes, which is read."""
    entry(data[:64])
    text = fuzz_elf.text_at(0)
    marks = list(range(0, len(data), 97))[:32]
    symbols = bytes(24) + b"".join(fuzz_elf.symbol(1, text + at, 97) for at in marks)
    unwind(fuzz_elf.image([(".text", data), (".symtab", symbols), (".strtab", b"\0f\0"), (".rodata", data[-64:])]))


def go_table(data: bytes) -> None:
    """Go's own table."""
    table = golang.GoTable(data, 0)
    found = golang.go_functions(table)
    for _ in golang.go_rows(table, found):
        pass
    list(golang.go_roots(found, lambda at, size: data[at : at + size]))


def go_names(data: bytes) -> None:
    """The names in Go's own table: of any bytes, and of a program in which the table has to be found."""
    places: list[tuple[Source, GoPlace]] = [(BytesSource(data), GoPlace(0, len(data), 0))]
    table = data[: go_tables.DATA - go_tables.TABLE]
    for sections in ((".gopclntab", ".go.module"), ()):
        elf = ElfFile(BytesSource(go_tables.go_program(table, sections=sections, module=data[-200:])))
        place = find_go_table(elf)
        if place is not None:
            places.append((elf.source, place))
    for source, place in places:
        functions = GoFunctions(source, place)
        functions.find(np.arange(place.text, place.text + 64, 8, dtype=np.uint64))


def kept_table(data: bytes) -> None:
    """A file of the cache of tables; and any rows, with a checksum that fits, as a process that compiles may send."""
    cache.decode(data, bytes(16))
    rows = np.frombuffer(data[-(len(data) // ROW_SIZE * ROW_SIZE) :] if len(data) >= ROW_SIZE else b"", ROW)
    made = UnwindTable(int.from_bytes(data[:8], "little"), rows, {})
    table = cache.decode(cache.encode(bytes(16), made), bytes(16))
    if table is None:
        return
    for _ in chunks.cut(table):
        pass
    table.find(_ADDRESSES)


@functools.cache
def _addresses() -> tuple[int, ...]:
    """Addresses of the functions of the programs that the fuzzing begins with."""
    found: set[int] = set()
    for program in fuzz_seeds.programs():
        elf = fuzz_elf.opened(program)
        wanted = named.find_functions(elf, lambda name: name in ("choose", "deep", "main"), 0)
        found.update(
            function.offset - segment.offset + segment.vaddr
            for function in wanted
            for segment in elf.segments
            if segment.type == 1 and 0 <= function.offset - segment.offset < segment.filesz
        )
    return tuple(sorted(found))


def debug_information(data: bytes) -> None:
    """Parameters of functions, by the process that reads them; that never fails."""
    fd = in_memory(data)
    try:
        wanted = {"addresses": list(_addresses()), "members": ["depth", "next", "inside"], "seconds": _SECONDS}
        child.limit_time(_SECONDS)
        found = child.read(fd, wanted)
        assert "fault" in found or len(found["functions"]) == len(_addresses())
        parameters_of(found, len(_addresses()))
    finally:
        child.limit_time(0)
        os.close(fd)


_TOOLS: list[LineTool] = []


def source_lines(data: bytes) -> None:
    """Source lines, by the tool that is installed."""
    if not _TOOLS:
        _TOOLS.append(LineTool.find())
    fd = in_memory(data)
    try:
        _TOOLS[0].look_up(fd, _addresses())
        _TOOLS[0].problem, _TOOLS[0]._failures = "", 0
    finally:
        os.close(fd)


_ELF, _UNWIND = (ElfError,), (ElfError, UnwindError)
TARGETS = (
    Target("elf", headers, fuzz_seeds.with_symbols, as_elf, _ELF),
    Target("debug-file", debug_file, fuzz_seeds.with_symbols, as_elf, share=0.5),
    Target("elf-symbols", symbols, fuzz_seeds.with_frames, as_elf, _ELF, 2),
    Target("elf-names", names, fuzz_seeds.with_symbols, as_elf, _ELF),
    Target("elf-variables", variables, fuzz_seeds.with_symbols, as_elf, _ELF),
    Target("usdt", probes, fuzz_seeds.with_symbols, as_elf, _ELF),
    Target("needed", dynamic, fuzz_seeds.with_symbols, as_elf, _ELF),
    Target("ld.so.cache", library_cache, fuzz_seeds.library_cache, havoc, share=0.3),
    Target("unwind", unwind, fuzz_seeds.with_frames, as_elf, _UNWIND, 3),
    Target("eh-frame", _as(".eh_frame"), fuzz_seeds.eh_frames, havoc, _UNWIND, 2),
    Target(
        "eh-frame-hdr",
        _as(".eh_frame_hdr", _frames),
        lambda: fuzz_seeds.section_of(".eh_frame_hdr"),
        havoc,
        _UNWIND,
        0.3,
    ),
    Target("debug-frame", _as(".debug_frame"), fuzz_seeds.debug_frames, havoc, _UNWIND),
    Target("code", code, fuzz_seeds.code, havoc, _UNWIND, 2),
    Target("gopclntab", go_table, fuzz_seeds.golang, havoc, _ELF),
    Target("go-names", go_names, fuzz_seeds.golang, havoc, _ELF),
    Target("kept-table", kept_table, fuzz_seeds.kept_tables, havoc, share=0.3),
    Target("dwarf", debug_information, fuzz_seeds.programs, as_elf, share=3),
    Target("source-lines", source_lines, fuzz_seeds.programs, as_elf, share=0.5),
)
