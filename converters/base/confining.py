"""Takes rights away from this process: for helpers that read what others have written.

A helper in Python calls `confine` when it has imported all that it needs, since the files of its interpreter may be
closed to ordinary users. Run as a program, by its path, it confines itself and executes another one, where there is no
setpriv(1). Standard library only.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NamedTuple

NOBODY_ID = 65534
"""The kernel's overflow uid and gid: no file and no folder is theirs."""
_PR_SET_PDEATHSIG, _SIGKILL = 1, 9
_PR_CAPBSET_READ, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 23, 24, 38
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
"""prctl.h."""
_CLONE_NEWIPC, _CLONE_NEWNET = 0x08000000, 0x40000000
"""sched.h."""
_VERSION_3 = 0x20080522
"""_LINUX_CAPABILITY_VERSION_3 of capability.h: two words of 32 bits for each set."""
SETPCAP, SYS_ADMIN = 8, 21
"""Bit numbers of capability.h."""


class Rights(NamedTuple):
    """User, group and capabilities of a helper. Whoever starts it without being root gives it its own."""

    uid: int = -1
    """-1: ours, and all others here say nothing."""
    gid: int = -1
    keeps: tuple[str, ...] = ()
    """Names of capabilities, as setpriv(1) has them, that stay."""
    groups: tuple[int, ...] = ()
    """Ids of further groups."""
    has_network: bool = False
    """Whether the helper keeps the network; else it gets one of its own, where there is nobody to talk to."""

    @property
    def are_ours(self) -> bool:
        return self.uid < 0


OURS = Rights()
NOBODY = Rights(NOBODY_ID, NOBODY_ID)
"""An ordinary user without anything: for what reads untrusted bytes from descriptors that it is given."""


def capabilities(name: str = "CapEff") -> int:
    """A set of this process as a bit mask; 0 if it cannot be read."""
    try:
        with open("/proc/self/status") as file:
            return next(int(line.split()[1], 16) for line in file if line.startswith(f"{name}:"))
    except (OSError, StopIteration, ValueError):
        return 0


def can_become(rights: Rights) -> bool:
    """Whether this process is root where these ids exist. In a container without them, root is an ordinary user."""
    if os.geteuid() != 0:
        return False
    pairs = ("/proc/self/uid_map", rights.uid), ("/proc/self/gid_map", rights.gid)
    return all(_is_mapped(path, number) for path, number in pairs)


def _is_mapped(path: str, number: int) -> bool:
    try:
        with open(path) as file:
            rows = [tuple(map(int, line.split())) for line in file]
    except (OSError, ValueError):
        return True
    return any(begin <= number < begin + count for begin, _, count in rows)


def confine(rights: Rights = NOBODY) -> None:
    """Gives up everything that ``rights`` do not have, for good. OSError if that cannot be done.

    Namespaces of its own for network and System V IPC are for where the kernel gives them. Afterwards the process may
    not open what is in /proc/self: the kernel protects what was privileged.
    """
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)

    def control(*arguments: int) -> None:
        if libc.prctl(*map(ctypes.c_ulong, (*arguments, *[0] * (5 - len(arguments))))) < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))

    becomes = can_become(rights)
    if becomes and not rights.has_network:
        libc.unshare(_CLONE_NEWNET | _CLONE_NEWIPC)
    if capabilities() & 1 << SETPCAP:
        number = 0
        while libc.prctl(_PR_CAPBSET_READ, ctypes.c_ulong(number), 0, 0, 0) >= 0:
            control(_PR_CAPBSET_DROP, number)
            number += 1
    if becomes:
        os.setgroups(rights.groups)
        os.setresgid(rights.gid, rights.gid, rights.gid)
        os.setresuid(rights.uid, rights.uid, rights.uid)
    control(_PR_SET_NO_NEW_PRIVS, 1)
    libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)  # kernels before 4.3 have none
    header, none = (ctypes.c_uint32 * 2)(_VERSION_3, 0), (ctypes.c_uint32 * 6)()
    if libc.capset(header, none) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _end_with_parent() -> None:
    """Asks the kernel to kill what this process executes when the thread that started it has ended."""
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, _SIGKILL)


def main(arguments: Sequence[str]) -> None:
    """``UID,GID,NETWORK`` and more groups, limits as prlimit(1) takes them, ``--``, the command, which is executed."""
    import resource

    words = arguments[: arguments.index("--")]
    command = arguments[len(words) + 1 :]
    uid, gid, network, *groups = map(int, words[0].split(","))
    try:
        for word in words[1:]:
            name, _, most = word.removeprefix("--").partition("=")
            resource.setrlimit(getattr(resource, f"RLIMIT_{name.upper()}"), (int(most), int(most)))
        confine(Rights(uid, gid, groups=tuple(groups), has_network=bool(network)))
        _end_with_parent()
        os.execv(command[0], list(command))
    except OSError as error:
        sys.exit(f"{command[0]} is not started: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
