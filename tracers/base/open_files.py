"""Finds the open files of other processes by their inodes: what a file is called, and who has it open.

The device is that of the super block, which stat(2) does not tell on Btrfs and overlays: /proc/PID/fdinfo and mountinfo
do. Nothing here looks at the files themselves, which may be on file systems that do not answer.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from ..outside.reads import head, heads
from .lock_table import Lock, lock_of
from .open_descriptors import Mount, fields_of, mounts_of

PROC = Path("/proc")
_FILES = 512
"""Open files of a process that are looked at."""
_AT_A_TIME = 64
_INFO = 4096
"""Bytes of an fdinfo: of one with very many locks the first ones."""
_MOUNTS = 1 << 20
_DIGITS = 20
"""Digits of a number of 64 bits."""


class Opened(NamedTuple):
    """An open file of a process."""

    path: str
    """Path with which the process has opened it (hostile)."""
    locks: tuple[Lock, ...]
    """Locks that this very open file has, or the process by it."""


def opened(pid: int, device: int, inode: int) -> Opened | None:
    """The process's open file that is this inode, one with a lock if there is one; None if it has none, may not be
    read, or the kernel does not tell inodes (before 5.14)."""
    mounts: dict[int, Mount] | None = None
    numbers, best = f"{device >> 20}:{device & 0xFFFFF}", None
    for path, text in _infos(pid, _regular(pid)):
        info = fields_of(text)
        mount = info.get(b"mnt_id", b"")
        if info.get(b"ino") != b"%d" % inode or not mount.isdigit() or len(mount) > _DIGITS:
            continue
        if mounts is None:
            mounts = mounts_of(head(pid, "mountinfo", _MOUNTS) or b"")
        if int(mount) not in mounts or mounts[int(mount)].device != numbers:
            continue
        found = Opened(path, tuple(_locks(text)))
        if found.locks:
            return found
        best = best or found
    return best


def holders(lock: Lock, path: str, pids: Iterable[int], until: float) -> set[int]:
    """Processes with an open file of this path that has the lock: several if it was inherited. That others have taken
    the same lock is told apart by the process that took it, but of locks of open files, of which the kernel tells none.
    ``until``: when, by the monotonic clock, the search ends."""
    found = set()
    for pid in pids:
        if time.monotonic() >= until:
            break
        wanted = [number for number, name in _regular(pid) if name == path]
        for _, text in _infos(pid, [(number, path) for number in wanted]):
            if lock in _locks(text):
                found.add(pid)
    return found


def path_of(lock: Lock, pids: Iterable[int], until: float) -> str:
    """Path of an open file that has the lock, as the first of these processes opened it that has it; "" if none has.
    ``until``: when, by the monotonic clock, the search ends."""
    for pid in pids:
        if time.monotonic() >= until:
            break
        for path, text in _infos(pid, _regular(pid)):
            if lock in _locks(text):
                return path
    return ""


def _regular(pid: int) -> list[tuple[int, str]]:
    """Descriptors of a process that have a path, with it."""
    found: list[tuple[int, str]] = []
    folder = f"{PROC}/{pid}/fd"
    try:
        names = os.listdir(folder)
    except OSError:
        return found
    for name in names:
        try:
            path = os.readlink(f"{folder}/{name}")
        except OSError:
            continue
        if path.startswith("/") and not path.startswith(("/dev/null", "/memfd:")):
            found.append((int(name), path))
            if len(found) == _FILES:
                break
    return found


def _infos(pid: int, files: list[tuple[int, str]]) -> Iterator[tuple[str, bytes]]:
    """Paths and fdinfos of these descriptors."""
    for at in range(0, len(files), _AT_A_TIME):
        some = files[at : at + _AT_A_TIME]
        texts = heads([pid], [(f"fdinfo/{number}", _INFO) for number, _ in some]).get(pid, [])
        for (_, path), text in zip(some, texts, strict=False):
            if text:
                yield path, text


def _locks(text: bytes) -> Iterator[Lock]:
    for line in text.split(b"\n"):
        if line.startswith(b"lock:") and (found := lock_of(line.split(maxsplit=10)[2:])):
            yield found
