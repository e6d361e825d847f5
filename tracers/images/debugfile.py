"""Finds separate debug files, by build-id and by .gnu_debuglink, in the places that GDB's manual names.

A debug file must have the program's build-id; if neither has one, it must have the CRC-32 that the link states.
That also applies to files from elsewhere, such as a debuginfod server.

Anybody can write a file that claims these, and put it where it is found: in his mount namespace, or beside his file. So
it must be root's, or of the same user as the program: he decides what the program is, and may name its functions.
"""

from __future__ import annotations

import fcntl
import os
import stat
import zlib
from collections.abc import Iterator

from .elf import ElfError, ElfFile, FileSource
from .files import Root
from .symtab import has_symtab

_DEBUG = "/usr/lib/debug"
_MAX_CRC_BYTES = 1 << 30


def find_debug_file(elf: ElfFile, fd: int, path: str, root: Root) -> tuple[ElfFile, int] | None:
    """The debug file of the program at ``path``, whose file is open as ``fd``, in ``root``: as (file, descriptor, which
    becomes the caller's).

    None when there is none that matches, may name its functions, and has symbols or source lines.
    """
    build_id = elf.build_id()
    link = elf.debug_link()
    for candidate, crc in _candidates(build_id, link, os.path.dirname(path)):
        try:
            found = root.open_regular(candidate)
        except (OSError, ValueError):
            continue
        if not _may_name(found, fd):
            os.close(found)
        elif debug := verified(found, build_id, crc):
            return debug
    return None


def _candidates(build_id: str, link: tuple[str, int] | None, folder: str) -> Iterator[tuple[str, int | None]]:
    """Paths, and the checksum if one is stated."""
    if len(build_id) > 2:
        yield f"{_DEBUG}/.build-id/{build_id[:2]}/{build_id[2:]}.debug", None
    if link is not None:
        name, crc = link
        for path in (f"{folder}/{name}", f"{folder}/.debug/{name}", f"{_DEBUG}{folder}/{name}"):
            yield path, crc


def _may_name(debug: int, program: int) -> bool:
    """Whether an open debug file is by somebody who may name the functions of an open program."""
    owner = _owner(debug)
    if owner >= 0 and os.fstat(debug).st_mode & stat.S_IWOTH:
        return False
    return owner in (0, _owner(program))


def _owner(fd: int) -> int:
    """The uid of an open file's owner; -1 for a copy of one on a user's file system: what that says does not count."""
    try:
        if fcntl.fcntl(fd, fcntl.F_GET_SEALS) & fcntl.F_SEAL_WRITE:
            return -1
    except OSError:
        pass  # only files in memory have seals
    return os.fstat(fd).st_uid


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
