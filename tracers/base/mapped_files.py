"""Files that processes have mapped, by address: /proc/PID/maps (proc(5)). No file is asked for anything."""

from __future__ import annotations

import os
import re

from ..outside.reads import maps

_LINE = re.compile(
    rb"^([0-9a-f]{1,16})-([0-9a-f]{1,16}) [r-][w-][x-][ps] [0-9a-f]{1,16} "
    rb"([0-9a-f]{1,8}):([0-9a-f]{1,8}) (\d{1,20}) *(.*)$",
    re.MULTILINE,
)


def path_at(pid: int, address: int, device: str, inode: int) -> str:
    """Path of a file that is mapped at an address, or by now at another one; "" if nothing or another file is there.

    ``device``: major and minor number of the file's device: "254:0".
    """
    try:
        return parse_path(maps(pid, only_code=False), address, device, inode)
    except OSError:
        return ""


def parse_path(text: bytes, address: int, device: str, inode: int) -> str:
    """Path in the text of maps; malformed lines are left out."""
    elsewhere = b""
    for start, end, major, minor, number, path in _LINE.findall(text):
        is_it = int(number) == inode
        if int(start, 16) <= address < int(end, 16):
            return _text(path) if is_it else ""
        if is_it and f"{int(major, 16)}:{int(minor, 16)}" == device:
            elsewhere = path
    return _text(elsewhere)


def _text(path: bytes) -> str:
    # The kernel escapes newlines and nothing else.
    return os.fsdecode(path.replace(b"\\012", b"\n"))
