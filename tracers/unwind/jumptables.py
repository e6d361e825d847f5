"""Targets of a `switch`, by the tables that GCC and clang write."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, islice

from .frames import Instruction, immediate, offset

REACH = 1 << 13
"""Bytes before a jump in which the address of its table is loaded."""
_WINDOW = 24
"""Instructions before a jump among which is the comparison that guards it."""
_STEPS = 8
"""Instructions before a jump among which its target is computed."""
_MAX_ENTRIES = 1024


def targets(before: Iterable[Instruction], read: Callable[[int, int], bytes]) -> list[int]:
    """Sorted virtual addresses; [] if the jump is not understood.

    ``before``: the jump and what comes before it in memory, last first; only what is needed is taken. ``read`` gives
    constant data by virtual address and size, b"" where there is none.
    """
    rest = iter(before)
    near = list(islice(rest, _WINDOW + _STEPS))
    absolute = _absolute_table(near[0][3])
    if absolute is not None:
        size, base, table = 8, 0, absolute
        count = _bound(near[: _WINDOW + 1])
    else:
        load = _load(near)
        found = _relative_table(chain(near[load:], rest)) if load else None
        if found is None:
            return []
        size, base, table = 4, found, found
        count = _bound(near[load : load + _WINDOW])
    if not 0 < count <= _MAX_ENTRIES:
        return []
    data = read(table, count * size)
    return sorted({base + each for (each,) in struct.iter_unpack("<Q" if size == 8 else "<i", data)})


def _bound(before: Sequence[Instruction]) -> int:
    """Number of entries of the table: by the comparison that guards it."""
    for jump, compare in zip(before[:-1], before[1:], strict=True):
        if compare[2] == "cmp" and jump[2] in ("ja", "jbe", "jae", "jb"):
            limit = immediate(compare[3].rpartition(", ")[2])
            if limit is not None and limit >= 0:
                return limit + (jump[2] in ("ja", "jbe"))
    return 0


def _absolute_table(operands: str) -> int | None:
    """Address of the table in "qword ptr [rax*8 + 0x4a0]"."""
    inside = operands.removeprefix("qword ptr [").removesuffix("]")
    index, _, base = inside.partition(" + ")
    return immediate(base) if operands.startswith("qword ptr [") and index.endswith("*8") else None


def _load(before: Sequence[Instruction]) -> int:
    """Index of the one of ``before`` that loads the entry, in "movsxd x, [table + i*4]; add x, table; jmp x"; 0 if
    none."""
    target = before[0][3]
    added = ""
    for i, (_, _, mnemonic, operands) in enumerate(before[1:_STEPS], 1):
        first, _, rest = operands.partition(", ")
        if mnemonic == "add" and first == target and not added:
            added = rest
        elif mnemonic == "movsxd" and added and first in (target, added) and "*4]" in rest:
            base = rest.partition("[")[2].partition(" + ")[0]
            return i if base in (target, added) else 0
    return 0


def _relative_table(before: Iterable[Instruction]) -> int | None:
    """The address of the table that an instruction, the first one of ``before``, loads an entry of."""
    register = ""
    for at, size, mnemonic, operands in before:
        register = register or operands.partition("[")[2].partition(" + ")[0]
        if mnemonic == "lea" and operands.startswith(f"{register}, [rip "):
            distance = offset(operands.partition(", ")[2], "[rip")
            return None if distance is None else at + size + distance
    return None
