"""Counters and clocks of the kernel, through perf_event_open(2). Numbers: include/uapi/linux/perf_event.h."""

from __future__ import annotations

import ctypes
import os
import platform

_SYSCALL = {"x86_64": 298, "aarch64": 241}
_FLAG_FD_CLOEXEC = 1 << 3

TYPE_HARDWARE, TYPE_SOFTWARE, TYPE_TRACEPOINT, TYPE_CACHE = 0, 1, 2, 3
FREQUENCY = 1 << 10
"""Bit of the flag word of struct perf_event_attr: ``sample_period`` is a frequency."""


class Attr(ctypes.Structure):
    """struct perf_event_attr, PERF_ATTR_SIZE_VER5 (112 bytes)."""

    _fields_ = [
        ("type", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
        ("config", ctypes.c_uint64),
        ("sample_period", ctypes.c_uint64),
        ("sample_type", ctypes.c_uint64),
        ("read_format", ctypes.c_uint64),
        ("flags", ctypes.c_uint64),
        ("wakeup_watermark", ctypes.c_uint32),
        ("bp_type", ctypes.c_uint32),
        ("bp_addr", ctypes.c_uint64),
        ("bp_len", ctypes.c_uint64),
        ("branch_sample_type", ctypes.c_uint64),
        ("sample_regs_user", ctypes.c_uint64),
        ("sample_stack_user", ctypes.c_uint32),
        ("clockid", ctypes.c_int32),
        ("sample_regs_intr", ctypes.c_uint64),
        ("aux_watermark", ctypes.c_uint32),
        ("sample_max_stack", ctypes.c_uint16),
        ("_reserved", ctypes.c_uint16),
    ]


def open_event(attr: Attr, cpu: int, tid: int = -1) -> int:
    """A file descriptor for the event on one CPU, for all processes; or of one thread, on one CPU or all (-1). OSError
    when the kernel refuses."""
    attr.size = ctypes.sizeof(Attr)
    syscall = ctypes.CDLL(None, use_errno=True).syscall
    fd = int(syscall(_SYSCALL[platform.machine()], ctypes.byref(attr), tid, cpu, -1, _FLAG_FD_CLOEXEC))
    if fd < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return fd


def online_cpus() -> list[int]:
    """Numbers of the CPUs that run."""
    return _cpus("online")


def possible_cpus() -> int:
    """All numbers of CPUs are below this one."""
    return max(_cpus("possible")) + 1


def _cpus(which: str) -> list[int]:
    with open(f"/sys/devices/system/cpu/{which}") as file:
        text = file.read().strip()
    cpus: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        cpus.extend(range(int(first), int(last or first) + 1))
    return cpus
