"""Files that processes have mapped, by address: /proc/PID/maps (proc(5)). No file is asked for anything."""

from __future__ import annotations

import os
import re

from ..outside.reads import maps

_LINE = re.compile(
    rb"^([0-9a-f]{1,16})-([0-9a-f]{1,16}) [r-][w-][x-][ps] [0-9a-f]{1,16} "
    rb"[0-9a-f]{1,8}:[0-9a-f]{1,8} (\d{1,20}) *(.*)$",
    re.MULTILINE,
)


def path_at(pid: int, address: int, inode: int) -> str:
    """Path of the file with this inode that is mapped at an address; "" if nothing or another file is there by now."""
    try:
        return parse_path(maps(pid, only_code=False), address, inode)
    except OSError:
        return ""


def parse_path(text: bytes, address: int, inode: int) -> str:
    """Path in the text of maps; malformed lines are left out."""
    for start, end, number, path in _LINE.findall(text):
        if int(start, 16) <= address < int(end, 16):
            # The kernel escapes newlines and nothing else.
            return os.fsdecode(path.replace(b"\\012", b"\n")) if int(number) == inode else ""
    return ""
