"""Capabilities of this process: which are there, and how those that a trace does not need are given up.

Numbers: include/uapi/linux/capability.h. A capability set is a bit mask.
"""

from __future__ import annotations

import ctypes
from enum import IntEnum
from typing import NamedTuple

_VERSION_3 = 0x20080522
"""_LINUX_CAPABILITY_VERSION_3: two words of 32 bits per set."""
_CAPBSET_READ, _CAPBSET_DROP, _NO_NEW_PRIVS = 23, 24, 38
"""PR_* of include/uapi/linux/prctl.h."""


class Capability(IntEnum):
    """Capabilities that some command uses."""

    CHOWN = 0
    DAC_OVERRIDE = 1
    DAC_READ_SEARCH = 2
    FOWNER = 3
    KILL = 5
    SETGID = 6
    SETUID = 7
    SETPCAP = 8
    IPC_LOCK = 14
    SYS_MODULE = 16
    SYS_PTRACE = 19
    SYS_ADMIN = 21
    SYS_NICE = 23
    SYS_RESOURCE = 24
    SYSLOG = 34
    PERFMON = 38
    BPF = 39
    CHECKPOINT_RESTORE = 40


_C = Capability
TO_ATTACH = frozenset((_C.BPF, _C.PERFMON))
"""Capabilities with which programs and events are attached, also at files that are mapped while the trace runs."""
DURING = TO_ATTACH | frozenset(
    (
        *(_C.SYS_PTRACE, _C.DAC_READ_SEARCH, _C.CHECKPOINT_RESTORE, _C.SYSLOG),  # what is read of processes, kallsyms
        *(_C.CHOWN, _C.FOWNER, _C.DAC_OVERRIDE),  # writing
        *(_C.SETUID, _C.SETGID, _C.SETPCAP, _C.SYS_ADMIN, _C.KILL),  # helpers: another user, own namespaces, their end
        *(_C.SYS_NICE, _C.SYS_RESOURCE, _C.IPC_LOCK),
    )
)
"""Capabilities that a trace that runs may need: the others are given up once it is attached."""
AFTERWARDS = DURING - TO_ATTACH
"""Capabilities that names and outputs may need when nothing is attached any more."""
COSTS = {
    _C.SYS_PTRACE: "of other users' processes there are no Python functions, and no names of deleted files' functions",
    _C.DAC_READ_SEARCH: "no tracepoints (trace-ioctl, trace-func t:…, the engine bcc), and files that only others may "
    "read have neither names nor unwind tables",
    _C.SYSLOG: "the kernel's functions have no names where kernel.perf_event_paranoid or kptr_restrict hides them",
    _C.IPC_LOCK: "the engine perf cannot have its buffers",
}
"""Loss without each capability, for a user who is not root."""


class Held(NamedTuple):
    """Sets of this thread, as bit masks."""

    effective: int
    permitted: int
    inheritable: int
    bounding: int


def held() -> Held:
    """Capabilities that this thread holds, from /proc/thread-self/status (proc_pid_status(5))."""
    found: dict[str, int] = {}
    with open("/proc/thread-self/status") as file:
        for line in file:
            if line.startswith("Cap"):
                name, _, bits = line.partition(":")
                found[name] = int(bits, 16)
    return Held(*(found.get(f"Cap{name}", 0) for name in ("Eff", "Prm", "Inh", "Bnd")))


def mask(capabilities: frozenset[Capability]) -> int:
    """The set as a bit mask."""
    return sum(1 << capability for capability in capabilities)


def give_up_all_but(kept: frozenset[Capability]) -> None:
    """Gives up the capabilities of this thread, and of all that it starts: neither it nor a program that it executes
    gets others again.

    Other threads that exist keep theirs. Where the kernel refuses, which it does for a bounding set without
    CAP_SETPCAP, what is held stays less than it was.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    before, wanted = held(), mask(kept)
    _control(libc, _NO_NEW_PRIVS, 1)
    if before.effective & 1 << _C.SETPCAP:
        for number in range(before.bounding.bit_length()):
            if before.bounding & ~wanted & 1 << number:
                _control(libc, _CAPBSET_DROP, number)
    sets = tuple(each & wanted for each in (before.effective, before.permitted, before.inheritable))
    if sets != before[:3]:
        header = (ctypes.c_uint32 * 2)(_VERSION_3, 0)
        words = [each >> shift & 0xFFFFFFFF for shift in (0, 32) for each in sets]
        libc.capset(header, (ctypes.c_uint32 * 6)(*words))


def _control(libc: ctypes.CDLL, option: int, value: int) -> None:
    libc.prctl(ctypes.c_int(option), *map(ctypes.c_ulong, (value, 0, 0, 0)))
