"""Rights of the process that reads, see `child`."""

from __future__ import annotations

import ctypes
import os
import resource
from collections.abc import Collection

from .lookups import head_of

_SYS_CAPSET = {"x86_64": 126, "aarch64": 91}
_VERSION_3 = 0x20080522
"""_LINUX_CAPABILITY_VERSION_3 of linux/capability.h."""
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38
_SIGKILL = 9
_CHECKPOINT_RESTORE, _SYS_ADMIN = 40, 21
_CAPABILITIES = (2, 19, _SYS_ADMIN, _CHECKPOINT_RESTORE)
"""CAP_DAC_READ_SEARCH; CAP_SYS_PTRACE; for /proc/PID/map_files CAP_CHECKPOINT_RESTORE, or CAP_SYS_ADMIN before 5.9."""
_ADDRESS_SPACE = 1 << 30
"""Bytes of memory that reading may take, beyond what the process has: it may be a copy of a large one."""
_libc = ctypes.CDLL(None, use_errno=True)


def drop_rights() -> None:
    """Keeps what reading takes. Each step as far as it is allowed: the first three need no privilege."""
    _libc.prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)
    most = _size() + _ADDRESS_SPACE
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    _tell_kernel("oom_score_adj", "900")
    keep_rights(_CAPABILITIES, "outside reads")


def keep_rights(wanted: Collection[int], name: str) -> None:
    """Keeps these capabilities, and gives the process a name. CAP_CHECKPOINT_RESTORE is instead of CAP_SYS_ADMIN."""
    _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    os.chdir("/")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _tell_kernel("comm", name)
    kept = _capabilities(wanted)
    if kept is not None and (number := _SYS_CAPSET.get(os.uname().machine)):
        low, high = kept & 0xFFFFFFFF, kept >> 32
        head = (ctypes.c_uint32 * 2)(_VERSION_3, 0)  # of ourselves
        data = (ctypes.c_uint32 * 6)(low, low, 0, high, high, 0)
        _libc.syscall(ctypes.c_long(number), head, data)


def _size() -> int:
    """Bytes of this process's address space; 0 if /proc does not tell."""
    words = (head_of("/proc/self/statm", 1 << 8) or b"0").split()
    return int(words[0]) * resource.getpagesize()


def _tell_kernel(path: str, text: str) -> None:
    try:
        with open(f"/proc/self/{path}", "w") as file:
            file.write(text)
    except OSError:
        pass


def _capabilities(numbers: Collection[int]) -> int | None:
    """Capabilities of ours that stay; None if /proc does not tell."""
    for line in (head_of("/proc/self/status", 1 << 14) or b"").split(b"\n"):
        if line.startswith(b"CapPrm:"):
            ours = int(line[7:], 16)
            wanted = sum(1 << number for number in numbers) & ours
            return wanted & ~(1 << _SYS_ADMIN) if wanted >> _CHECKPOINT_RESTORE & 1 else wanted
    return None
