"""Whether a file is a Python interpreter: its version, and where its runtime is."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from ..images.elf import SHT_DYNSYM, SHT_SYMTAB, ElfError, ElfFile
from ..images.maps import Mapping
from ..images.variables import variables_named
from .layouts import Version

_NAMED = re.compile(r"(?:lib)?python(\d)\.(\d+)")
_MAYBE = re.compile(r"python", re.IGNORECASE)
_RUNTIME, _VERSION, _CODE, _TEXT = b"_PyRuntime", b"Py_Version", b"PyCode_Type", b"PyUnicode_Type"
_LOAD = 1


class Runtime(NamedTuple):
    """Runtime of an interpreter's file."""

    version: Version
    vaddr: int
    """Virtual address of `_PyRuntime` in the file."""
    code_type: int
    text_type: int
    """Virtual addresses of the types of code objects and of strings in the file; 0 if unknown."""


def may_be_interpreter(mapping: Mapping) -> bool:
    """Whether a mapped file may contain an interpreter: by its name, or because it is a program."""
    name = os.path.basename(mapping.file_path)
    return mapping.is_file and bool(_MAYBE.search(name) or ".so" not in name)


def find_runtime(elf: ElfFile, path: str) -> Runtime | None:
    """The runtime that a file defines; None if it is no interpreter. ElfError for a damaged file."""
    if not elf.is_64:
        return None
    # Programs of other names are many, and some are large. One with an interpreter exports it to its modules in C.
    tables = (SHT_DYNSYM, SHT_SYMTAB) if _MAYBE.search(os.path.basename(path)) else (SHT_DYNSYM,)
    found = variables_named(elf, {_RUNTIME, _VERSION, _CODE, _TEXT}, tables)
    if _RUNTIME not in found:
        return None
    if _VERSION in found:  # from 3.11 on
        number = int.from_bytes(_initial_bytes(elf, found[_VERSION], 8), "little")
        version = number >> 24, number >> 16 & 0xFF
    else:
        match = _NAMED.match(os.path.basename(path))
        version = (int(match[1]), int(match[2])) if match else (0, 0)
    return Runtime(version, found[_RUNTIME], found.get(_CODE, 0), found.get(_TEXT, 0))


def address_of(elf: ElfFile, mapping: Mapping, vaddr: int) -> int | None:
    """The address of a file's ``vaddr`` in a process with this mapping of its code; None if that is not code."""
    import numpy as np

    vaddrs, known = elf.to_vaddrs(np.array([mapping.offset], np.uint64))
    return mapping.start - int(vaddrs[0]) + vaddr if known[0] else None


def _initial_bytes(elf: ElfFile, vaddr: int, size: int) -> bytes:
    for segment in elf.segments:
        if segment.type == _LOAD and 0 <= vaddr - segment.vaddr <= segment.filesz - size:
            return elf.source.read(segment.offset + vaddr - segment.vaddr, size)
    raise ElfError("a variable outside of the file")
