"""Places where a probe on a function costs least: an instruction that the kernel emulates.

The kernel single-steps most instructions under a uprobe, which takes many times as long as emulating one. What it
emulates: `branch_setup_xol_ops()` and `push_setup_xol_ops()` of arch/x86/kernel/uprobes.c. The return address is still
at the top of the stack there, and the arguments are in their registers.
"""

from __future__ import annotations

from typing import NamedTuple

CODE = 32
"""Bytes of a function that `entry` looks at."""
_ENDBR64 = b"\xf3\x0f\x1e\xfa"
_NOPS = (
    b"\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00",
    b"\x66\x0f\x1f\x84\x00\x00\x00\x00\x00",
    b"\x0f\x1f\x84\x00\x00\x00\x00\x00",
    b"\x0f\x1f\x80\x00\x00\x00\x00",
    b"\x66\x0f\x1f\x44\x00\x00",
    b"\x0f\x1f\x44\x00\x00",
    b"\x0f\x1f\x40\x00",
    b"\x0f\x1f\x00",
    b"\x66\x90",
)
"""Intel's and the assembler's forms of more than one byte."""
_REX, _REX_B, _REX_R = 0x40, 0x01, 0x04
_KEPT = (1, 2, 4, 6, 7, 8, 9)
"""Registers that must not change before the probe: rcx, rdx, rsp, rsi, rdi, r8, r9."""


class Entry(NamedTuple):
    """A place in a function, in bytes from its start, and whether the kernel emulates the instruction there."""

    offset: int
    is_fast: bool


def entry(code: bytes) -> Entry:
    """The best place in ``code``, the first bytes of a function of x86-64: its start, or behind instructions that only
    move registers. The place always is where an instruction begins."""
    at = first = len(_ENDBR64) if code.startswith(_ENDBR64) else 0
    while at < len(code) and not _is_emulated(code, at):
        size = _harmless(code, at)
        if not size:
            return Entry(first, False)
        at += size
    return Entry(at, True) if at < len(code) else Entry(first, False)


def _is_emulated(code: bytes, at: int) -> bool:
    first, second = code[at], code[at + 1] if at + 1 < len(code) else 0
    if 0x50 <= first <= 0x57 or first in (0x90, 0xE8, 0xE9, 0xEB) or 0x70 <= first <= 0x7F:
        return True  # push, nop, call, jmp, jcc
    return (first == _REX | _REX_B and 0x50 <= second <= 0x57) or (first == 0x0F and 0x80 <= second <= 0x8F)


def _harmless(code: bytes, at: int) -> int:
    """The size of an instruction that changes neither memory nor a register of `_KEPT`; 0 for others."""
    for nop in _NOPS:
        if code.startswith(nop, at):
            return len(nop)
    rex = code[at] if code[at] & 0xF0 == _REX else 0
    if rex:
        at += 1
    if at + 1 >= len(code) or code[at + 1] >> 6 != 3:  # of two registers
        return 0
    register = code[at + 1] >> 3 & 7 | (8 if rex & _REX_R else 0)
    other = code[at + 1] & 7 | (8 if rex & _REX_B else 0)
    if (code[at] == 0x31 and register == other) or code[at] == 0x89:  # xor of one register; mov register, other
        changed = other
    elif code[at] == 0x8B:  # mov other, register
        changed = register
    else:
        return 0
    return 0 if changed in _KEPT else 2 + bool(rex)
