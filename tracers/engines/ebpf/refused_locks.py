"""Requests for locks on files that the kernel has refused, as bpf/file_locks.bpf.c counts them."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from ....converters.model.file_locks import FCNTL, FLOCK, OPEN_FILE, READ, WRITE
from ...base.lock_table import Lock, Refused
from ...kernel.bpfmap import Map
from ...kernel.bpfobject import Link, Object
from ...kernel.kernel_types import kernel_has
from ...kernel.shapes import Shape
from .measures.protocol import Collector
from .measures.registry import has_waits

PROGRAMS = {
    "refused_fcntl_lock": "btf_trace_posix_lock_inode",
    "refused_flock": "btf_trace_flock_lock_inode",
}
"""Programs, with the type of the kernel's tracepoint that each is for, as its type information has it."""
_KEY, _VALUE = struct.Struct("<QqqIIIIII"), struct.Struct("<QQ")
"""struct refused_lock and struct refusals."""
_FLOCK, _OPEN_FILE = 2, 1024
"""FL_FLOCK and FL_OFDLCK of include/linux/filelock.h."""
_F_WRLCK = 1
_END = (1 << 63) - 1
"""OFFSET_MAX: the end of the file, however long it is."""


def wanted(collectors: Iterable[Collector], shape: Shape) -> set[str]:
    """Names of the programs that are of use, and for which the kernel has tracepoints."""
    of_use = not shape.raw and has_waits(collectors)
    return {name for name, type_name in PROGRAMS.items() if of_use and kernel_has(type_name)}


def attached(loaded: Object) -> list[Link]:
    """Links of the programs that were loaded."""
    return [loaded.programs[name].attach() for name in PROGRAMS if loaded.programs[name].is_loaded]


def taken(table: Map) -> list[Refused]:
    """Requests since the last call."""
    return [_parsed(key, value) for key, value in table.take()]


def _parsed(key: bytes, value: bytes) -> Refused:
    inode, first, last, device, pid, flags, access, tid, _ = _KEY.unpack(key)
    kind = FLOCK if flags & _FLOCK else OPEN_FILE if flags & _OPEN_FILE else FCNTL
    end = 0 if last == _END else last
    count, at = _VALUE.unpack(value)
    wish = Lock(kind, WRITE if access == _F_WRLCK else READ, pid, device, inode, first, end)
    return Refused(wish, count, at, tid)
