"""User stacks, walked in user space by the same rows as in the probes (`rows`): of threads that sleep, from a copy of
their memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from ..images.elf import ElfFile
from ..images.maps import AddressSpace, Mapping
from .cache import TableCache
from .rows import (
    END,
    GAP,
    PLT,
    RBP,
    RBP_AT_CFA,
    RBP_AT_RBP,
    RBP_AT_RSP,
    RBP_DEREF,
    RBP_DEREF_8,
    RBP_SAME,
    RSP,
    RSP_DEREF,
    RSP_DEREF_8,
    SIGNAL,
    UNKNOWN,
    WORD,
)
from .sections import UnwindError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_FRAMES = 512
_BITS = (1 << 64) - 1

Word = Callable[[int], "int | None"]
"""The 8 bytes at an address of the thread's memory; None if they are not known."""
Find = Callable[[Mapping], "ElfFile | None"]
"""The file behind a mapping."""


class Registers(NamedTuple):
    """Registers of a thread's user code. ``bp`` is None where it is not known."""

    ip: int
    sp: int
    bp: int | None


class Walk(NamedTuple):
    """Addresses, innermost first; ``is_whole``: the last one is where the thread began."""

    addresses: tuple[int, ...]
    is_whole: bool


class _Rule(NamedTuple):
    kind: int
    cfa: int
    rbp_kind: int
    rbp: int


class _Table:
    """The rows of one file, ready to be searched for one address at a time."""

    def __init__(self, base: int, rows: NDArray[np.void]) -> None:
        import numpy as np

        self._base, self._rows = base, rows
        self._pcs = np.ascontiguousarray(rows["pc"])

    def rule(self, vaddr: int) -> _Rule | None:
        """The one that is valid at a virtual address of the file; None: there is none."""
        if not 0 <= vaddr - self._base < 1 << 32:
            return None
        at = int(self._pcs.searchsorted(vaddr - self._base, side="right")) - 1
        if at < 0:
            return None
        _, cfa, rbp, rule = self._rows[at].item()
        return _Rule(rule & 15, cfa * WORD, rule >> 4, rbp * WORD)


class Walker:
    """Walks the stacks of any threads."""

    def __init__(self, cache: TableCache | None = None) -> None:
        self._cache = cache or TableCache()
        self._tables: dict[object, _Table | None] = {}

    def walk(self, space: AddressSpace, find: Find, registers: Registers, word: Word) -> Walk:
        """A thread's stack. ``space``: the mappings of its process."""
        pc, sp, bp = registers
        found: list[int] = []
        exact = True
        while len(found) < MOST_FRAMES:
            place = self._rule(space, find, pc if exact else pc - 1)
            if place is None:
                break
            found.append(pc)
            vaddr, rule = place
            if rule.kind in (END, GAP, UNKNOWN):
                return Walk(tuple(found), rule.kind == END)
            cfa = _cfa(rule, sp, bp, vaddr, word)
            if cfa is None or (cfa <= sp and rule.kind != SIGNAL):
                break
            caller = word(sp + rule.cfa + WORD) if rule.kind == SIGNAL else word(cfa - WORD)
            bp = _caller_bp(rule, cfa, sp, bp, word)
            if caller is None:
                break
            if not caller:
                return Walk(tuple(found), True)
            pc, sp, exact = caller, cfa, rule.kind == SIGNAL
        return Walk(tuple(found), False)

    def _rule(self, space: AddressSpace, find: Find, pc: int) -> tuple[int, _Rule] | None:
        """The address in its file, and the rule there; None where no code is mapped."""
        mapping = space.find(pc)
        if mapping is None:
            return None
        elf = find(mapping)
        begin = elf.mapped_at(mapping.offset) if elf else None
        if elf is None or begin is None:
            return pc, _Rule(GAP, 0, RBP_SAME, 0)
        vaddr = begin + pc - mapping.start
        table = self._table(elf)
        return vaddr, (table and table.rule(vaddr)) or _Rule(GAP, 0, RBP_SAME, 0)

    def _table(self, elf: ElfFile) -> _Table | None:
        if id(elf) not in self._tables:
            try:
                table = self._cache.table(elf)
            except UnwindError:
                self._tables[id(elf)] = None
            else:
                self._tables[id(elf)] = _Table(table.base, table.rows)
        return self._tables[id(elf)]


def _cfa(rule: _Rule, sp: int, bp: int | None, vaddr: int, word: Word) -> int | None:
    """The caller's stack pointer; None: not known."""
    kind = rule.kind
    if kind == RSP:
        return sp + rule.cfa
    if kind == PLT:
        return sp + WORD + (WORD if vaddr & 15 >= rule.cfa // WORD else 0)
    if kind in (RBP, RBP_DEREF, RBP_DEREF_8) and bp is None:
        return None
    if kind == RBP and bp is not None:
        return bp + rule.cfa
    base = sp if kind in (RSP_DEREF, RSP_DEREF_8, SIGNAL) else bp or 0
    value = word((base + rule.cfa) & _BITS)
    if value is None:
        return None
    return value + (WORD if kind in (RSP_DEREF_8, RBP_DEREF_8) else 0)


def _caller_bp(rule: _Rule, cfa: int, sp: int, bp: int | None, word: Word) -> int | None:
    kind = rule.rbp_kind
    if kind == RBP_SAME:
        return bp
    if kind == RBP_AT_RBP and bp is None:
        return None
    base = {RBP_AT_CFA: cfa, RBP_AT_RSP: sp, RBP_AT_RBP: bp}.get(kind)
    return word((base + rule.rbp) & _BITS) if base is not None else None
