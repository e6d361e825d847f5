"""Devices and files that ioctls were called on: a device by its path, other files by their kind."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import NamedTuple

from .families import File

_SYS = Path("/sys/dev")
_DEV_NAME = re.compile(r"^DEVNAME=(.+)$", re.MULTILINE)
_IN_DEV = (b"devtmpfs", b"tmpfs")
"""File systems that /dev is, on a host and in a container."""
_MINOR_BITS = 20
"""Bits of the minor number in the kernel's own device numbers, which those of user space differ from."""


class Device(NamedTuple):
    """``name``: for people; a path where it is a device (hostile)."""

    name: str
    file: File


def device_of(mode: int, number: int, filesystem: bytes, basename: bytes) -> Device:
    """``mode``: the kind of file, as in st_mode. ``number``: as the kernel has it, of the device or the file system.

    ``filesystem``: its type; ``basename``: the name of the file: both b"" when not known.
    """
    major, minor = number >> _MINOR_BITS, number & ((1 << _MINOR_BITS) - 1)
    called = os.fsdecode(basename)
    kind = os.fsdecode(filesystem)
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        path = _path(mode, major, minor, filesystem, called)
        return Device(path, File(mode, major, minor, path))
    name = _name_of_kind(mode, kind, called)
    return Device(name, File(mode, 0, 0, name))


def _path(mode: int, major: int, minor: int, filesystem: bytes, called: str) -> str:
    if filesystem == b"devpts" and called:
        return f"/dev/pts/{called}"
    if found := _known(mode, major, minor):
        return f"/dev/{found}"
    if called:
        return f"/dev/{called}" if filesystem in _IN_DEV else called
    return f"{'block' if stat.S_ISBLK(mode) else 'char'} device {major}:{minor}"


def _known(mode: int, major: int, minor: int) -> str:
    """The name that the kernel gives to the device, below /dev; "" if it has none (NVIDIA's, for example)."""
    kind = "block" if stat.S_ISBLK(mode) else "char"
    try:
        found = _DEV_NAME.search((_SYS / kind / f"{major}:{minor}" / "uevent").read_text(errors="surrogateescape"))
    except OSError:
        return ""
    return found[1] if found else ""


def _name_of_kind(mode: int, filesystem: str, called: str) -> str:
    if stat.S_ISSOCK(mode):
        return "socket"
    if stat.S_ISFIFO(mode):
        return "pipe"
    if filesystem == "anon_inodefs":
        return f"anon_inode:{called}"
    if filesystem == "dmabuf":
        return "/dmabuf:"
    what = "folder" if stat.S_ISDIR(mode) else "file"
    return f"{what} ({filesystem})" if filesystem else "no such descriptor" if not mode else what
