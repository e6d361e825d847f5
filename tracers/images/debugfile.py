"""Finds separate debug files, by build-id and by .gnu_debuglink, in the places that GDB's manual names.

A debug file must have the program's build-id; if neither has one, it must have the CRC-32 that the link states.
That also applies to files from elsewhere, such as a debuginfod server.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable

from .elf import ElfError, ElfFile, FileSource
from .files import Root
from .symtab import has_symtab

_DEBUG = "/usr/lib/debug"
_MAX_CRC_BYTES = 1 << 30


def find_debug_file(elf: ElfFile, path: str, roots: Iterable[Root]) -> tuple[ElfFile, int] | None:
    """The debug file of the program at ``path`` in its root, as (file, descriptor, which becomes the caller's).

    None when no root has one that matches and has symbols or source lines.
    """
    build_id = elf.build_id()
    link = elf.debug_link()
    for root in roots:
        found = None
        if len(build_id) > 2:
            found = _open(root, f"{_DEBUG}/.build-id/{build_id[:2]}/{build_id[2:]}.debug", build_id, None)
        if found is None and link is not None:
            found = _by_link(root, path, link, build_id)
        if found is not None:
            return found
    return None


def _by_link(root: Root, path: str, link: tuple[str, int], build_id: str) -> tuple[ElfFile, int] | None:
    name, crc = link
    folder = os.path.dirname(path)
    for candidate in (f"{folder}/{name}", f"{folder}/.debug/{name}", f"{_DEBUG}{folder}/{name}"):
        found = _open(root, candidate, build_id, crc)
        if found is not None:
            return found
    return None


def _open(root: Root, path: str, build_id: str, crc: int | None) -> tuple[ElfFile, int] | None:
    try:
        fd = root.open_regular(path)
    except (OSError, ValueError):
        return None
    return verified(fd, build_id, crc)


def verified(fd: int, build_id: str, crc: int | None = None) -> tuple[ElfFile, int] | None:
    """An open file, if it is the debug file of the program with this ``build_id`` (or, without one, ``crc``) and has
    symbols or source lines; otherwise closes it and returns None."""
    try:
        elf = ElfFile(FileSource(fd))
        if elf.build_id() != build_id:
            raise ElfError("another build-id")
        # A build-id is the better proof, and computing the CRC of a debug file of gigabytes takes seconds.
        if not (has_symtab(elf) or has_lines(elf)) or (not build_id and _crc32(fd) != crc):
            raise ElfError("of no use")
    except (ElfError, OSError):
        os.close(fd)
        return None
    return elf, fd


def has_lines(elf: ElfFile) -> bool:
    """Whether it has DWARF: source lines and inlined functions."""
    return any(elf.section_header(name) is not None for name in (b".debug_info", b".zdebug_info"))


def _crc32(fd: int) -> int:
    crc = at = 0
    while at < _MAX_CRC_BYTES:
        data = os.pread(fd, 1 << 20, at)
        if not data:
            return crc
        crc = zlib.crc32(data, crc)
        at += len(data)
    return -1
