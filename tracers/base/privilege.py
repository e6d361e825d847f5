"""Checks whether this process may trace."""

from __future__ import annotations

import os
import sys

from ...converters.base.errors import StallscopeError
from . import procfs

_CAP_SYS_ADMIN, _CAP_PERFMON, _CAP_BPF = 21, 38, 39
"""Bit numbers from include/uapi/linux/capability.h; the last two exist since 5.8."""


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


def require() -> None:
    """StallscopeError unless `allowed`."""
    if not allowed():
        command = os.path.basename(sys.argv[0]) or "trace-offcpu"
        what = "root" if os.geteuid() else "CAP_SYS_ADMIN (or CAP_BPF and CAP_PERFMON), which this root lacks"
        raise StallscopeError(f"tracing needs {what}", f"run it as `sudo {command} …`; in a container, --privileged")


def require_host_pids() -> None:
    """StallscopeError unless process ids are the host's: otherwise the wrong processes would be traced."""
    if not procfs.in_host_pid_namespace():
        raise StallscopeError(
            "process ids here are a container's own, not those that the kernel reports",
            "run it on the host, or in a container with --pid=host",
        )
