"""Compiled tables on disk, so that the next trace starts without compiling.

A file is named by build-id and by a digest of all that the table depends on: two files that claim the same build-id
(anyone can write one into a container) never share a table. The folder and its files must be ours alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import struct
import time
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING

from ..symbols.elf import ElfError, ElfFile
from .compiler import compile_sections
from .rows import ROW, ROW_SIZE, UnwindTable
from .sections import Sections, find_sections

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_BYTES = 256 << 20
"""Of all files together; the longest unused ones leave first."""
_MAX_FILE = (64 << 20) + (1 << 16)
_SUFFIX, _ASIDE = ".rows", ".aside"
_STALE_S = 3600
"""Age at which a file that was never completed is removed."""

_MAGIC = b"stallscope rows\0"
_VERSION = 2
"""Grows with every change of the rows' meaning or of how they are compiled."""
_HEADER = struct.Struct("<16sI16sQQI")
"""Magic, version, digest, base, number of rows, bytes of JSON (`refused`)."""
_CHECKSUM = struct.Struct("<I")
"""CRC-32 of the header and of all behind this."""


def default_folder() -> str:
    """/var/cache/stallscope for root; else in $XDG_CACHE_HOME, which is ~/.cache unless set."""
    if os.geteuid() == 0:
        return "/var/cache/stallscope"
    home = os.environ.get("XDG_CACHE_HOME", "")
    return os.path.join(home if os.path.isabs(home) else os.path.expanduser("~/.cache"), "stallscope")


class TableCache:
    """Tables from disk or compiled. Without a usable folder everything is compiled; ``problem`` says why."""

    def __init__(self, folder: str | None = None, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self.problem = ""
        self._fd = -1
        self._room = 0
        """Bytes that may be written before the folder is looked at again."""
        self.hits = self.misses = 0
        try:
            self._fd = _open_folder(folder or default_folder())
        except OSError as error:
            self.problem = f"no cache: {error.strerror}"

    def table(self, elf: ElfFile, debug: ElfFile | None = None) -> UnwindTable:
        """As `compiler.compile_table`; UnwindError when the file has no table."""
        sections = find_sections(elf, debug)
        digest = _digest(elf, sections)
        try:
            build_id = elf.build_id()
        except ElfError:
            build_id = ""
        name = f"{build_id or 'none'}-{digest.hex()}{_SUFFIX}"
        found = self._load(name, digest)
        if found is not None:
            self.hits += 1
            return found
        self.misses += 1
        table = compile_sections(elf, sections)
        self._store(name, digest, table)
        return table

    def close(self) -> None:
        """Let go of the folder."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _load(self, name: str, digest: bytes) -> UnwindTable | None:
        if self._fd < 0:
            return None
        try:
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=self._fd)
        except OSError:
            return None
        try:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode) or not _ours_alone(status) or status.st_size > _MAX_FILE:
                return None
            with open(fd, "rb", closefd=False) as file:
                found = _decode(file.read(_MAX_FILE), digest)
            if found is not None:
                with suppress(OSError):
                    os.utime(fd)  # last use, by which `_make_room` chooses
            return found
        except OSError:
            return None
        finally:
            os.close(fd)

    def _store(self, name: str, digest: bytes, table: UnwindTable) -> None:
        content = _encode(digest, table)
        if self._fd < 0 or len(content) > min(_MAX_FILE, self._max_bytes):
            return
        aside = f"{os.urandom(8).hex()}{_ASIDE}"
        try:
            self._make_room(len(content))
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with open(os.open(aside, flags, 0o600, dir_fd=self._fd), "wb") as file:
                file.write(content)
            os.replace(aside, name, src_dir_fd=self._fd, dst_dir_fd=self._fd)
        except OSError as error:
            self.problem = f"not cached: {error.strerror}"
            with suppress(OSError):
                os.unlink(aside, dir_fd=self._fd)

    def _make_room(self, size: int) -> None:
        """Removes the longest unused files until ``size`` more bytes fit, and what interrupted writers left.

        The folder is looked at when what was written since the last time could fill it.
        """
        self._room -= size
        if self._room >= 0:
            return
        files = []
        for entry in os.listdir(self._fd):
            if not entry.endswith((_SUFFIX, _ASIDE)):
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
        # Others may write there, too.
        self._room = (self._max_bytes - total) // 2


def _open_folder(path: str) -> int:
    """A descriptor of the cache's folder, made if need be. OSError when others can write there."""
    os.makedirs(os.path.dirname(path), 0o755, exist_ok=True)
    with suppress(FileExistsError):
        os.mkdir(path, 0o700)
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    if not _ours_alone(os.fstat(fd)):
        os.close(fd)
        raise PermissionError(0, "its folder is another user's, or others can write to it", path)
    return fd


def _ours_alone(status: os.stat_result) -> bool:
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _digest(elf: ElfFile, sections: Sections) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    digest.update(repr((_VERSION, elf.machine, [tuple(s) for s in elf.segments], sections.refused)).encode())
    for section in sections.found:
        digest.update(repr((section.vaddr, section.is_eh, section.ends_at_zero, len(section.data))).encode())
        digest.update(section.data)
    return digest.digest()


def _encode(digest: bytes, table: UnwindTable) -> bytes:
    reasons = json.dumps(dict(table.refused)).encode()
    body = reasons + table.rows.tobytes()
    header = _HEADER.pack(_MAGIC, _VERSION, digest, table.base, len(table.rows), len(reasons))
    return header + _CHECKSUM.pack(zlib.crc32(body, zlib.crc32(header))) + body


def _decode(content: bytes, digest: bytes) -> UnwindTable | None:
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
    return UnwindTable(base, rows, json.loads(bytes(body[:reasons])))
