"""Opens exactly the file that a process has mapped, in the process's root and without side effects.

Every path here comes from the traced process, so it may name a device, a pipe or a link that leads out of a
container, or lie on a file system of a user that never answers. `outside` opens it: only a regular file, with a
deadline. What it returns can be read without one: a file of the administrator's file systems, or a sealed copy.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Sequence

from ..outside.lookups import Place
from ..outside.reads import About, open_path
from ..outside.reads import open_mapped as open_places
from .elf import ElfError, ElfFile, FileSource
from .maps import Mapping

_ROOT_FLAGS = os.O_PATH | os.O_CLOEXEC
_CTIME_GRAIN_NS = 10_000_000
"""File times are those of the last tick (HZ >= 100)."""


class NotThisFile(OSError):
    """The file at the path is not the mapped one."""


class Root:
    """A process's root directory, held open: paths, links included, are resolved inside it.

    ``fd`` None is our own root. ``pid``: a process that has it.
    """

    def __init__(self, fd: int | None, pid: int = 0) -> None:
        self._fd = fd
        self._pid = pid
        self._is_closed = False

    @classmethod
    def of(cls, pid: int) -> Root:
        """Root of a live process. OSError without one. Its file system is not asked: the path ends at the link."""
        return cls(os.open(f"/proc/{pid}/root", _ROOT_FLAGS), pid)

    @property
    def fd(self) -> int | None:
        """Descriptor of the root, which stays the root's; None for ours. OSError if it has been closed."""
        if self._is_closed:
            raise OSError(errno.ENOENT, "nobody has this root any more")
        return self._fd

    def identity(self) -> tuple[int, int]:
        """Tells it from others while it is open: its mount and inode (proc(5), fdinfo), as the kernel has them without
        asking the file system. OSError."""
        fields = {}
        with open(f"/proc/self/fdinfo/{self.fd}", "rb") as file:
            for line in file.read(4096).splitlines():
                name, _, value = line.partition(b":")
                fields[name] = value
        # The inode is there since Linux 5.14.
        return int(fields[b"mnt_id"]), int(fields.get(b"ino", b"0"))

    def open_regular(self, path: str, flags: int = 0) -> int:
        """A readable descriptor of a regular file. OSError when there is none or it is something else."""
        return self.find(path, flags)[0]

    def find(self, path: str, flags: int = 0) -> tuple[int, About]:
        """Opens the file at a path, and tells what it is like."""
        return open_path(path, flags, self.fd, self._pid)

    def close(self) -> None:
        """Closes the directory. Nothing is found in it any more."""
        fd, self._fd = self._fd, None
        if fd is not None:
            self._is_closed = True
            os.close(fd)


HOST = Root(None)


def open_mapped(pid: int, mapping: Mapping, root: Root) -> int:
    """A readable descriptor of the file behind ``mapping`` of the live process ``pid``.

    Uses map_files, which needs root and reaches deleted and replaced files and other mount namespaces; else the
    path, whose (device, inode) or build-id must be the mapping's. OSError when neither works.
    """
    (found,) = open_all(pid, [mapping], root)
    if isinstance(found, OSError):
        raise found
    return found


def open_all(pid: int, mappings: Sequence[Mapping], root: Root) -> list[int | OSError]:
    """Opens the files of several mappings."""
    try:
        found = open_places(pid, [_place(mapping) for mapping in mappings], root.fd)
    except OSError as error:
        return [error] * len(mappings)
    return [_checked(fd, mapping) for fd, mapping in zip(found, mappings, strict=True)]


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


def _place(mapping: Mapping) -> Place:
    return Place(*mapping[:3], mapping.dev, mapping.inode, os.fsencode(mapping.path))


def _open_same(root: Root, mapping: Mapping, mapped_ns: int) -> int:
    fd, about = root.find(mapping.file_path)
    if not mapping.inode:
        return _verified(fd, mapping)
    same = (about.dev, about.inode) == (mapping.dev, mapping.inode)
    if not same or about.ctime_ns + _CTIME_GRAIN_NS > mapped_ns:
        os.close(fd)
        raise NotThisFile(errno.ESTALE, "replaced since it was mapped", mapping.path)
    return fd


def _checked(fd: int | OSError, mapping: Mapping) -> int | OSError:
    try:
        if not isinstance(fd, OSError):
            return fd if mapping.inode else _verified(fd, mapping)
        if fd.errno == errno.ESTALE:
            return NotThisFile(errno.ESTALE, "replaced since it was mapped", mapping.path)
    except OSError as error:
        return error
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
