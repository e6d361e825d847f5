"""Unwind rules of Go programs, from the table that Go's own runtime walks stacks by (`images.go_table`).

Goroutines and the scheduler have stacks of their own. Above the functions where these begin is nothing, or what is left
of an earlier call: Go's tracebacks end there (`topofstack` in src/runtime/traceback.go), and so do ours.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ..images.elf import ElfError, ElfFile
from ..images.go_table import find_go_table, go_header
from .rows import CFA_OFFSET, GAP, RBP_UNKNOWN, RSP, UNKNOWN, WORD, fits_cfa, pack

_MAX_TABLE = 64 << 20
"""Bytes of a table that are read."""
_MAX_NAME = 64
_MAX_ROWS = 1 << 21
_MAX_SWITCHING = 4096
"""Maximum size of such a function, in bytes; they are small."""
_MAX_STEPS = 1 << 16
"""Maximum number of changes of the stack pointer in one function."""

_OUTERMOST = frozenset({b"runtime.goexit", b"runtime.mstart", b"runtime.rt0_go"})
"""Functions that have no caller."""
_SWITCHING = frozenset({b"runtime.mcall", b"runtime.systemstack", b"runtime.morestack", b"runtime.asmcgocall"})
"""Functions that go over to the stack of the scheduler, and call from there."""


class GoTable(NamedTuple):
    """Data that the rules are made from."""

    data: bytes
    """Content of the table."""
    text: int
    """Virtual address that Go 1.18 and newer count functions from."""


class GoFunction(NamedTuple):
    """A function, by virtual addresses."""

    pc: int
    end: int
    name: bytes
    """Cut at 64 bytes."""
    steps: int
    """Offset in the section of the changes of its stack pointer."""


def find_go(elf: ElfFile) -> GoTable | None:
    """The table of a 64-bit Go program; None when the file has none, or one of an unknown layout."""
    place = find_go_table(elf)
    return GoTable(elf.source.read(place.offset, min(place.size, _MAX_TABLE)), place.text) if place else None


def go_functions(table: GoTable) -> list[GoFunction]:
    """All functions, sorted, without overlaps. ElfError when the table makes no sense."""
    try:
        return list(_functions(table))
    except (struct.error, IndexError, ValueError, OverflowError) as error:
        raise ElfError("damaged .gopclntab") from error


def go_rows(table: GoTable, functions: list[GoFunction]) -> Iterator[tuple[int, int]]:
    """(virtual address, word as packed by `rows.pack`) of the rules of ``functions``, each closed by a gap."""
    known: dict[int, list[tuple[int, int]]] = {}
    room = _MAX_ROWS
    for function in functions:
        if function.steps not in known:
            known[function.steps] = _steps(table.data, function.steps)
        at, limit = function.pc, function.end
        for size, depth in known[function.steps]:
            if at >= limit:
                break
            yield at, _word(depth)
            at += size
            room -= 1
            if not room:
                raise ElfError("absurdly many rows in .gopclntab")
        yield min(at, limit), pack(GAP)


def go_roots(functions: list[GoFunction], read: Callable[[int, int], bytes]) -> Iterator[tuple[int, int]]:
    """(begin, end) of code whose frame is the outermost of its stack.

    ``read`` gives code by virtual address and size.
    """
    for function in functions:
        name = function.name.removesuffix(b".abi0")
        if name in _OUTERMOST:
            yield function.pc, function.end
        elif name in _SWITCHING and function.end - function.pc <= _MAX_SWITCHING:
            yield from _switched(function, read(function.pc, function.end - function.pc))


def _switched(function: GoFunction, code: bytes) -> Iterator[tuple[int, int]]:
    """Ranges in which the function is on the scheduler's stack: from an instruction that sets rsp to one that sets it
    back."""
    import capstone

    begin = 0
    for at, size, mnemonic, operands in capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64).disasm_lite(
        code, function.pc
    ):
        if begin and mnemonic in ("mov", "ret") and (mnemonic == "ret" or operands.startswith("rsp, ")):
            yield begin, at + size
            begin = 0
        elif not begin and mnemonic in ("mov", "and") and operands.startswith("rsp, "):
            begin = at + size
    if begin:
        yield begin, function.end


def _word(depth: int) -> int:
    # Where Go saves rbp is not in the table; its frames are found without it.
    if depth < 0 or depth % WORD or not fits_cfa(depth // WORD + 1):
        return pack(UNKNOWN, CFA_OFFSET)
    return pack(RSP | RBP_UNKNOWN << 4, depth // WORD + 1)


def _functions(table: GoTable) -> Iterator[GoFunction]:
    data = table.data
    count, names, steps, begin, functab, is_new = go_header(data)
    pair = struct.Struct("<II" if is_new else "<QQ")
    fields_of = struct.Struct("<IiIII" if is_new else "<QiIII")
    before = 0
    for i in range(count):
        (pc, at), (end, _) = (
            pair.unpack_from(data, functab + i * pair.size),
            pair.unpack_from(data, functab + (i + 1) * pair.size),
        )
        _, name, _, _, step = fields_of.unpack_from(data, begin + at)
        pc, end = pc + table.text, end + table.text
        if pc < before or end < pc:
            raise ValueError
        before = end
        if step and end > pc:
            yield GoFunction(pc, end, _name(data, names + name), steps + step)


def _name(data: bytes, at: int) -> bytes:
    if not 0 <= at < len(data):
        raise ValueError
    return data[at : at + _MAX_NAME].split(b"\0", 1)[0]


def _steps(data: bytes, at: int) -> list[tuple[int, int]]:
    """(bytes of code, bytes that the stack has grown by) of a table of changes (`step` in symtab.go)."""
    found: list[tuple[int, int]] = []
    depth = -1
    for i in range(_MAX_STEPS):
        change, at = _varint(data, at)
        if not change and i:
            break
        depth += ~(change >> 1) if change & 1 else change >> 1
        size, at = _varint(data, at)
        found.append((size, depth))
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 35 and 0 <= at < len(data):
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7
    raise ElfError("damaged .gopclntab")
