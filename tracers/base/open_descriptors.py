"""Open files of processes, from /proc: their names, and who has them open.

A descriptor's number is used again for other files, so that what is found is compared with the file that was meant. No
file is asked for anything: a file system, or who runs one, could keep us waiting.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Collection, Iterator
from typing import NamedTuple

from ..outside.reads import head

_INFO, _MOUNTS = 1 << 16, 1 << 20
"""Bytes of a fdinfo and of a mountinfo that are read."""
_MOST_MOUNTS = 1 << 12
"""Mounts that are remembered."""
_TARGET = re.compile(rb"^tfd: *(\d{1,10}) .* ino:([0-9a-f]+) sdev:([0-9a-f]+)$", re.MULTILINE)
_DIGITS = 20
"""Digits of a number of 64 bits."""
_OCTAL = re.compile(rb"\\([0-7]{3})")


class Mount(NamedTuple):
    """A mount, by its number."""

    device: str
    """Device of the file system: ``8:1``."""
    filesystem: str
    """Type of the file system: ``ext4`` (hostile: a FUSE file system chooses a part of it)."""
    source: str
    """Source of the mount: a device, ``server:/folder`` (hostile)."""


class Named(NamedTuple):
    """Names of a file; "" for what is not known."""

    path: str = ""
    filesystem: str = ""
    """Type of its file system."""
    source: str = ""
    """Source of its mount."""


class Target(NamedTuple):
    """A descriptor for which an epoll descriptor waits."""

    fd: int
    inode: int


class OpenDescriptors:
    """Descriptors of threads. Mounts are read once."""

    def __init__(self) -> None:
        self._mounts: dict[int, Mount] = {}
        self._asked: set[int] = set()

    def named(self, pid: int, tid: int, fd: int, inode: int, device: str) -> Named:
        """The file with this inode and file system; nothing is known if the descriptor is of another file by now."""
        link = link_of(pid, tid, fd)
        info = fields_of(info_of(pid, tid, fd))
        number = info.get(b"mnt_id", b"")
        if not link or info.get(b"ino") != b"%d" % inode or not number.isdigit() or len(number) > _DIGITS:
            return Named()
        mount = self._mount(pid, int(number))
        if mount is None or mount.device != device:
            return Named()
        return Named(link, mount.filesystem, mount.source)

    def _mount(self, pid: int, number: int) -> Mount | None:
        if number not in self._mounts and pid not in self._asked and len(self._mounts) < _MOST_MOUNTS:
            self._asked.add(pid)
            self._mounts |= mounts_of(head(pid, "mountinfo", _MOUNTS) or b"")
        return self._mounts.get(number)


def link_of(pid: int, tid: int, fd: int) -> str:
    """Target of a descriptor: a path, ``socket:[4711]``, ``anon_inode:[eventpoll]``; "" if it is not there."""
    try:
        return os.readlink(f"/proc/{pid}/task/{tid}/fd/{fd}")
    except OSError:
        return ""


def info_of(pid: int, tid: int, fd: int) -> bytes:
    """The kernel's text on a descriptor, as proc(5) has it; b"" if it is not there."""
    return head(pid, f"task/{tid}/fdinfo/{fd}", _INFO) or b""


def fields_of(info: bytes) -> dict[bytes, bytes]:
    """Lines ``name: value``; the first one of each name."""
    found: dict[bytes, bytes] = {}
    for line in info.split(b"\n"):
        name, colon, value = line.partition(b":")
        if colon:
            found.setdefault(name, value.strip())
    return found


def targets_of(info: bytes) -> list[Target]:
    """The descriptors that an epoll descriptor, whose fdinfo this is, waits for."""
    return [Target(int(fd), int(inode, 16)) for fd, inode, _ in _TARGET.findall(info)]


def mounts_of(text: bytes) -> dict[int, Mount]:
    """The mounts of a mountinfo (proc(5)), by number; malformed lines are left out."""
    found = {}
    for line in text.split(b"\n"):
        words, _, rest = line.partition(b" - ")
        parts, (kind, _, more) = words.split(b" "), rest.partition(b" ")
        if len(parts) > 5 and parts[0].isdigit() and len(parts[0]) <= _DIGITS and kind:
            named = (os.fsdecode(_OCTAL.sub(_unescaped, text)) for text in (kind, more.split(b" ")[0]))
            found[int(parts[0])] = Mount(os.fsdecode(parts[2]), *named)
    return found


def _unescaped(match: re.Match[bytes]) -> bytes:
    return bytes([int(match[1], 8) & 0xFF])


class Holder(NamedTuple):
    """A process with a descriptor of something."""

    pid: int
    access: int
    """Access to the file: 1 read, 2 write, 3 both."""


class Search:
    """A search for the processes that have pipes or sockets open: slice by slice, as it may take long."""

    def __init__(self, links: Collection[str], pids: Iterator[int]) -> None:
        """``links``: ``pipe:[4711]``."""
        self._links = frozenset(map(os.fsencode, links))
        self._pids = pids
        self.found: dict[str, set[Holder]] = {link: set() for link in links}
        self.ended = False

    def go_on(self, until: float) -> None:
        """Looks at processes until this time (`time.monotonic`), or until all were looked at."""
        for pid in self._pids:
            for link, holder in _matching(pid, self._links, until):
                self.found[link].add(holder)
            if time.monotonic() >= until:
                return
        self.ended = True


def holders_in(pid: int, links: Collection[str]) -> set[tuple[str, Holder]]:
    """The process once for each of these, and each way in which it has it open."""
    wanted = frozenset(map(os.fsencode, links))
    return set(_matching(pid, wanted, time.monotonic())) if wanted else set()


def _matching(pid: int, wanted: frozenset[bytes], until: float) -> Iterator[tuple[str, Holder]]:
    folder = b"/proc/%d/fd" % pid
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for i, name in enumerate(names):
        path = b"%s/%s" % (folder, name)
        try:
            link = os.readlink(path)
            if link in wanted:
                mode = os.lstat(path).st_mode
                access = (1 if mode & stat.S_IRUSR else 0) | (2 if mode & stat.S_IWUSR else 0)
                yield os.fsdecode(link), Holder(pid, access)
        except OSError:
            continue
        if not i % 1024 and time.monotonic() >= until + _PATIENCE:
            return  # a process may have very many


_PATIENCE = 0.2
"""Seconds more for the descriptors of one process."""
