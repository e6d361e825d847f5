"""Processes that serve FUSE file systems: they have the device open by which a connection is answered.

Which connection a descriptor is for, the kernel tells in its fdinfo, as ``fuse_connection`` (`fuse_dev_show_fdinfo` of
fs/fuse/dev.c, since 6.16); the number is the kernel's own of the file system's device. Older kernels do not tell it.
"""

from __future__ import annotations

import os
from itertools import islice

from ..outside.reads import heads
from .open_descriptors import fields_of

LINK = "/dev/fuse"
"""Target of a server's descriptor."""
_FIELD = b"fuse_connection"
_MOST, _LOOKED_AT = 64, 1 << 14
"""Connections of a process, and descriptors that are looked at."""
_INFO = 4096
"""Bytes of a fdinfo."""
_DIGITS = 10
"""Digits of a number of 32 bits."""


def served_by(pid: int) -> set[int]:
    """Numbers of the connections for which a process has the device open."""
    folder = f"/proc/{pid}/fd"
    try:
        with os.scandir(folder) as entries:
            names = [each.name for each in islice(entries, _LOOKED_AT) if _is_device(f"{folder}/{each.name}")]
    except OSError:
        return set()
    if not names:
        return set()
    texts = heads([pid], [(f"fdinfo/{name}", _INFO) for name in names[:_MOST]]).get(pid, [])
    numbers = (fields_of(text).get(_FIELD, b"") for text in texts if text)
    return {int(number) for number in numbers if number.isdigit() and len(number) <= _DIGITS}


def _is_device(path: str) -> bool:
    try:
        return os.readlink(path) == LINK
    except OSError:
        return False
