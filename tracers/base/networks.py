"""Network namespaces: sock_diag(7) in that of any process, and one process in each of them."""

from __future__ import annotations

import ctypes
import os
import socket
import threading
from collections.abc import Iterable

_NETLINK_SOCK_DIAG = 4
"""include/uapi/linux/netlink.h."""
_CLONE_NEWNET = 0x40000000
"""include/uapi/linux/sched.h."""


def namespace_of(pid: int) -> int:
    """The inode of a process's network namespace; 0 if it has ended, or may not be looked at."""
    try:
        return os.stat(f"/proc/{pid}/ns/net").st_ino
    except OSError:
        return 0


def diagnoses(pid: int) -> socket.socket:
    """A socket that asks for the sockets of a process's network namespace. OSError: it has ended, or that may not be.

    A socket keeps the namespace that it was made in. In another one than ours it is made by a thread that ends then,
    so that no other thread is ever elsewhere. The caller closes it soon: until then the namespace stays.
    """
    if namespace_of(pid) == namespace_of(os.getpid()):
        return _socket()
    found: list[socket.socket | OSError] = []
    namespace = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        thread = threading.Thread(target=_elsewhere, args=(namespace, found))
        thread.start()
        thread.join()
    finally:
        os.close(namespace)
    (made,) = found
    if isinstance(made, OSError):
        raise made
    return made


def _elsewhere(namespace: int, found: list[socket.socket | OSError]) -> None:
    try:
        if ctypes.CDLL(None, use_errno=True).setns(namespace, _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        found.append(_socket())
    except OSError as error:
        found.append(error)


def _socket() -> socket.socket:
    return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_SOCK_DIAG)


def one_of_each(pids: Iterable[int], most: int) -> dict[int, int]:
    """A process of each network namespace, by its inode; of at most so many."""
    found: dict[int, int] = {}
    for pid in pids:
        if len(found) >= most:
            break
        if number := namespace_of(pid):
            found.setdefault(number, pid)
    return found
