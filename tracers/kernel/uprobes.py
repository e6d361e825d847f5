"""Programs at functions of files: uprobes, in the best way that the kernel has.

A session link runs one program at the entry and at the return of many functions (6.13); a multi link runs one at either
(6.6); older kernels need a perf event for each. libbpf 1.1 makes only the last kind. Layouts: union bpf_attr of
include/uapi/linux/bpf.h.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Sequence
from enum import Enum

from ..holder.links import Place, bpf, link_many

_PROG_LOAD = 5
_KPROBE = 2
"""BPF_PROG_TYPE_KPROBE."""
_MULTI, _SESSION = 48, 57
"""BPF_TRACE_UPROBE_MULTI and BPF_TRACE_UPROBE_SESSION."""
_LOAD_HEAD = struct.Struct("=IIQQIIQII16sII")
"""prog_type, insn_cnt, insns, license, log_level, log_size, log_buf, kern_version, prog_flags, prog_name, prog_ifindex,
expected_attach_type."""
_RETURN_ZERO = struct.pack("=QQ", 0x00000000000000B7, 0x0000000000000095)
"""r0 = 0; exit."""


class Way(Enum):
    """Ways in which programs get to functions: its name for the user, and the attach type with which they are
    loaded."""

    SESSION = "session links", _SESSION
    MULTI = "multi links", _MULTI
    SINGLE = "one event per function", 0

    @property
    def title(self) -> str:
        return self.value[0]

    @property
    def attach_type(self) -> int:
        return self.value[1]


def best_way(ways: Sequence[Way] = (Way.SESSION, Way.MULTI)) -> Way:
    """The first one that the kernel has, else one event per function. Asks it: it refuses a link for a folder in
    another way than one whose type it does not know."""
    for way in ways:
        try:
            program = _load_nothing(way.attach_type)
        except OSError:
            continue
        try:
            link_many(program, way.attach_type, b"/", [Place(0, 0)], 0)
        except OSError as error:
            if error.errno == errno.EBADF:
                return way
        finally:
            os.close(program)
    return Way.SINGLE


def _load_nothing(attach_type: int) -> int:
    """Loads a program that does nothing; returns its descriptor. OSError."""
    code = ctypes.create_string_buffer(_RETURN_ZERO)
    text = ctypes.create_string_buffer(b"GPL")
    where = ctypes.addressof(code), ctypes.addressof(text)
    return bpf(_PROG_LOAD, _LOAD_HEAD.pack(_KPROBE, 2, *where, 0, 0, 0, 0, 0, b"", 0, attach_type))
