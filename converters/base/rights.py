"""The user behind sudo, and what he may do: root writes files for him with his rights, so that the kernel decides.

The rights by which the kernel judges file accesses are those of a thread (setfsuid(2), credentials(7)). A thread of
its own takes those of the user and ends with them, so that no other code runs with mixed rights.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple, TypeVar

_T = TypeVar("_T")
_HIGHEST = 2**32 - 2
"""-1 means "unchanged" to chown(2) and setfsuid(2)."""
_SETGROUPS = {"x86_64": 116, "aarch64": 159}
"""Number of the system call setgroups, by architecture (arch/x86/entry/syscalls/syscall_64.tbl,
include/uapi/asm-generic/unistd.h in Linux): the C library's function would set the groups of all threads."""


class Owner(NamedTuple):
    """User for whom root writes a file."""

    uid: int
    gid: int


def sudo_owner() -> Owner | None:
    """The user behind sudo (SUDO_UID, SUDO_GID); None when not root, not under sudo, when root called it, or when the
    variables are not ids."""
    if os.geteuid() != 0:
        return None
    ids = [os.environ.get(name, "") for name in ("SUDO_UID", "SUDO_GID")]
    if not all(text.isascii() and text.isdigit() for text in ids):
        return None
    uid, gid = map(int, ids)
    return Owner(uid, gid) if 0 < uid <= _HIGHEST and gid <= _HIGHEST else None


def has_root_shell() -> bool:
    """Whether sudo started another program than a command of ours: a shell, in which the user is root anyway. What
    sudo started is in SUDO_COMMAND (sudo(8)); where that is missing, it was us."""
    words = os.environ.get("SUDO_COMMAND", "").split(" ")
    return bool(words[0]) and not os.path.basename(words[0]).startswith("trace-")


def with_rights_of(owner: Owner, function: Callable[[], _T]) -> _T:
    """Returns or raises what ``function`` does, called with the user's rights to files. RuntimeError where they cannot
    be taken."""
    import threading

    results: list[_T] = []
    failures: list[BaseException] = []

    def call() -> None:
        try:
            _take(owner)
            results.append(function())
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    try:
        thread.join()
    finally:  # after Ctrl-C nothing goes on unseen
        thread.join()
    if failures:
        raise failures[0]
    return results[0]


def _take(owner: Owner) -> None:
    """Makes the calling thread access files as the user. The kernel takes root's capabilities away."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    groups = _groups(owner)
    number = _SETGROUPS.get(os.uname().machine)
    if number is None or libc.syscall(number, len(groups), (ctypes.c_uint32 * len(groups))(*groups)):
        raise RuntimeError("the groups of a thread cannot be set")
    for function, wanted in ((libc.setfsgid, owner.gid), (libc.setfsuid, owner.uid)):
        function.argtypes = (ctypes.c_uint32,)
        function(wanted)
        if function(_HIGHEST + 1) & 0xFFFFFFFF != wanted:
            raise RuntimeError("the rights of a thread cannot be set")


def _groups(owner: Owner) -> list[int]:
    """The user's groups, at most as many as the kernel takes (NGROUPS_MAX)."""
    import pwd

    try:
        return os.getgrouplist(pwd.getpwuid(owner.uid).pw_name, owner.gid)[: 1 << 16]
    except (KeyError, OSError):
        return [owner.gid]
