"""Checks whether this process may trace."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import sys

from ...converters.base.errors import StallscopeError
from . import procfs

_CAP_SYS_PTRACE, _CAP_SYS_ADMIN, _CAP_PERFMON, _CAP_BPF = 19, 21, 38, 39
"""Bit numbers from include/uapi/linux/capability.h; the last two exist since 5.8."""

_SYS_BPF = {"x86_64": 321, "aarch64": 280}


def effective_capabilities() -> int:
    """CapEff from /proc/self/status, as a bit mask."""
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith("CapEff:"):
                return int(line.split()[1], 16)
    return 0


def allowed() -> bool:
    """Whether the capabilities suffice to load and attach tracing programs."""
    capabilities = effective_capabilities()
    both = 1 << _CAP_BPF | 1 << _CAP_PERFMON
    return bool(capabilities & 1 << _CAP_SYS_ADMIN) or capabilities & both == both


def may_measure() -> bool:
    """Whether perf may measure everything, whatever kernel.perf_event_paranoid says."""
    return bool(effective_capabilities() & (1 << _CAP_SYS_ADMIN | 1 << _CAP_PERFMON))


def may_trace() -> bool:
    """Whether ptrace(2) may be used on any process."""
    return bool(effective_capabilities() & 1 << _CAP_SYS_PTRACE)


def require() -> None:
    """StallscopeError unless `allowed`."""
    if not allowed():
        command = os.path.basename(sys.argv[0]) or "trace-offcpu"
        lacking = " and ".join(_lacking())
        what = "root, or CAP_BPF and CAP_PERFMON" if os.geteuid() else "CAP_SYS_ADMIN (or CAP_BPF and CAP_PERFMON)"
        raise StallscopeError(
            f"tracing needs {what}: {'this root' if not os.geteuid() else 'this user'} lacks {lacking}",
            f"run it as `sudo {command} …`; in a container, --privileged; without root: docs/privileges.md",
        )


def _lacking() -> list[str]:
    """Names of the two that loading and attaching need, where they are not there."""
    capabilities = effective_capabilities()
    needed = {"CAP_BPF": _CAP_BPF, "CAP_PERFMON": _CAP_PERFMON}
    return [name for name, number in needed.items() if not capabilities & 1 << number]


def has_bpf() -> bool:
    """Whether the kernel has bpf(2) at all: built without it, it answers ENOSYS. True where that cannot be asked."""
    number = _SYS_BPF.get(platform.machine())
    if number is None:
        return True
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall(ctypes.c_long(number), ctypes.c_int(-1), None, ctypes.c_uint(0))
    return ctypes.get_errno() != errno.ENOSYS


def require_bpf() -> None:
    """StallscopeError unless `has_bpf`."""
    if not has_bpf():
        raise StallscopeError(
            "this kernel has no BPF: it has no bpf(2)",
            "use --engine stap or --engine perf (trace-doctor lists engines)",
        )


def require_host_pids() -> None:
    """StallscopeError unless process ids and clocks are the host's: otherwise the wrong processes would be traced, and
    times would be wrong."""
    if not procfs.has_host_clocks():
        raise StallscopeError(
            "the clocks here are those of a time namespace, not those that the kernel reports",
            "run it outside of the time namespace: nsenter --time=/proc/1/ns/time",
        )
    if not procfs.in_host_pid_namespace():
        raise StallscopeError(
            "process ids here are a container's own, not those that the kernel reports",
            "run it on the host, or in a container with --pid=host",
        )
