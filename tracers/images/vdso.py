"""Names of code that the kernel maps into every process: [vdso] and [vsyscall]."""

from __future__ import annotations

import functools
import os

from .elf import BytesSource, ElfError, ElfFile
from .maps import Mapping, read_maps
from .symtab import Bounds, SymbolTable

VDSO, VSYSCALL = "[vdso]", "[vsyscall]"
_MAX_VDSO = 1 << 20
_ONLY_32_BIT = 1 << 32

# arch/x86/entry/vsyscall/vsyscall_emu_64.S: three entries, 1024 bytes apart; ret is the last of each.
_VSYSCALLS = {0x000: "gettimeofday", 0x400: "time", 0x800: "getcpu"}
_VSYSCALL_CODE = 9


@functools.cache
def _image() -> tuple[int, ElfFile, SymbolTable] | None:
    """(length of the mapping, headers, symbols) of our own vdso."""
    try:
        mapping = next((m for m in read_maps(os.getpid()) if m.path == VDSO), None)
        if mapping is None or mapping.end - mapping.start > _MAX_VDSO:
            return None
        with open("/proc/self/mem", "rb", buffering=0) as memory:
            memory.seek(mapping.start)
            data = memory.read(mapping.end - mapping.start)
        elf = ElfFile(BytesSource(data))
        return mapping.end - mapping.start, elf, SymbolTable([elf], Bounds.none)
    except (OSError, ElfError):
        return None


def image() -> ElfFile | None:
    """ELF file of our own vdso, which every 64-bit process has; None when it cannot be read."""
    found = _image()
    return found[1] if found is not None else None


def special_name(mapping: Mapping, address: int) -> tuple[int, str | None]:
    """(offset in the mapping, name or None) of an address in [vdso] or [vsyscall].

    A 64-bit process has the same vdso as this one; a vdso of another length, or below 4 GiB like those of 32-bit
    processes, is not ours and gets no names.
    """
    import numpy as np

    offset = address - mapping.start
    if mapping.path == VSYSCALL:
        return offset, _VSYSCALLS.get(offset & ~0x3FF) if offset & 0x3FF <= _VSYSCALL_CODE else None
    image = _image()
    if image is None or mapping.start < _ONLY_32_BIT or mapping.end - mapping.start != image[0]:
        return offset, None
    _, elf, table = image
    vaddrs, known = elf.to_vaddrs(np.array([offset], np.uint64))
    return offset, table.find(vaddrs)[0] if known[0] else None
