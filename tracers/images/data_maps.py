"""All mappings of a process, for addresses of data: /proc/PID/maps."""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from ..outside.reads import maps

_DELETED = " (deleted)"
# proc(5): start-end perms offset major:minor inode    path.
_LINE = re.compile(
    rb"^([0-9a-f]{1,16})-([0-9a-f]{1,16}) [r-][w-][x-]([ps]) ([0-9a-f]{1,16}) "
    rb"([0-9a-f]{1,8}):([0-9a-f]{1,8}) (\d{1,20}) *(.*)$",
    re.MULTILINE,
)


class DataMap(NamedTuple):
    """Addresses [start, end) show the file from byte ``offset`` on."""

    start: int
    end: int
    offset: int
    dev: int
    inode: int
    path: str
    """Path as the kernel gives it, without `` (deleted)``; hostile."""
    is_shared: bool
    """Whether other processes see what one process writes there."""


def parse_data_maps(text: bytes) -> list[DataMap]:
    """The mappings in ``text``, the content of a /proc/PID/maps, in its order, which is by address."""
    found = []
    for start, end, how, offset, major, minor, inode, path in _LINE.findall(text):
        name = os.fsdecode(path.replace(b"\\012", b"\n")).removesuffix(_DELETED)
        dev = os.makedev(int(major, 16) & 0xFFF, int(minor, 16) & 0xFFFFF)
        found.append(DataMap(int(start, 16), int(end, 16), int(offset, 16), dev, int(inode), name, how == b"s"))
    return found


def read_data_maps(pid: int) -> list[DataMap]:
    """Mappings of data of a live process; none if it has exited or may not be read."""
    try:
        return parse_data_maps(maps(pid, only_code=False))
    except OSError:
        return []


def find(mappings: Sequence[DataMap], address: int) -> DataMap | None:
    """The mapping that contains ``address``; ``mappings`` are sorted."""
    place = bisect_right(mappings, address, key=lambda mapping: mapping.start) - 1
    return mappings[place] if place >= 0 and address < mappings[place].end else None
