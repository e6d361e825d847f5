"""Python functions in the stacks of the probes, and interpreters as these know them; mirrors bpf/include/python.h."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PROCESS, CODE, CUT = 0x50, 0x51, 0x52
"""The highest byte of the words that begin a stack's Python part, a function, and that say that there were more."""
TAG = 56
"""Bits below that byte."""
_REST = (1 << TAG) - 1
NO_STEP = 0xFFFF
WINDOW = 256
"""Maximum bytes of an object that are read at once."""
TEXT = 192
"""Bytes of the text of a file's name, its last ones, that distinguish code objects without a version."""
LONG = 4096
"""Characters of a longer name are not read."""
CUTS = {1: "too deep", 2: "not readable"}
"""enum python_end."""
ENTRY_ALWAYS, ENTRY_FLAG, ENTRY_BELOW = range(3)
"""enum python_entry."""
INSTRUCTION_BYTE, INSTRUCTION_WORD, INSTRUCTION_AT = range(3)
"""enum python_instruction."""
SPACE = struct.Struct("<QIII19H4B2x3I4xQ")
"""struct python_space. The probes change the last two fields: see `identity`."""
_CHANGED = 16
"""Bytes of these, and between them."""
_MULTIPLIER, _64, _32 = 0xFF51AFD7ED558CCD, (1 << 64) - 1, (1 << 32) - 1
_MAX_INSTRUCTION = 1 << 31


def identity(space: bytes) -> bytes:
    """Part of a struct python_space that stays the same."""
    return space[:-_CHANGED]


class Call(NamedTuple):
    """A Python function on a stack."""

    code: int
    """Address of its code object."""
    checksum: int
    instruction: int
    """Byte of the code that runs; -1: before the first one."""
    is_entry: bool
    """The interpreter's native function was entered with it."""


class Calls(NamedTuple):
    """The Python functions of a stack."""

    pid: int
    """Process in which the stack was first taken."""
    calls: tuple[Call, ...]
    """Innermost first."""
    cut: str = ""
    """Reason why there are no more, though there were: one of `CUTS`; "" if these are all."""


def begin_of(stack: Sequence[int]) -> int:
    """Number of the words of a stack that are native frames."""
    for i, word in enumerate(stack):
        if word >> TAG == PROCESS:
            return i
    return len(stack)


def parse(words: Sequence[int]) -> Calls:
    """The words behind the native frames, at least the first one."""
    calls = []
    cut = ""
    for i in range(1, len(words), 2):
        word = words[i]
        if word >> TAG != CODE or i + 1 == len(words):
            cut = CUTS.get(word & _REST, "")
            break
        second = words[i + 1]
        instruction = second >> 1 & _MAX_INSTRUCTION - 1
        # What lies before the first instruction has wrapped around.
        instruction = -1 if instruction > _MAX_INSTRUCTION // 2 else instruction
        calls.append(Call(word & _REST, second >> 32, instruction, bool(second & 1)))
    return Calls(words[0] & _32, tuple(calls), cut)


def codes(words: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Address and checksum of each code object in these words; like `parse`, but quicker."""
    for i in range(1, len(words) - 1, 2):
        if words[i] >> TAG != CODE:
            return
        yield words[i] & _REST, words[i + 1] >> 32


def all_codes(words: NDArray[np.uint64]) -> set[tuple[int, int]]:
    """Codes in the words of many stacks; with some that are none, where another word is like that of a code."""
    import numpy as np

    at = np.flatnonzero(words[:-1] >> np.uint64(TAG) == CODE)
    codes, seconds = words[at] & np.uint64(_REST), words[at + 1] >> np.uint64(32)
    return set(zip(codes.tolist(), seconds.tolist(), strict=True))


def checksum(salt: int, words: Iterable[int]) -> int:
    """Checksum of a code object: addresses of its name, its file's name and its table of lines, its first line, its
    size, and its version; without a version, the hash of its name's text, and `text_hash` of its file's name."""
    return _mixed(salt, words) & _32


def skipped(size: int) -> int:
    """Bytes at the beginning of a text of this size that its hash leaves out."""
    return (size - TEXT + 7) & ~7 if size > TEXT else 0


def text_hash(length: int, rest: bytes) -> int:
    """Hash of a string of so many characters, whose bytes from `skipped` on are ``rest``."""
    padded = rest + bytes(-len(rest) % 8)
    return _mixed(0, (length, *struct.unpack(f"<{len(padded) // 8}Q", padded)))


def _mixed(value: int, words: Iterable[int]) -> int:
    for word in words:
        value = (value ^ word) * _MULTIPLIER & _64
        value ^= value >> 32
    return value
