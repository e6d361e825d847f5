"""Programs of 32-bit code, found when a traced process maps them: what the kernel does not report of these."""

from __future__ import annotations

import os
from collections.abc import Iterator

from .....converters.base.text import some
from ....images.files import open_mapped
from ....images.maps import Mapping
from .probed import is_program, root_of

_HIGHEST = 1 << 32
_MOST = 1 << 12
"""Files that are remembered."""
_MAGIC, _CLASS_32 = b"\x7fELF", 1
"""EI_MAG0 and ELFCLASS32 of elf.h."""


class NarrowPrograms:
    """The 32-bit programs that traced processes run."""

    def __init__(self) -> None:
        self._known: set[tuple[int, int] | str] = set()
        self._names: list[str] = []

    def look(self, pid: int, mapping: Mapping) -> None:
        """A traced process has mapped a file."""
        # 64-bit programs can lie there, too; few do, and each of them is looked into once.
        if mapping.end > _HIGHEST or not mapping.is_file or mapping.key in self._known or len(self._known) >= _MOST:
            return
        self._known.add(mapping.key)
        name = os.path.basename(mapping.file_path)
        if name in self._names or not _is_narrow(pid, mapping):  # a file can have several keys
            return
        if is_program(pid, mapping) or (_is_gone(pid) and ".so" not in name):
            self._names.append(name)

    def remarks(self) -> Iterator[str]:
        """A sentence if there are any."""
        if self._names:
            yield f"the kernel does not report ioctls of 32-bit programs: those of {some(self._names)} are missing"


def _is_gone(pid: int) -> bool:
    return not os.path.exists(f"/proc/{pid}/exe")


def _is_narrow(pid: int, mapping: Mapping) -> bool:
    root = root_of(pid)
    try:
        fd = open_mapped(pid, mapping, root)
    except (OSError, ValueError):
        return False
    finally:
        root.close()
    try:
        head = os.read(fd, 5)
    finally:
        os.close(fd)
    return head[:4] == _MAGIC and head[4:] == bytes([_CLASS_32])
