"""BPF programs that were compiled elsewhere, and maps for them: loaded without libbpf's object files."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Mapping
from enum import IntEnum

from ..holder.links import bpf
from .libbpf import BpfError, check, library

_INSTRUCTION = struct.Struct("<BBhi")
"""struct bpf_insn: code, registers, off, imm."""
_LOAD_WIDE, _BY_FD = 0x18, 1
"""BPF_LD | BPF_IMM | BPF_DW; as its source register, BPF_PSEUDO_MAP_FD."""
_PROG_LOAD = 5
_LOAD = struct.Struct("=IIQQIIQII16sII")
"""Arguments of BPF_PROG_LOAD, as in uprobes.py."""
_LOG = 1 << 16


class Kind(IntEnum):
    """enum bpf_map_type of include/uapi/linux/bpf.h."""

    HASH = 1
    ARRAY = 2
    PROGRAMS = 3
    PERCPU_ARRAY = 6
    LRU_HASH = 9
    RINGBUF = 27


class Program(IntEnum):
    """enum bpf_prog_type of include/uapi/linux/bpf.h."""

    KPROBE = 2
    TRACEPOINT = 5
    PERF_EVENT = 7


class OwnMap:
    """A map that no object file declares. Closed by `close`; the kernel may go on using it."""

    def __init__(self, kind: Kind, name: str, key_size: int, value_size: int, entries: int) -> None:
        """BpfError when the kernel has no room."""
        created = library().bpf_map_create(kind, name.encode(), key_size, value_size, entries, None)
        self._fd: int = check(created, f"map {name}")
        self.name, self.key_size, self.value_size, self._entries = name, key_size, value_size, entries

    @property
    def fd(self) -> int:
        """-1: closed."""
        return self._fd

    @property
    def max_entries(self) -> int:
        return self._entries

    def lookup(self, key: bytes) -> bytes | None:
        """The value, or None."""
        value = ctypes.create_string_buffer(self.value_size)
        return value.raw if library().bpf_map_lookup_elem(self.fd, key, value) == 0 else None

    def items(self) -> list[tuple[bytes, bytes]]:
        """All (key, value) of a hash. Programs may add others meanwhile, and some of these are then missing."""
        keys = ctypes.create_string_buffer(self.key_size * self.max_entries)
        values = ctypes.create_string_buffer(self.value_size * self.max_entries)
        cursor = ctypes.create_string_buffer(max(self.key_size, 8))
        count = ctypes.c_uint32(self.max_entries)
        error = library().bpf_map_lookup_batch(self.fd, None, cursor, keys, values, ctypes.byref(count), None)
        if error != -errno.ENOENT:  # that is the end of the hash
            check(error, f"map {self.name}")
        cut = [
            [data.raw[i * size : (i + 1) * size] for i in range(count.value)]
            for data, size in ((keys, self.key_size), (values, self.value_size))
        ]
        return list(zip(*cut, strict=True))

    def update(self, key: bytes, value: bytes) -> None:
        """BpfError."""
        check(library().bpf_map_update_elem(self.fd, key, value, 0), f"map {self.name}")

    def close(self) -> None:
        """Closes the descriptor."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


def with_maps(code: bytes, maps: Mapping[int, int]) -> bytes:
    """The instructions, with descriptors in place of the maps' numbers. KeyError for a number without one."""
    made, at = bytearray(code), 0
    while at < len(made):
        operation, registers, offset, number = _INSTRUCTION.unpack_from(made, at)
        if operation == _LOAD_WIDE:
            if registers >> 4 == _BY_FD:
                _INSTRUCTION.pack_into(made, at, operation, registers, offset, maps[number])
            at += _INSTRUCTION.size
        at += _INSTRUCTION.size
    return bytes(made)


def load(code: bytes, name: str, attach_type: int = 0, kind: Program = Program.KPROBE) -> int:
    """Loads a program; returns its descriptor. BpfError, with the verifier's log, if the kernel refuses.

    ``attach_type`` of one for uprobes.
    """
    try:
        return _load(code, name, attach_type, kind, None)
    except OSError as error:
        log = ctypes.create_string_buffer(_LOG)
        try:
            return _load(code, name, attach_type, kind, log)
        except OSError:
            text = log.value.decode("utf-8", "replace")
            raise BpfError(f"the kernel refuses {name}", error.errno or 0, [text]) from None


def _load(code: bytes, name: str, attach_type: int, kind: Program, log: ctypes.Array[ctypes.c_char] | None) -> int:
    instructions = ctypes.create_string_buffer(code, len(code))
    licence = ctypes.create_string_buffer(b"GPL")
    count = len(code) // _INSTRUCTION.size
    where = ctypes.addressof(instructions), ctypes.addressof(licence)
    logged = (1, _LOG, ctypes.addressof(log)) if log is not None else (0, 0, 0)
    head = _LOAD.pack(kind, count, *where, *logged, 0, 0, name.encode()[:15], 0, attach_type)
    return bpf(_PROG_LOAD, head)
