"""Meaning of an ioctl command: the parts that `_IOC` packs into its number, and its name on a device."""

from __future__ import annotations

import stat
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from . import nvidia
from .families import NVIDIA, UVM, File, family_of
from .table import read

CHARACTER = stat.S_IFCHR
"""`File.mode` of a character device."""
_FILE = Path(__file__).with_name("linux.tsv")
_EVERY = ""
"""The family of commands that every file takes."""
_FEW = 0xFF
"""Commands below are numbered without a type: of those for every file only regular files know them (FIBMAP)."""
_NO_DRIVER = (0, 1)
"""Majors of files that are no device, and of /dev/null and the like: no driver gives commands a meaning there."""
_TERMINAL = 0x54
"""Terminals' old commands begin with this: the C library asks files of all kinds with them, as isatty() does."""
_DIRECTIONS = ("_IO", "_IOW", "_IOR", "_IOWR")


class Parts(NamedTuple):
    """Parts of a number made with asm-generic/ioctl.h's macros. ``size``: bytes of the argument."""

    direction: str
    """The macro: _IO, _IOW, _IOR or _IOWR."""
    type: int
    nr: int
    size: int


def parts(command: int) -> Parts:
    """Takes a command apart. Old commands (below 0x10000) and those of some devices are plain numbers: see `name`."""
    return Parts(_DIRECTIONS[command >> 30 & 3], command >> 8 & 0xFF, command & 0xFF, command >> 16 & 0x3FFF)


def name(file: File, command: int, detail: int = 0) -> str:
    """The command's name as its header calls it; ``0x…`` where none is known for such a file.

    ``detail``: of an NVIDIA command the RM control's number or the class of the object, which the argument holds.
    """
    family = family_of(file)
    if family == NVIDIA:
        return nvidia.escape(command, detail)
    if family == UVM:
        return nvidia.uvm(command)
    found = _names().get((family, command))
    if not found and (command > _FEW or stat.S_ISREG(file.mode)):
        found = _names().get((_EVERY, command))
    if not found and not family and command >> 8 == _TERMINAL and file.major in _NO_DRIVER:
        found = _names().get(("tty", command))
    return found or f"{command:#x}"


def locks(file: File, command: int, detail: int) -> str:
    """The locks that the command is known to take; "" if nothing is known."""
    return nvidia.locks(command, detail) if family_of(file) == NVIDIA else ""


@lru_cache(maxsize=1)
def _names() -> dict[tuple[str, int], str]:
    return read(_FILE)
