"""Compiled tables on disk, so that the next trace starts without compiling.

A file is named by build-id and by a digest of everything that the table depends on, so two files that claim the same
build-id (anyone can write one into a container) never share a table. The folder and its files must be ours alone.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import stat
import struct
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ...converters.base.text import printable
from ..images.elf import ElfError, ElfFile
from .compiler import compile_sections
from .rows import ROW, ROW_SIZE, UnwindTable
from .sections import Sections, find_sections

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FOLDER_VARIABLE = "STALLSCOPE_CACHE"
"""Environment variable: the absolute path of a folder to use instead of `default_folder`."""
MAX_BYTES = 256 << 20
"""Maximum size of all files together; the least recently used are removed first."""
_MAX_FILE = (64 << 20) + (1 << 16)
MAX_TABLE = 1 << 27
"""Bytes of a table that another process has made."""
_FREE = 64 << 20
"""Bytes to leave free on the disk: a tracer must not be what fills it."""
_SUFFIX, _ASIDE, _CLAIM = ".rows", ".aside", ".claim"
_STALE_S = 3600
"""Age at which a file that was never completed is removed."""
_CLAIM_S, _CLAIM_STEP_S = 60.0, 0.02
"""Seconds to wait for another process that is compiling the same table, and between two checks."""

_MAGIC = b"stallscope rows\0"
_VERSION = 3
"""Incremented when the rows' meaning changes, or how they are compiled."""
_HEADER = struct.Struct("<16sI16sQQI")
"""Magic, version, digest, base, number of rows, bytes of JSON (`refused`)."""
_CHECKSUM = struct.Struct("<I")
"""CRC-32 of the header and of everything after this field."""
_HIGHEST = 1 << 63
"""Bases of tables of programs are below."""


class Entry(NamedTuple):
    """Identifies a table on disk."""

    name: str
    digest: bytes
    """Digest of everything that the table is compiled from."""


def default_folder() -> str:
    """$STALLSCOPE_CACHE if set; else /var/cache/stallscope for root; else in $XDG_CACHE_HOME (default ~/.cache)."""
    chosen = os.environ.get(FOLDER_VARIABLE, "")
    if os.path.isabs(chosen):
        return chosen
    if os.geteuid() == 0:
        return "/var/cache/stallscope"
    home = os.environ.get("XDG_CACHE_HOME", "")
    return os.path.join(home if os.path.isabs(home) else os.path.expanduser("~/.cache"), "stallscope")


class TableCache:
    """Returns tables from disk, or compiles them. Without a usable folder all are compiled; ``problem`` says why."""

    def __init__(self, folder: str | None = None, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self.folder = folder or default_folder()
        self.problem = ""
        self._fd = -1
        self._room = 0
        """Bytes that may be written before the folder's size is checked again."""
        self.hits = self.misses = 0
        try:
            self._fd = _open_folder(self.folder)
        except OSError as error:
            self.problem = f"no cache: {error.strerror}"

    def table(self, elf: ElfFile, debug: ElfFile | None = None) -> UnwindTable:
        """Table as `compiler.compile_table` makes it; raises UnwindError when the file has no table."""
        sections = find_sections(elf, debug)
        entry = self.entry(elf, sections)
        found = self.find(entry)
        if found is None:
            found = compile_sections(elf, sections)
            self.keep(entry, found)
        return found

    def entry(self, elf: ElfFile, sections: Sections) -> Entry:
        """Name and digest of the table of these sections of the file."""
        digest = _digest(elf, sections)
        try:
            build_id = elf.build_id()
        except ElfError:
            build_id = ""
        return Entry(f"{build_id or 'none'}-{digest.hex()}{_SUFFIX}", digest)

    def find(self, entry: Entry) -> UnwindTable | None:
        """The table on disk; None, counted as a miss, when there is none or it cannot be trusted."""
        found = self._load(entry)
        self.hits += found is not None
        self.misses += found is None
        return found

    def keep(self, entry: Entry, table: UnwindTable) -> None:
        """Writes the table to disk. If that fails, ``problem`` says why."""
        content = encode(entry.digest, table)
        if self._fd < 0 or len(content) > min(_MAX_FILE, self._max_bytes):
            return
        self._put(content, entry.name)

    def check(self) -> str:
        """Reason why tables cannot be kept, found by trying to write one; "" when they can."""
        if self._fd >= 0:
            self.problem = ""
            self._put(b"x", "")
        return self.problem

    def _put(self, content: bytes, name: str) -> None:
        """Writes a temporary file, then renames it to ``name``; an unfinished file is removed."""
        aside = f"{os.urandom(8).hex()}{_ASIDE}"
        try:
            self._make_room(len(content))
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with open(os.open(aside, flags, 0o600, dir_fd=self._fd), "wb") as file:
                file.write(content)
            if name:
                os.replace(aside, name, src_dir_fd=self._fd, dst_dir_fd=self._fd)
        except OSError as error:
            self.problem = f"not cached: {error.strerror}"
        finally:
            with suppress(OSError):
                os.unlink(aside, dir_fd=self._fd)

    @contextlib.contextmanager
    def claim(self, entry: Entry) -> Iterator[None]:
        """Claims a table: while the claim is held, others that want to compile it wait; afterwards they find it in the
        cache.

        The claim is released when its process ends, however that happens; nobody waits longer than a minute.
        """
        name = entry.name + _CLAIM
        fd = self._open_claim(name)
        try:
            if fd >= 0:
                _lock(fd)
            yield
        finally:
            if fd >= 0:
                with suppress(OSError):
                    os.unlink(name, dir_fd=self._fd)
                os.close(fd)

    def close(self) -> None:
        """Closes the folder."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _open_claim(self, name: str) -> int:
        if self._fd < 0:
            return -1
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            return os.open(name, flags, 0o600, dir_fd=self._fd)
        except OSError:
            return -1

    def _load(self, entry: Entry) -> UnwindTable | None:
        if self._fd < 0:
            return None
        try:
            fd = os.open(entry.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=self._fd)
        except OSError:
            return None
        try:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode) or not _ours_alone(status) or status.st_size > _MAX_FILE:
                return None
            with open(fd, "rb", closefd=False) as file:
                found = decode(file.read(_MAX_FILE), entry.digest)
            if found is not None:
                with suppress(OSError):
                    os.utime(fd)  # last use, which `_make_room` sorts by
            return found
        except OSError:
            return None
        finally:
            os.close(fd)

    def _make_room(self, size: int) -> None:
        """Removes the least recently used files until ``size`` more bytes fit, and files left by interrupted writers.

        The folder is listed only when the bytes written since the last listing could fill it. OSError: disk full.
        """
        disk = os.fstatvfs(self._fd)
        if disk.f_bavail * disk.f_frsize < size + _FREE:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._room -= size
        if self._room >= 0:
            return
        files = []
        for entry in os.listdir(self._fd):
            if not entry.endswith((_SUFFIX, _ASIDE, _CLAIM)):
                continue
            try:
                status = os.stat(entry, dir_fd=self._fd, follow_symlinks=False)
            except OSError:
                continue
            if entry.endswith(_SUFFIX):
                files.append((status.st_mtime_ns, entry, status.st_size))
            elif time.time() - status.st_mtime > _STALE_S:
                with suppress(OSError):
                    os.unlink(entry, dir_fd=self._fd)
        total = sum(length for _, _, length in files) + size
        for _, entry, length in sorted(files):
            if total <= self._max_bytes:
                break
            with suppress(OSError):
                os.unlink(entry, dir_fd=self._fd)
                total -= length
        # Other processes may write there, too.
        self._room = (self._max_bytes - total) // 2


def encode(digest: bytes, table: UnwindTable) -> bytes:
    """A table in its on-disk form."""
    reasons = json.dumps(dict(table.refused)).encode()
    body = reasons + table.rows.tobytes()
    header = _HEADER.pack(_MAGIC, _VERSION, digest, table.base, len(table.rows), len(reasons))
    return header + _CHECKSUM.pack(zlib.crc32(body, zlib.crc32(header))) + body


def decode(content: bytes, digest: bytes) -> UnwindTable | None:
    """The table of the file with this digest; None when it belongs to another file, is damaged, or is out of order: it
    comes from a process that has read the file."""
    import numpy as np

    if len(content) < _HEADER.size + _CHECKSUM.size:
        return None
    magic, version, made_for, base, count, reasons = _HEADER.unpack_from(content)
    (checksum,) = _CHECKSUM.unpack_from(content, _HEADER.size)
    body = memoryview(content)[_HEADER.size + _CHECKSUM.size :]
    if (magic, version, made_for) != (_MAGIC, _VERSION, digest) or len(body) != reasons + count * ROW_SIZE:
        return None
    if zlib.crc32(body, zlib.crc32(content[: _HEADER.size])) != checksum:
        return None
    rows: NDArray[np.void] = np.frombuffer(body[reasons:], ROW)
    if (rows["pc"][1:] <= rows["pc"][:-1]).any() or base >= _HIGHEST:
        return None
    try:
        return UnwindTable(base, rows, json.loads(bytes(body[:reasons])))
    except (ValueError, RecursionError):
        return None


def _open_folder(path: str) -> int:
    """A descriptor of the cache's folder, created if necessary. OSError when others can write there."""
    os.makedirs(os.path.dirname(path), 0o755, exist_ok=True)
    with suppress(FileExistsError):
        os.mkdir(path, 0o700)
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    if not _ours_alone(os.fstat(fd)):
        os.close(fd)
        raise PermissionError(0, f"the folder {printable(path)} is another user's, or others can write to it", path)
    return fd


def _ours_alone(status: os.stat_result) -> bool:
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _lock(fd: int) -> None:
    deadline = time.monotonic() + _CLAIM_S
    while time.monotonic() < deadline:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_CLAIM_STEP_S)
        except OSError:
            return
        else:
            return


def _digest(elf: ElfFile, sections: Sections) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    digest.update(repr((_VERSION, elf.machine, [tuple(s) for s in elf.segments], sections.refused)).encode())
    for section in sections.found:
        digest.update(repr((section.vaddr, section.is_eh, section.ends_at_zero, len(section.data))).encode())
        digest.update(section.data)
    if sections.go is not None:
        digest.update(repr(("go", sections.go.text, len(sections.go.data))).encode())
        digest.update(sections.go.data)
    if sections.code is not None:
        digest.update(sections.code.digest())
    return digest.digest()
