"""tracefs, which tells the kernel's tracepoints: the host's, or else a mount of our own that is in no mount namespace.

fsopen(2) and fsmount(2) (5.2) give a descriptor of a file system that is mounted nowhere: no list of mounts has it, no
other process sees it, and it goes with the descriptor. Older kernels, and seccomp profiles that do not know these
calls: a child makes itself a mount namespace, mounts tracefs there, and hands over a descriptor of its root.
A tracefs has one superblock: before Linux 5.18 a second mount gives its root the default mode, 0700, where the first
mount had asked for another. So it is not mounted where the host's can be used.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
from pathlib import Path

from ...converters.base.errors import StallscopeError

PLACES = Path("/sys/kernel/tracing"), Path("/sys/kernel/debug/tracing")
_FSOPEN, _FSCONFIG, _FSMOUNT = 430, 431, 432
"""Numbers of system calls, the same on all architectures: include/uapi/asm-generic/unistd.h."""
_CLOEXEC, _CREATE = 1, 6
"""FSOPEN_CLOEXEC and FSMOUNT_CLOEXEC; FSCONFIG_CMD_CREATE."""
_READ_ONLY, _NOSUID, _NODEV, _NOEXEC = 1, 2, 4, 8
"""MS_* and MOUNT_ATTR_*, which agree in these."""
_SAFE = _READ_ONLY | _NOSUID | _NODEV | _NOEXEC
_PRIVATE_ALL = 1 << 14 | 1 << 18
"""MS_REC | MS_PRIVATE."""
_NEW_MOUNTS = 0x20000
"""CLONE_NEWNS."""
_ROOM = b"/sys"
"""Any folder that exists: only the child sees what is mounted on it."""
_MOUNT = "mount -t tracefs tracefs /sys/kernel/tracing"

_own: int | None = None
"""Descriptor of our own mount's root, until the process ends."""


def folder() -> Path:
    """Root of tracefs: a path that holds in this process. StallscopeError if there is none for this user."""
    denied = False
    for place in PLACES:
        try:
            os.stat(place / "events/sched")
            return place
        except PermissionError:
            denied = True
        except OSError:
            continue
    if denied:
        raise StallscopeError(
            "this user may not read tracefs, where the kernel's tracepoints are",
            "run it as root, or give CAP_DAC_READ_SEARCH (docs/privileges.md)",
        )
    return Path(f"/proc/self/fd/{_own_mount()}")


def own_mount() -> int | None:
    """The descriptor behind `folder`, if that is a mount of our own; a child that gets it has the same path."""
    return _own


def read(name: str) -> str:
    """The text of a file in it, such as ``events/sched/sched_switch/id``. OSError, StallscopeError like `folder`."""
    return (folder() / name).read_text()


def number_of(tracepoint: str) -> int:
    """Number by which perf_event_open(2) knows ``system:event``. OSError, StallscopeError like `folder`."""
    return int(read(f"events/{tracepoint.replace(':', '/')}/id"))


def _own_mount() -> int:
    global _own
    if _own is None:
        try:
            _own = _detached()
        except OSError as first:
            try:
                _own = _from_a_child()
            except OSError:
                raise _refused(first) from None
    return _own


def _refused(error: OSError) -> StallscopeError:
    if error.errno == errno.ENODEV:
        return StallscopeError("this kernel has no tracefs", "use a kernel with CONFIG_FTRACE=y")
    return StallscopeError(
        f"tracefs is not mounted, and this user cannot mount it for this trace alone: {error.strerror}",
        f"run it as root, or give CAP_SYS_ADMIN, or once: {_MOUNT}",
    )


def _detached() -> int:
    """A mount in no namespace. OSError."""
    context = _call(_FSOPEN, b"tracefs", ctypes.c_uint(_CLOEXEC))
    try:
        _call(_FSCONFIG, ctypes.c_int(context), ctypes.c_uint(_CREATE), None, None, ctypes.c_int(0))
        return _call(_FSMOUNT, ctypes.c_int(context), ctypes.c_uint(_CLOEXEC), ctypes.c_uint(_SAFE))
    finally:
        os.close(context)


def _from_a_child() -> int:
    """A mount in the namespace of a child, which has ended. OSError."""
    import socket

    here, there = socket.socketpair()
    with here, there:
        pid = os.fork()
        if pid == 0:
            status = errno.EIO
            try:
                _mount_privately()
                root = os.open(_ROOM, os.O_PATH | os.O_DIRECTORY)
                socket.send_fds(there, [b"!"], [root])
                status = 0
            except OSError as error:
                status = error.errno or errno.EIO
            finally:
                os._exit(min(status, 255))
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if status:
            raise OSError(max(status, 0) or errno.EIO, os.strerror(max(status, 0) or errno.EIO))
        _, (root, *_), _, _ = socket.recv_fds(here, 1, 1)
    os.set_inheritable(root, False)
    return root


def _mount_privately() -> None:
    """Mounts tracefs in a child: nothing of it reaches another namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    _check(libc.unshare(ctypes.c_int(_NEW_MOUNTS)))
    _check(libc.mount(b"none", b"/", None, ctypes.c_ulong(_PRIVATE_ALL), None))
    _check(libc.mount(b"tracefs", _ROOM, b"tracefs", ctypes.c_ulong(_SAFE), None))


def _call(number: int, *arguments: object) -> int:
    if platform.machine() not in ("x86_64", "aarch64"):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    return _check(call(ctypes.c_long(number), *arguments))


def _check(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(result)
