"""Reads of a process, and how its files are found: in the process that reads, see `child`."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable
from typing import NamedTuple

SHARED = 4 << 20
"""Bytes of the shared memory for results."""
ABOUT = 16
"""Bytes behind it: which process is being read, and for which user."""
MOST_TEXT = 16 << 20
"""Bytes of a /proc/PID/maps that are read."""
PIECE = 1 << 20

PATH_FLAGS = os.O_PATH | os.O_CLOEXEC
_SYS_OPENAT2 = 437  # the same on all architectures; openat2(2)
_RESOLVE = 0x10 | 0x02
"""RESOLVE_IN_ROOT, RESOLVE_NO_MAGICLINKS."""


class Place(NamedTuple):
    """Place of a mapping: addresses, where they begin in the file, which is (dev, inode); its path as maps has it."""

    start: int
    end: int
    offset: int
    dev: int
    inode: int
    name: bytes


class _OpenHow(ctypes.Structure):
    _fields_ = [("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64)]


_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def head_of(path: str, most: int) -> bytes | None:
    """The first bytes of a file of /proc; None without it."""
    try:
        with open(path, "rb", buffering=0) as file:
            parts, left = [], most
            while left > 0 and (part := file.read(min(left, PIECE))):
                parts.append(part)
                left -= len(part)
            return b"".join(parts)
    except OSError:
        return None


def maps_of(pid: int, *, only_code: bool, below: str = "") -> tuple[bytes, bool]:
    """Lines of a process's maps, as many as there is room for, and whether these are all."""
    kept: list[bytes] = []
    read = size = 0
    rest = b""
    with open(f"/proc/{pid}/{below}maps", "rb", buffering=0) as file:
        while read < MOST_TEXT and size < SHARED:
            data = file.read(PIECE)
            if not data:
                return b"".join(kept), True
            read += len(data)
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                # proc(5): start-end perms …; the third letter of perms is x or -.
                if not only_code or line[line.find(b" ") + 3 : line.find(b" ") + 4] == b"x":
                    size += len(line) + 1
                    if size > SHARED:
                        return b"".join(kept), False
                    kept.append(line + b"\n")
    return b"".join(kept), False


def places_of(pid: int, place: Place) -> list[Place]:
    """Places where the process maps by now what it had mapped there: the kernel splits and merges mappings."""
    found: list[Place] = []
    try:
        text, _ = maps_of(pid, only_code=True)
    except OSError:
        return found
    for line in text.removesuffix(b"\n").split(b"\n") if text else ():  # a path can have any other end of a line
        words = line.split(None, 5)
        start, end = (int(word, 16) for word in words[0].split(b"-"))
        major, minor = (int(word, 16) for word in words[3].split(b":"))
        if not (start < place.end and place.start < end and start - int(words[2], 16) == place.start - place.offset):
            continue
        if not place.inode or (os.makedev(major, minor), int(words[4])) == (place.dev, place.inode):
            found.append(place._replace(start=start, end=end))
    return found


def _nothing(_: object) -> None: ...


def linked(pid: int, place: Place, look: Callable[[int], None] = _nothing) -> int | None:
    """An O_PATH descriptor of the file that a process maps there, if it is this one: also a deleted one, or one of
    another mount namespace. ``look`` is called with it before its file system is asked; OSError of it goes on."""
    link = b"/proc/%d/map_files/%x-%x" % (pid, place.start, place.end)
    try:
        fd = os.open(link, PATH_FLAGS)
    except OSError:
        return None
    try:
        look(fd)
    except OSError:
        os.close(fd)
        raise
    try:
        status = os.fstat(fd)
        # overlayfs and btrfs show different device and inode numbers in maps than in stat.
        if not place.inode or status.st_ino == place.inode:
            return fd
        if status.st_dev != place.dev and os.readlink(link) == place.name:
            return fd
    except OSError:
        pass
    os.close(fd)
    return None


def open_place(
    pid: int,
    place: Place,
    root: list[int],
    look: Callable[[int], None] = _nothing,
    look_at: Callable[[bytes], None] = _nothing,
) -> int:
    """An O_PATH descriptor of the mapped file, by its mapping or by its path. OSError without it. ``look`` and
    ``look_at`` are called with an open file or a path before its file system is asked."""
    fd = linked(pid, place, look)
    if fd is None:
        for now in places_of(pid, place):
            fd = fd if fd is not None else linked(pid, now, look)
    if fd is not None:
        return fd
    path = place.name.removesuffix(b" (deleted)")
    look_at(path)
    fd = open_in(root, path, 0)
    status = os.fstat(fd)
    if place.inode and (status.st_dev, status.st_ino) != (place.dev, place.inode):
        os.close(fd)
        raise OSError(errno.ESTALE, "replaced since it was mapped")
    return fd


def open_in(fds: list[int], path: bytes, flags: int) -> int:
    """An O_PATH descriptor of an absolute path, links included, inside the root that is given; else inside ours."""
    if b"\0" in path:
        raise OSError(errno.EINVAL, "NUL in path")
    if not fds:
        return os.open(path, PATH_FLAGS | flags)
    how = _OpenHow(PATH_FLAGS | flags, 0, _RESOLVE)
    for _ in range(8):  # EAGAIN: something was renamed meanwhile
        size = ctypes.c_size_t(ctypes.sizeof(how))
        fd = _libc.syscall(ctypes.c_long(_SYS_OPENAT2), ctypes.c_int(fds[0]), path, ctypes.byref(how), size)
        if fd >= 0:
            return int(fd)
        if ctypes.get_errno() != errno.EAGAIN:
            break
    code = ctypes.get_errno()
    if code not in (errno.ENOSYS, errno.EPERM):
        raise OSError(code, os.strerror(code))
    # Before Linux 5.6 an absolute link resolves in our root: callers check which file they got.
    return os.open(path.lstrip(b"/") or b".", PATH_FLAGS | flags, dir_fd=fds[0])
