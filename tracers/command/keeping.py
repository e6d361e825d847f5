"""Captures of a trace that goes on: how many are kept, how much of the disk they take, and which ones go.

Each interval is written by a process of its own, one after the other. What they have to know of each other is in a file
without a name, which ends with the trace.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ...converters.base import safefile
from ...converters.base.errors import StallscopeError
from ...converters.base.rights import sudo_owner, with_rights_of
from ...converters.base.text import printable
from ...converters.base.units import count
from ...converters.scan.folder import FILES

LEAVE_FREE = 64 << 20
"""Bytes to leave free on the disk: a tracer must not be what fills it."""
_LARGER = 2
"""Times as large as the last capture the next one may be."""


class Written(NamedTuple):
    """File that was written. A file that has replaced it differs in one of these."""

    path: str
    device: int
    inode: int
    changed: int
    """ns: when its content was written."""


@dataclass
class Capture:
    """Files of an interval."""

    files: list[Written] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    """Folders that were made for them."""
    size: int = 0
    """Bytes that the files take."""


@dataclass
class State:
    """Knowledge that goes from interval to interval."""

    captures: list[Capture] = field(default_factory=list)
    """Captures that are there, the oldest first."""
    told: list[int] = field(default_factory=list)
    """Processes for which the condition has held without a break since it was captured."""
    worked: list[int] = field(default_factory=list)
    """Processes that have been at work."""
    captured: int = 0
    """Time in ns at which the last captured interval began; 0: there was none."""


class Memory:
    """State that processes share which write one after the other."""

    def __init__(self) -> None:
        self._fd = os.memfd_create("stallscope watch", os.MFD_CLOEXEC)

    def load(self) -> State:
        """The state that was stored last."""
        text = os.pread(self._fd, os.fstat(self._fd).st_size, 0)
        if not text:
            return State()
        given = json.loads(text)
        captures = [
            Capture([Written(*each) for each in capture["files"]], capture["folders"], capture["size"])
            for capture in given.pop("captures")
        ]
        return State(captures, **given)

    def store(self, state: State) -> None:
        """Stores a state for those that come later."""
        text = json.dumps(asdict(state)).encode()
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, text, 0)


@dataclass(frozen=True)
class Bounds:
    """Bounds of what is kept."""

    captures: int
    """Number of intervals."""
    size: int
    """Bytes of all files."""


def keep(
    state: State, bounds: Bounds, paths: tuple[str, ...], write: Callable[[], None]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Calls ``write``, which writes ``paths`` (files, or folders of files), after older captures made room for it.

    Returns the paths that are there, and remarks. StallscopeError of ``write``; what it had written by then is
    counted, too.
    """
    last = state.captures[-1].size if state.captures else 0
    _make_room(state, bounds.captures - 1, bounds.size - last)
    if remark := _too_full(paths, last):
        return (), (remark,)
    before = set(_present(paths))
    there = {path for path in paths if os.path.lexists(path)}
    try:
        write()
    finally:
        capture = _taken(paths, before, there)
        if capture.files:
            state.captures.append(capture)
    _make_room(state, bounds.captures, bounds.size)
    if capture in state.captures:
        return paths, ()
    _remove(capture)
    return (), (f"not kept: {count(capture.size)} bytes are more than --keep-bytes",)


def _taken(paths: tuple[str, ...], before: set[Written], there: set[str]) -> Capture:
    """The files that are new, and the folders that were not there."""
    files = [each for each in _present(paths) if each not in before]
    size = 0
    for each in files:
        with suppress(OSError):
            size += os.lstat(each.path).st_blocks * 512
    folders = [path for path in paths if path not in there and os.path.isdir(path) and not os.path.islink(path)]
    return Capture(files, folders, size)


def _present(paths: tuple[str, ...]) -> Iterator[Written]:
    """The files of these names, and those that a scan writes in folders of these names."""
    for path in paths:
        is_folder = os.path.isdir(path) and not os.path.islink(path)
        for name in [os.path.join(path, each) for each in FILES] if is_folder else [path]:
            with suppress(OSError):
                status = os.lstat(name)
                yield Written(name, status.st_dev, status.st_ino, status.st_mtime_ns)


def _too_full(paths: tuple[str, ...], last: int) -> str:
    """Remark if a file system is too full for a capture, whose last one had ``last`` bytes; "" if none is."""
    for path in paths:
        with suppress(OSError):
            disk = os.statvfs(Path(path).parent)
            free = disk.f_bavail * disk.f_frsize
            if free < LEAVE_FREE + _LARGER * last:
                return f"not kept: only {free >> 20} MB are left on the file system of {printable(path)}"
    return ""


def _make_room(state: State, captures: int, size: int) -> None:
    """Removes the oldest captures until there are no more than these, with so many bytes."""
    while state.captures and (len(state.captures) > captures or sum(each.size for each in state.captures) > size):
        _remove(state.captures.pop(0))


def _remove(capture: Capture) -> None:
    """Removes the files that are still those that were written, and their folders if nothing else is in them."""
    for file in capture.files:
        _remove_file(file)
    for path in capture.folders:
        _unlinked(Path(path), os.rmdir)


def _remove_file(file: Written) -> None:
    path = Path(file.path)

    def unlink(name: str, *, dir_fd: int) -> None:
        status = os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
        if (status.st_dev, status.st_ino, status.st_mtime_ns) == file[1:]:
            os.unlink(name, dir_fd=dir_fd)

    _unlinked(path, unlink)


def _unlinked(path: Path, remove: Callable[..., None]) -> None:
    """Calls ``remove`` with the name of ``path`` in its folder, with the rights of the user behind sudo."""
    owner = sudo_owner()
    # Somebody has removed or changed it, or its folder: then it is left alone.
    with suppress(OSError, StallscopeError), safefile.open_folder(path.parent) as folder:
        call = partial(remove, path.name, dir_fd=folder)
        if owner is None:
            call()
            return
        try:
            with_rights_of(owner, call)
        except PermissionError:
            safefile.check_root_shell(path, owner)
            call()
