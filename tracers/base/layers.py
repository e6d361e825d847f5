"""File systems without a disk's number that are on disks: overlays and Btrfs.

Formats: proc(5), /proc/PID/mountinfo; the kernel's Documentation/filesystems/overlayfs.rst.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Collection
from typing import NamedTuple

_ESCAPE = re.compile(rb"\\([0-7]{3})")
_LAYERS = (b"lowerdir", b"lowerdir+", b"datadir+", b"upperdir")
_MOST_LAYERS = 512


class _Mount(NamedTuple):
    device: str
    point: bytes
    kind: bytes
    source: bytes
    options: bytes


class Layers:
    """Mounts of our namespace. No path is followed: what is mounted where tells on which disk a folder is."""

    def __init__(self, mountinfo: bytes, number_of: Callable[[bytes], str] | None = None) -> None:
        """``number_of``: finds the number of a block device by its path; None: by the device's file."""
        self._mounts = _parsed(mountinfo)
        # A later mount at the same place hides an earlier one.
        self._by_point = {each.point: each.device for each in self._mounts}
        self._number_of = number_of or _number_of

    def on(self, devices: Collection[str]) -> list[str]:
        """Numbers of the Btrfs on these disks, and of overlays all layers of which are on them, or on such a Btrfs. A
        Btrfs of several disks is found by the one that it was mounted with."""
        known = {each for each in devices if each}
        found: dict[str, None] = {}
        for each in self._mounts:
            if each.kind == b"btrfs" and each.device not in known and self._number_of(each.source) in known:
                found[each.device] = None
        known.update(found)
        for each in self._mounts:
            of_layers = (
                {self._device_of(layer) for layer in _layers(each.options)} if each.kind == b"overlay" else set()
            )
            if of_layers and of_layers <= known:
                found[each.device] = None
        return list(found)

    def _device_of(self, path: bytes) -> str:
        """The number of the file system that a folder is on; "" if it is not known."""
        if not path.startswith(b"/"):
            return ""
        while path not in self._by_point and path != b"/":
            path = path.rpartition(b"/")[0] or b"/"
        return self._by_point.get(path, "")


def _parsed(mountinfo: bytes) -> list[_Mount]:
    """``36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue``; malformed lines are left
    out."""
    found = []
    for line in mountinfo.split(b"\n"):
        fields, _, rest = line.partition(b" - ")
        words, described = fields.split(b" "), rest.split(b" ")
        if len(words) >= 5 and len(described) >= 3:
            source, options = (_unescaped(each) for each in described[1:3])
            device = words[2].decode(errors="replace")
            found.append(_Mount(device, _unescaped(words[4]), described[0], source, options))
    return found


def _layers(options: bytes) -> list[bytes]:
    """The folders of an overlay; colons and commas in their names have a backslash."""
    found = []
    for option in re.split(rb"(?<!\\),", options):
        name, _, value = option.partition(b"=")
        if name in _LAYERS:
            # Layers only for data follow two colons.
            parts = [value] if name != b"lowerdir" else [each for each in re.split(rb"(?<!\\):", value) if each]
            found += [re.sub(rb"\\([:,\\])", rb"\1", each) for each in parts]
    return found if len(found) <= _MOST_LAYERS else []


def _unescaped(text: bytes) -> bytes:
    return _ESCAPE.sub(lambda found: bytes([int(found[1], 8) & 255]), text)


def _number_of(path: bytes) -> str:
    if not path.startswith(b"/dev/"):
        return ""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return ""
    return f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}" if stat.S_ISBLK(status.st_mode) else ""
