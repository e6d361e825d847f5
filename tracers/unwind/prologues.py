"""Rules for functions that have no call frame information, read from their code: `flow` says how.

Functions begin at symbols, at the program's entry, where calls lead, and where the file has the address of code:
musl's libraries, for one, have no rules and few symbols.
"""

from __future__ import annotations

import bisect
import hashlib
import itertools
import re
import struct
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ..images.elf import ElfFile, read_string
from .flow import Code, Flow
from .frames import Instruction
from .rows import GAP, RBP_AT_RSP, SIGNAL, pack

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MAX_BYTES = 16 << 20
"""Maximum size of what is read of a file."""
_MAX_STEPS = 500_000
"""Instructions that are followed in one file: 10 s, and 512 MiB, are more than they take."""
_MAX_PASSES = 8
_RUN = 64
"""Bytes that are decoded at once."""
_PT_LOAD, _PF_X, _PF_W = 1, 1, 2
_STT_FUNC, _STT_IFUNC = 2, 10
_RELATIVE = 8
"""R_X86_64_RELATIVE."""
_JUMP_SLOT, _GLOB_DAT = 7, 6
"""R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT."""
_IN_OTHER_FILES = re.compile(
    rb"abort|_?exit|_Exit|quick_exit|thrd_exit|pthread_exit|(_|__)?(sig)?longjmp|__longjmp_chk|v?errx?|__assert|"
    rb"__assert_(perror_)?fail|__stack_chk_fail|__chk_fail|__fortify_fail|__libc_start_main|_Unwind_Resume|"
    rb"__cxa_(re)?throw|__cxa_bad_\w+|__cxa_throw_\w+|__cxa_call_unexpected|_ZSt\d+__throw_\w+|_ZSt9terminatev|"
    rb"_ZSt10unexpectedv|__cxa_pure_virtual|g_assertion_message\w*|Py_FatalError|_Py_FatalError\w+"
)
"""Functions that do not return, in the libraries that others call."""
_SIGRETURN = b"\x48\xc7\xc0\x0f\0\0\0\x0f\x05"
"""mov $15, %rax; syscall: what the kernel returns to after a signal handler; gdb knows it by these bytes, too."""
_SIGRETURN_ROW = pack(SIGNAL | RBP_AT_RSP << 4, 160 // 8, 120 // 8)
"""rsp then points to a struct ucontext: rbp, rsp and rip are at 120, 160 and 168."""


class CodeToRead(NamedTuple):
    """Code that rules are read from: all that they depend on."""

    segments: list[tuple[int, bytes]]
    """Executable segments: virtual address, content."""
    data: list[tuple[int, bytes]]
    """The other segments that the program cannot write."""
    symbols: list[tuple[bytes, bytes]]
    """Symbol tables and their names."""
    pointers: bytes
    """Raw relocations: the addresses of functions are among them."""

    def digest(self) -> bytes:
        """Digest of the content."""
        digest = hashlib.blake2b(digest_size=16)
        for content in (*(d for _, d in (*self.segments, *self.data)), *itertools.chain(*self.symbols), self.pointers):
            digest.update(len(content).to_bytes(8, "little"))
            digest.update(content)
        return digest.digest()


class Reading(NamedTuple):
    """Rows (virtual address, word by `rows.pack`), sorted, each function closed by a gap; and what has none."""

    rows: list[tuple[int, int]]
    refused: Counter[str]


def find_code(elf: ElfFile, described: NDArray[np.uint64]) -> CodeToRead | None:
    """None for a file where all functions that have symbols are at addresses ``described``, or that is too large."""
    tables = elf.symbol_tables()
    fixed = [s for s in elf.segments if s.type == _PT_LOAD and not s.flags & _PF_W]
    if sum(s.filesz for s in fixed) > _MAX_BYTES or sum(int(t["size"]) for t in tables) > _MAX_BYTES:
        return None
    if all(_all_described(elf, table, described) for table in tables):
        return None
    content = [(s.flags & _PF_X, s.vaddr, elf.source.read(s.offset, s.filesz)) for s in fixed]
    segments = [(vaddr, data) for executable, vaddr, data in content if executable]
    others = [(vaddr, data) for executable, vaddr, data in content if not executable]
    symbols = [(elf.source.read(int(t["offset"]), int(t["size"])), _names(elf, t)) for t in tables]
    return CodeToRead(segments, others, symbols, (elf.section(b".rela.dyn") or b"")[:_MAX_BYTES])


def _names(elf: ElfFile, table: np.void) -> bytes:
    offset, size = elf.strings(table)
    return elf.source.read(offset, min(size, _MAX_BYTES))


def _all_described(elf: ElfFile, table: np.void, described: NDArray[np.uint64]) -> bool:
    import numpy as np

    rows = elf.symbols(table)
    return bool(np.isin(rows["value"][_are_functions(rows)].astype(np.uint64), described).all())


def _are_functions(rows: NDArray[np.void]) -> NDArray[np.bool_]:
    kinds = rows["info"] & 15
    found: NDArray[np.bool_] = (
        ((kinds == _STT_FUNC) | (kinds == _STT_IFUNC)) & (rows["shndx"] > 0) & (rows["value"] > 0)
    )
    return found


def read_prologues(elf: ElfFile, code: CodeToRead, described: list[tuple[int, int]]) -> Reading:
    """Rows for all functions outside of the ranges (begin, end) that have some: sorted, without overlaps."""
    return _Reader(elf, code, described).read()


class _Reader:
    def __init__(self, elf: ElfFile, code: CodeToRead, described: list[tuple[int, int]]) -> None:
        import capstone

        self._elf, self._code = elf, code
        self._begins, self._ends = [begin for begin, _ in described], [end for _, end in described]
        self._decoder = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
        self._decoded: dict[int, Instruction | None] = {}
        self._entries: set[int] = set()
        self._final: set[int] = set()
        """Functions that do not return."""
        self._flows: dict[int, Flow] = {}
        self._start = 0
        self._imports = _imports(elf)
        self._steps = 0

    def read(self) -> Reading:
        self._start = _entry_point(self._elf)
        todo = self._functions() | ({self._start} if self._is_free(self._start) else set())
        self._entries |= todo
        self._read_all(todo)
        self._read_all(self._addresses())
        return self._result()

    def _read_all(self, todo: set[int]) -> None:
        """Reads functions, and those that they call; again, while it turns out that some do not return."""
        for _ in range(_MAX_PASSES):
            waiting = sorted(todo)
            while waiting and self._steps < _MAX_STEPS:
                flow = self._read_one(waiting.pop())
                new = {at for at in flow.calls | flow.tails if self._is_free(at)} - self._entries
                if not flow.problem:
                    self._entries |= new
                    waiting += sorted(new)
            todo = self._affected(self._settle_returns())
            if not todo:
                return
        for at in todo:  # may be callers of functions of which it was late to learn that they do not return
            del self._flows[at]

    def _read_one(self, entry: int) -> Flow:
        code = Code(self._decode, self._entries.__contains__, self._returns, self._returns_through, self._data)
        flow = self._flows[entry] = Flow(code, entry, outermost=entry == self._start, most=_MAX_STEPS - self._steps)
        self._steps += flow.steps
        return flow

    def _returns(self, target: int) -> bool:
        return target not in self._final and not _IN_OTHER_FILES.fullmatch(self._import_at(target))

    def _returns_through(self, slot: int) -> bool:
        return not _IN_OTHER_FILES.fullmatch(self._imports.get(slot, b""))

    def _import_at(self, target: int) -> bytes:
        """The name of the function that a stub of the procedure linkage table jumps to; b"" at other code."""
        for at, size, mnemonic, operands in self._decoder.disasm_lite(self._bytes(target), target, 2):
            if mnemonic in ("jmp", "bnd jmp", "notrack jmp") and "[rip " in operands:
                return self._imports.get(at + size + _displacement(operands), b"")
            if mnemonic != "endbr64":
                break
        return b""

    def _settle_returns(self) -> set[int]:
        """Functions of which it is new that they do not return: all their paths end, or go on in such functions."""
        returning = {at for at, flow in self._flows.items() if flow.leaves or flow.problem}
        known = self._flows.keys()
        changed = True
        while changed:
            more = {
                at
                for at, flow in self._flows.items()
                if at not in returning and any(tail in returning or tail not in known for tail in flow.tails)
            }
            changed = bool(more)
            returning |= more
        new = known - returning - self._final
        self._final |= new
        return new

    def _affected(self, final: set[int]) -> set[int]:
        """Functions to read again."""
        return {at for at, flow in self._flows.items() if flow.calls & final or (final and flow.problem)}

    def _addresses(self) -> set[int]:
        """Addresses where functions may begin that are called by their address, in code that nothing has led to yet."""
        reached = {at for flow in self._flows.values() if not flow.problem for at in flow.states}
        found = set()
        for at in sorted(self._pointers() | self._loaded(reached)):
            if at in reached or at in self._entries or not self._is_free(at) or self._steps >= _MAX_STEPS:
                continue
            flow = self._read_one(at)
            # The address of a label, for a computed goto, is none of a function.
            if flow.problem or flow.jumps_blindly or flow.states.keys() & reached or not (flow.leaves or flow.calls):
                del self._flows[at]
                continue
            reached |= flow.states.keys()
            found.add(at)
        self._entries |= found
        return found

    def _pointers(self) -> set[int]:
        relocations = self._code.pointers
        return {
            addend
            for _, info, addend in struct.iter_unpack("<QQq", relocations[: len(relocations) // 24 * 24])
            if info == _RELATIVE
        }

    def _loaded(self, reached: set[int]) -> set[int]:
        """Addresses of code that the code reached so far computes."""
        found = set()
        for at in reached:
            instruction = self._decoded.get(at)
            if instruction and instruction[2] == "lea" and "[rip " in instruction[3]:
                found.add(at + instruction[1] + _displacement(instruction[3]))
        return found

    def _result(self) -> Reading:
        words: dict[int, int] = {}
        sizes: dict[int, int] = {}
        twice: set[int] = set()
        refused: Counter[str] = Counter()
        for flow in self._flows.values():
            if flow.problem:
                refused[f"code not understood: {flow.problem}"] += 1
                continue
            for at, state in flow.states.items():
                word = state.row()
                if words.setdefault(at, word) != word:
                    twice.add(at)
            sizes.update(flow.sizes)
        if self._steps >= _MAX_STEPS:
            refused["too much code to read"] += 1
        if twice:
            refused["code not understood: functions with different frames share it"] += 1
        for at in self._signal_returns():
            words |= {at - 1: _SIGRETURN_ROW, at: _SIGRETURN_ROW}
            sizes |= {at - 1: 1, at: len(_SIGRETURN)}
            for inside in range(at + 1, at + len(_SIGRETURN)):
                words.pop(inside, None)
        return Reading(list(_sorted_rows(words, sizes, twice)), refused)

    def _signal_returns(self) -> Iterator[int]:
        for base, data in self._code.segments:
            at = data.find(_SIGRETURN)
            while at > 0:
                if self._is_free(base + at) and self._is_free(base + at - 1):
                    yield base + at
                at = data.find(_SIGRETURN, at + 1)

    def _functions(self) -> set[int]:
        """Virtual addresses of function symbols without rules, but not the parts that compilers split off."""
        found = set()
        for table in self._elf.symbol_tables():
            rows = self._elf.symbols(table)
            offset, size = self._elf.strings(table)
            for row in rows[_are_functions(rows)]:
                if not self._is_free(int(row["value"])):
                    continue
                name = read_string(self._elf.source, offset, size, int(row["name"])) or b""
                if b".cold" not in name:
                    found.add(int(row["value"]))
        return found

    def _is_free(self, at: int) -> bool:
        """Whether there is code at an address, without rules."""
        i = bisect.bisect(self._begins, at) - 1
        if i >= 0 and at < self._ends[i]:
            return False
        return any(base <= at < base + len(data) for base, data in self._code.segments)

    def _decode(self, at: int) -> Instruction | None:
        if at not in self._decoded:
            self._decoded[at] = None
            if self._is_free(at):
                for found in self._decoder.disasm_lite(self._bytes(at), at):
                    if self._decoded.get(found[0]) is not None:
                        break
                    self._decoded[found[0]] = found
        return self._decoded[at]

    def _bytes(self, at: int) -> bytes:
        for base, data in self._code.segments:
            if base <= at < base + len(data):
                return data[at - base : at - base + _RUN]
        return b""

    def _data(self, vaddr: int, size: int) -> bytes:
        for base, data in (*self._code.data, *self._code.segments):
            if base <= vaddr and vaddr + size <= base + len(data):
                return data[vaddr - base : vaddr - base + size]
        return b""


def _sorted_rows(words: dict[int, int], sizes: dict[int, int], twice: set[int]) -> Iterator[tuple[int, int]]:
    end = -1
    for at in sorted(words):
        if at in twice:
            continue
        if at > end >= 0:
            yield end, pack(GAP)
        yield at, words[at]
        end = at + sizes[at]
    if end >= 0:
        yield end, pack(GAP)


def _displacement(operands: str) -> int:
    """k of "[rip + k]"."""
    return int(operands.partition("[rip ")[2].partition("]")[0].replace(" ", ""), 0)


def _imports(elf: ElfFile) -> dict[int, bytes]:
    """Names of functions in other files, by the address of the slot that a call goes through."""
    symbols = elf.section_header(b".dynsym")
    if symbols is None:
        return {}
    rows = elf.symbols(symbols)
    offset, size = elf.strings(symbols)
    found = {}
    for name in (b".rela.plt", b".rela.dyn"):
        relocations = elf.section(name) or b""
        for slot, info, _ in struct.iter_unpack("<QQq", relocations[: len(relocations) // 24 * 24]):
            if info & 0xFFFFFFFF in (_JUMP_SLOT, _GLOB_DAT) and info >> 32 < len(rows):
                found[slot] = read_string(elf.source, offset, size, int(rows[info >> 32]["name"])) or b""
    return found


def _entry_point(elf: ElfFile) -> int:
    return int(struct.unpack("<Q", elf.source.read(24, 8))[0]) if elf.is_64 else 0
