"""Names that programs choose, in the binary records of perf: changed before perf script sees them.

perf script prints names as they are, so that an end of a line in one begins a line of its text. Executable memory
without a file it takes to be code that was made at run time: it opens /tmp/perf-PID.map, whoever made that, be it a
FIFO, a link to a device, or as large as the disk (map__new() in tools/perf/util/map.c, dso__load() in symbol.c). Such
memory becomes one without names; `jit` names its code.
"""

from __future__ import annotations

import struct

END_OF_LINE = 0xFF
"""Stands for the end of a line in names of threads: no byte of UTF-8."""
ANONYMOUS = b"//anon"
"""Name of memory without a file."""
_NAMED = b"\n", bytes((END_OF_LINE,))
_MEMORY = (
    # is_anon_memory() and is_no_dso_memory() of map.c, and what /proc/PID/maps calls memory that a program has named.
    ANONYMOUS, b"/dev/zero", b"/anon_hugepage", b"[stack", b"/SYSV", b"[heap]", b"[anon:",
    b"/tmp/perf-",  # the name that dso__load() looks for; it may also be that of a mapped file
)  # fmt: skip
_EXECUTABLE, _HUGE = 4, 0x40000
"""PROT_EXEC, MAP_HUGETLB."""
_USER, _MODES = 2, 7
_DATA = 1 << 13
"""PERF_RECORD_MISC_USER, its mask; PERF_RECORD_MISC_MMAP_DATA: not executable, of records that do not tell it."""
_MISC = struct.Struct("=H")
_MISC_AT, _COMM_AT, _MMAP_AT, _PROTECTION_AT, _MMAP2_AT = 4, 16, 40, 64, 72
"""Places in a record: its misc, the names of COMM and MMAP, protection and flags of MMAP2, and its name."""
_PROTECTION = struct.Struct("=II")
_FIELD = 8
"""Fields of names are as long as a multiple of this."""


def replace_comm(data: bytearray, at: int, end: int) -> None:
    """Replaces line ends in a record of a thread's name."""
    name = _name(data, at + _COMM_AT, end)
    if b"\n" in name:
        data[at + _COMM_AT : at + _COMM_AT + len(name)] = name.replace(*_NAMED)


def comm(printed: bytes) -> str:
    """The name of a thread, of what perf script prints."""
    return printed.replace(_NAMED[1], _NAMED[0]).decode(errors="surrogateescape")


def replace_mapped(data: bytearray, at: int, end: int, *, has_protection: bool) -> None:
    """Replaces the path in a record of memory that was mapped: MMAP2, which ``has_protection``, or MMAP."""
    (misc,) = _MISC.unpack_from(data, at + _MISC_AT)
    begin = at + (_MMAP2_AT if has_protection else _MMAP_AT)
    if misc & _MODES != _USER or end < begin + _FIELD:
        return
    name = _name(data, begin, end)
    protection, flags = _PROTECTION.unpack_from(data, at + _PROTECTION_AT) if has_protection else (0, 0)
    if name.startswith(_MEMORY) or flags & _HUGE:
        size = max(len(name), _FIELD - 1)
        data[begin : begin + size] = ANONYMOUS.ljust(size, b"\0")
        if has_protection:  # perf reads maps of executable memory alone
            _PROTECTION.pack_into(data, at + _PROTECTION_AT, protection & ~_EXECUTABLE, flags & ~_HUGE)
        else:
            _MISC.pack_into(data, at + _MISC_AT, misc | _DATA)
    elif b"\n" in name:
        data[begin : begin + len(name)] = name.replace(b"\n", b"?")


def _name(data: bytearray, begin: int, end: int) -> bytes:
    zero = data.find(0, begin, end)
    return bytes(data[begin : zero if zero >= 0 else end])
