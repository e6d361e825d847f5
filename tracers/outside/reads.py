"""Reads other processes: their memory, maps, environments and files. None of it waits for long: see `client`.

All functions raise OSError, `client.NotRead` among them, for what is gone, may not be read, or does not answer.
"""

from __future__ import annotations

import errno
import itertools
import marshal
import os
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from .client import CLIENT
from .lookups import SHARED, Place

_KEYS = itertools.count(1)
_READS = 1 << 10
"""Reads in a request."""
_MOST_FILES = 128
"""Files in a request."""
_PIDS = 1 << 12
"""Processes in a request."""
_MOST_COPIES, _MOST_COPY = 256 << 20, 128 << 20
"""Bytes of all copies of files that exist, and of one."""
_F_GET_SEALS, _F_SEAL_WRITE = 1034, 8
"""fcntl(2)."""


class Memory:
    """Memory of a process: /proc/PID/mem, which stays that program's after an exec or an exit."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._key = next(_KEYS)

    def read(self, address: int, size: int) -> bytes:
        """Exactly so many bytes. OSError where they are not there, or not any more."""
        if not 0 <= address < 1 << 63 or size < 0:
            raise OSError(errno.EIO, "not an address")
        if size > SHARED:
            return b"".join(self.read(address + at, min(SHARED, size - at)) for at in range(0, size, SHARED))
        (data,) = self.read_some([(address, size)])
        if len(data) != size:
            raise OSError(errno.EIO, "no memory there")
        return data

    def word(self, address: int) -> int:
        """The 8 bytes at an address. OSError like `read`."""
        return int.from_bytes(self.read(address, 8), "little")

    def read_some(self, reads: Sequence[tuple[int, int]]) -> list[bytes]:
        """Bytes at each (address, size), as far as they are there; a size is at most `SHARED`."""
        found: list[bytes] = []
        asked: list[tuple[int, int]] = []
        size = 0
        for each in reads:
            if len(asked) == _READS or (asked and size + each[1] > SHARED):
                found += self._ask(asked)
                asked, size = [], 0
            asked.append(each if 0 <= each[0] < 1 << 63 else (0, 0))
            size += each[1]
        return found + self._ask(asked) if asked else found

    def _ask(self, reads: list[tuple[int, int]]) -> list[bytes]:
        (sizes, where), _, shared = CLIENT.ask("memory", self._key, self.pid, reads, pid=self.pid)
        data = _bytes(where, shared)
        found, at = [], 0
        for size in sizes:
            found.append(data[at : at + max(size, 0)])
            at += max(size, 0)
        return found

    def close(self) -> None:
        CLIENT.tell("forget", self._key)


def _bytes(where: Any, shared: Any) -> bytes:
    """A result: the bytes, or how many there are in the shared memory."""
    return where if isinstance(where, bytes) else shared[:where]


def maps(pid: int, *, only_code: bool) -> bytes:
    """Lines of a process's maps; those of executable mappings, if only these are wanted. A part if it is very long."""
    (is_all, where), _, shared = CLIENT.ask("maps", pid, only_code, pid=pid)
    if not is_all:
        CLIENT.partly.add(pid)
    return _bytes(where, shared)


def heads(pids: Collection[int], names: Sequence[tuple[str, int]]) -> dict[int, list[bytes | None]]:
    """The first bytes of files in /proc/PID, by process; those that do not answer are left out. ``names``: each with
    how many bytes are wanted."""
    found: dict[int, list[bytes | None]] = {}
    left = list(pids)
    most = max(SHARED // 2 - sum(size for _, size in names), 0)
    while left:
        asked, skipped = left[:_PIDS], 0
        try:
            where, _, shared = CLIENT.ask("files", asked, list(names), most, pid=asked[0] if len(asked) == 1 else 0)
            answers = marshal.loads(_bytes(where, shared))
            found.update(zip(asked, answers, strict=False))
            skipped = len(answers)
        except OSError:
            # The one that made us wait is left out, and what came before it is asked again.
            silent = [pid for pid in left if CLIENT.is_silent(pid)]
            if not silent:
                return found
            left = [pid for pid in left if pid not in silent]
        left = left[skipped:]
    return found


def head(pid: int, name: str, most: int) -> bytes | None:
    """The first bytes of a file in /proc/PID; None without it."""
    return heads([pid], [(name, most)]).get(pid, [None])[0]


def pagemap(pid: int, offset: int, size: int) -> bytes:
    """Bytes of /proc/PID/pagemap."""
    where, _, shared = CLIENT.ask("pagemap", pid, offset, size, pid=pid)
    return _bytes(where, shared)


class About(NamedTuple):
    """A file at a path."""

    dev: int
    inode: int
    size: int
    uid: int
    mtime_ns: int
    ctime_ns: int


def open_mapped(pid: int, places: Sequence[Place], root: int | None) -> list[int | OSError]:
    """Readable descriptors of the regular files that a process has mapped: of a sealed copy of a file that an ordinary
    user could make wait. ``root``: of the process, for its paths; None: ours."""
    found: list[int | OSError] = []
    for first in range(0, len(places), _MOST_FILES):
        some = [tuple(place) for place in places[first : first + _MOST_FILES]]
        answers, fds, _ = CLIENT.ask("mapped", pid, some, _room(), pid=pid, root=root)
        left = iter(fds)
        for error, copied in answers:
            found.append(_refused(error) if error else next(left))
            _note(copied)
    return found


def open_path(path: str, flags: int, root: int | None, pid: int = 0) -> tuple[int, About]:
    """A readable descriptor of the regular file at a path inside a root (None: ours), as above, and what it is like."""
    folder = f"{root}:{os.path.dirname(path)}"
    if root is None:
        path = os.path.join(os.getcwd(), path)
    if "\0" in path:
        raise OSError(errno.EINVAL, "NUL in path")
    (copied, about), fds, _ = CLIENT.ask(
        "path", os.fsencode(path), flags, pid, _room(), pid=pid, folder=folder, root=root
    )
    _note(copied)
    return fds[0], About(*about)


def is_copy(fd: int) -> bool:
    """Whether an open file is such a copy: a probe on it would be on nothing that runs."""
    import fcntl

    with suppress(OSError):
        return bool(fcntl.fcntl(fd, _F_GET_SEALS) & _F_SEAL_WRITE)
    return False


def is_administrators(fd: int) -> bool:
    """Whether only the administrator can have written what is in an open file."""
    status = os.fstat(fd)
    return status.st_uid == 0 and not status.st_mode & 0o022 and not is_copy(fd)


class _Copies:
    taken = 0
    """Bytes of copies, also of those that have been closed since they were last counted."""


def _note(copied: int) -> None:
    _Copies.taken += max(copied, 0)


def _room() -> int:
    """Bytes that the next copy may have."""
    if _Copies.taken + _MOST_COPY > _MOST_COPIES:
        _Copies.taken = _size_of_copies()
    return max(min(_MOST_COPIES - _Copies.taken, _MOST_COPY), 0)


def _size_of_copies() -> int:
    size = 0
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            if is_copy(int(name)):
                size += os.fstat(int(name)).st_size
    return size


def _refused(error: int) -> OSError:
    return OSError(error, os.strerror(error))
