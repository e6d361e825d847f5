"""Opens exactly the file that a process has mapped, in the process's root and without side effects.

Every path here comes from the traced process, so it may name a device, a pipe or a link that leads out of a
container. A file is first opened with O_PATH, which has no side effects, and checked; only a regular file that proves
to be the mapped one is opened for reading.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import stat
import time
from typing import Any

from .elf import ElfError, ElfFile, FileSource
from .maps import Mapping, read_maps

_PATH_FLAGS = os.O_PATH | os.O_CLOEXEC
_READ_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_CTIME_GRAIN_NS = 10_000_000
"""File times are those of the last tick (HZ >= 100)."""

_SYS_OPENAT2 = 437  # the same on all architectures; openat2(2)
_RESOLVE_NO_MAGICLINKS, _RESOLVE_IN_ROOT = 0x02, 0x10


class NotThisFile(OSError):
    """The file at the path is not the mapped one."""


class Root:
    """A process's root directory, held open: paths, links included, are resolved inside it.

    ``fd`` None is our own root.
    """

    def __init__(self, fd: int | None) -> None:
        self._fd = fd

    def open_path(self, path: str, flags: int = 0) -> int:
        """An O_PATH descriptor of an absolute path. OSError when there is none."""
        if self._fd is None:
            return os.open(path, _PATH_FLAGS | flags)
        try:
            return _openat2(self._fd, path, _PATH_FLAGS | flags, _RESOLVE_IN_ROOT | _RESOLVE_NO_MAGICLINKS)
        except OSError as error:
            if error.errno not in (errno.ENOSYS, errno.EPERM):
                raise
        # Before Linux 5.6 an absolute link resolves in our root: callers check which file they got.
        return os.open(path.lstrip("/") or ".", _PATH_FLAGS | flags, dir_fd=self._fd)

    def open_regular(self, path: str, flags: int = 0) -> int:
        """A readable descriptor of a regular file. OSError when there is none or it is something else."""
        return _reopen_regular(self.open_path(path, flags))

    def close(self) -> None:
        """Closes the directory."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


HOST = Root(None)


def open_mapped(pid: int, mapping: Mapping, root: Root) -> int:
    """A readable descriptor of the file behind ``mapping`` of the live process ``pid``.

    Uses map_files, which needs root and reaches deleted and replaced files and other mount namespaces; else the
    path, whose (device, inode) or build-id must be the mapping's. OSError when neither works.
    """
    for start, end in _ranges(pid, mapping):
        link = f"/proc/{pid}/map_files/{start:x}-{end:x}"
        try:
            fd = os.open(link, _PATH_FLAGS)
        except OSError:
            continue
        if _is_mapped(fd, link, mapping):
            fd = _reopen_regular(fd)
            return _verified(fd, mapping) if not mapping.inode else fd
        os.close(fd)
    return _open_same(root, mapping, None)


def open_left(roots: list[Root], mapping: Mapping, mapped_ns: int) -> int:
    """A readable descriptor of a file whose process has exited, by its path in the first root that has it.

    ``mapped_ns`` is when it was mapped (Unix epoch): a file changed since may have got the inode
    number of a deleted one. OSError when no root has it.
    """
    failure: OSError = FileNotFoundError(errno.ENOENT, "no longer there", mapping.path)
    for root in roots:
        try:
            return _open_same(root, mapping, mapped_ns)
        except OSError as error:
            failure = error
    raise failure


def wall_from_monotonic(time_ns: int) -> int:
    """Converts a CLOCK_MONOTONIC time of this boot to Unix epoch ns; 0 means now."""
    now = time.time_ns()
    return now - max(time.monotonic_ns() - time_ns, 0) if time_ns else now


def _ranges(pid: int, mapping: Mapping) -> list[tuple[int, int]]:
    # The kernel may have split or merged the mapping since it was reported.
    try:
        now = read_maps(pid)
    except OSError:
        return []
    return [
        (m.start, m.end)
        for m in now
        if m.start < mapping.end
        and mapping.start < m.end
        and m.start - m.offset == mapping.start - mapping.offset
        and (not mapping.inode or (m.dev, m.inode) == (mapping.dev, mapping.inode))
    ]


def _is_mapped(fd: int, link: str, mapping: Mapping) -> bool:
    status = os.fstat(fd)
    if not mapping.inode or status.st_ino == mapping.inode:
        return True
    # overlayfs and btrfs show different device and inode numbers in maps than in stat.
    try:
        return status.st_dev != mapping.dev and os.readlink(link) == mapping.path
    except OSError:
        return False


def _open_same(root: Root, mapping: Mapping, mapped_ns: int | None) -> int:
    fd = root.open_regular(mapping.file_path)
    if not mapping.inode:
        return _verified(fd, mapping)
    status = os.fstat(fd)
    same = (status.st_dev, status.st_ino) == (mapping.dev, mapping.inode)
    if same and mapped_ns is not None:
        same = status.st_ctime_ns + _CTIME_GRAIN_NS <= mapped_ns
    if not same:
        os.close(fd)
        raise NotThisFile(errno.ESTALE, "replaced since it was mapped", mapping.path)
    return fd


def _verified(fd: int, mapping: Mapping) -> int:
    try:
        found = ElfFile(FileSource(fd)).build_id()
    except ElfError:
        found = ""
    if not found or found != mapping.build_id:
        os.close(fd)
        raise NotThisFile(errno.ESTALE, "another build-id than the mapped one", mapping.path)
    return fd


def _reopen_regular(path_fd: int) -> int:
    try:
        if not stat.S_ISREG(os.fstat(path_fd).st_mode):
            raise NotThisFile(errno.EINVAL, "not a regular file")
        return os.open(f"/proc/self/fd/{path_fd}", _READ_FLAGS)
    finally:
        os.close(path_fd)


class _OpenHow(ctypes.Structure):
    _fields_ = [("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64)]


@functools.cache
def _syscall() -> Any:
    function = ctypes.CDLL(None, use_errno=True).syscall
    function.restype = ctypes.c_long
    return function


def _openat2(dir_fd: int, path: str, flags: int, resolve: int) -> int:
    how = _OpenHow(flags, 0, resolve)
    name = os.fsencode(path)
    if b"\0" in name:
        raise OSError(errno.EINVAL, "NUL in path")
    for _ in range(8):  # EAGAIN: something was renamed meanwhile
        size = ctypes.c_size_t(ctypes.sizeof(how))
        fd = _syscall()(ctypes.c_long(_SYS_OPENAT2), ctypes.c_int(dir_fd), name, ctypes.byref(how), size)
        if fd >= 0:
            return int(fd)
        if ctypes.get_errno() != errno.EAGAIN:
            break
    code = ctypes.get_errno()
    raise OSError(code, os.strerror(code), path)
