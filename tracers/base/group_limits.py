"""Limits of control groups on memory, on disks and on the number of processes, versions 1 and 2, and what was used.

Formats: the kernel's Documentation/admin-guide/cgroup-v2.rst, and cgroup-v1/{memory,blkio-controller,pids}.rst.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from ...converters.base.units import count, plural
from ...converters.model.group_limits import (
    MEMORY,
    MOST_DEVICES,
    MOST_PIDS,
    PROCESSES,
    READ_BYTES,
    READS,
    WRITES,
    WRITTEN_BYTES,
    GroupLimit,
)
from .cgroups import Hierarchy, groups_up, hierarchies, memberships, read
from .layers import Layers
from .procfs import PROC

_MOST = 512
"""Groups that are known; others are not reported."""
_MOST_LIMITS = 64
"""Limits of a group, of which each disk has some."""
_UNLIMITED = 1 << 62
"""Limit that no machine has: memory without one has such a one in version 1 (PAGE_COUNTER_MAX)."""
_SLICE = 0.005
"""Maximum seconds of looking at known groups at a time."""
_REFRESH = 0.5
_DIGITS = 20
_MOUNTS = 1 << 22
"""Bytes of the list of mounts that are read."""
_CONTROLLERS = (b"memory", b"blkio", b"pids")
_V1_DISKS = {
    b"read_bps": (READ_BYTES, b"io_service_bytes", b"Read"),
    b"write_bps": (WRITTEN_BYTES, b"io_service_bytes", b"Write"),
    b"read_iops": (READS, b"io_serviced", b"Read"),
    b"write_iops": (WRITES, b"io_serviced", b"Write"),
}
_V2_DISKS = {
    b"rbps": (READ_BYTES, b"rbytes"),
    b"wbps": (WRITTEN_BYTES, b"wbytes"),
    b"riops": (READS, b"rios"),
    b"wiops": (WRITES, b"wios"),
}


@dataclass(frozen=True, slots=True)
class _Limit:
    """A limit, and the kernel's count for it since the group was made."""

    kind: str
    name: str
    device: str
    limit: int
    count: int


_Key = tuple[str, str]
"""Name of a limit, and its device."""


@dataclass(slots=True)
class _Group:
    name: str
    folder: bytes
    controllers: frozenset[bytes]
    """Controllers of version 1; empty: version 2."""
    pids: set[int] = field(default_factory=set)
    first: dict[_Key, tuple[float, _Limit]] = field(default_factory=dict)
    last: dict[_Key, tuple[float, _Limit]] = field(default_factory=dict)

    def look(self) -> None:
        """Reads limits and counts; a group that is gone keeps its values."""
        at = time.monotonic()
        for limit in limits_of(self.folder, self.controllers):
            key = limit.name, limit.device
            if key in self.first or len(self.first) < _MOST_LIMITS:
                self.first.setdefault(key, (at, limit))
                self.last[key] = at, limit

    def found(self, layers: Layers) -> list[GroupLimit]:
        """The limits, as of the last look."""
        made = []
        for key, (end, limit) in self.last.items():
            begin, before = self.first[key]
            used = max(limit.count - before.count, 0)
            devices = _on_disk(limit.device, layers) if limit.device else []
            pids = sorted(self.pids)[:MOST_PIDS]
            ns = round((end - begin) * 1e9)
            made.append(GroupLimit(self.name, limit.kind, limit.name, limit.limit, used, ns, devices, pids))
        return made


class GroupLimits:
    """The groups of the processes of a trace."""

    def __init__(self, mountinfo: Path = PROC / "self" / "mountinfo") -> None:
        self._mountinfo = mountinfo
        text = read(mountinfo)
        found = [(each, name) for name in _CONTROLLERS for each in hierarchies(text, name)]
        self._first = [(each, name) for each, name in found if each.version == 1]
        self._second = next((each for each, _ in found if each.version == 2), None)
        self._groups: dict[bytes, _Group] = {}
        self._of: dict[bytes, tuple[bytes, ...]] = {}
        """Folders with limits or without, by membership."""
        self._limited: list[_Group] = []
        self._next, self._place = 0.0, 0

    def add(self, pid: int, membership: bytes) -> None:
        """A process is in these groups. ``membership``: the content of /proc/PID/cgroup."""
        if membership not in self._of:
            if len(self._of) >= 4 * _MOST:
                return
            self._of[membership] = self._folders(membership)
        for folder in self._of[membership]:
            if len(self._groups[folder].pids) < MOST_PIDS:
                self._groups[folder].pids.add(pid)

    def poll(self) -> None:
        """Looks at groups with limits now and then: they may be gone before the end."""
        now = time.monotonic()
        if now < self._next:
            return
        for _ in range(len(self._limited)):
            self._place = (self._place + 1) % len(self._limited)
            self._limited[self._place].look()
            if time.monotonic() >= now + _SLICE:
                break
        self._next = time.monotonic() + _REFRESH

    def found(self) -> list[GroupLimit]:
        """Limits of all groups, by a last look."""
        for group in self._limited:
            group.look()
        layers = Layers(read(self._mountinfo, _MOUNTS)) if self._limited else Layers(b"")
        return [limit for group in self._limited for limit in group.found(layers)]

    def _folders(self, membership: bytes) -> tuple[bytes, ...]:
        found = []
        for controllers, path in memberships(membership):
            if not controllers and self._second:
                found += self._up_from(self._second, frozenset(), path)
            for hierarchy, name in self._first:
                if name in controllers:
                    found += self._up_from(hierarchy, controllers, path)
        return tuple(found)

    def _up_from(self, hierarchy: Hierarchy, controllers: frozenset[bytes], path: bytes) -> list[bytes]:
        found = []
        for name, folder in groups_up(hierarchy, path):
            if folder not in self._groups:
                if len(self._groups) >= _MOST:
                    continue
                group = self._groups[folder] = _Group(name, folder, controllers)
                group.look()
                if group.first:
                    self._limited.append(group)
            found.append(folder)
        return found


def refusals(limits: Iterable[GroupLimit]) -> list[str]:
    """Sentences on groups that could make no process or thread any more: who was refused waits for nothing, but fails,
    or tries again."""
    return [
        f"control group {limit.cgroup} may have {plural(limit.limit, 'process')} and threads ({limit.name}): "
        f"{count(limit.used)} more {'was' if limit.used == 1 else 'were'} refused"
        for limit in limits
        if limit.kind == PROCESSES and limit.used
    ]


def limits_of(folder: bytes, controllers: frozenset[bytes]) -> list[_Limit]:
    """Limits of a group that are set. ``controllers``: those of version 1 in this folder; empty: version 2."""
    if controllers:
        return [limit for name, read_all in _V1 if name in controllers for limit in read_all(folder)]
    return [*_memory(folder), *_disks(folder), *_processes(folder)]


def _memory(folder: bytes) -> list[_Limit]:
    events = _counts(read(folder + b"/memory.events"))
    found = []
    for name in ("high", "max"):
        limit = _number(read(folder + b"/memory." + name.encode()))
        if limit is not None:
            found.append(_Limit(MEMORY, f"memory.{name}", "", limit, events.get(name.encode(), 0)))
    return found


def _memory_v1(folder: bytes) -> list[_Limit]:
    limit = _number(read(folder + b"/memory.limit_in_bytes"))
    if limit is None or limit >= _UNLIMITED:
        return []
    count = _number(read(folder + b"/memory.failcnt")) or 0
    return [_Limit(MEMORY, "memory.limit_in_bytes", "", limit, count)]


def _disks(folder: bytes) -> list[_Limit]:
    limits = _by_device(read(folder + b"/io.max"))
    if not limits:
        return []
    counts = _by_device(read(folder + b"/io.stat"))
    found = []
    for device, fields in limits.items():
        for name, (kind, counter) in _V2_DISKS.items():
            if (limit := fields.get(name)) is not None:
                count = counts.get(device, {}).get(counter, 0)
                found.append(_Limit(kind, f"io.max {name.decode()}", device, limit, count))
    return found


def _disks_v1(folder: bytes) -> list[_Limit]:
    found = []
    for name, (kind, counter, direction) in _V1_DISKS.items():
        for line in read(folder + b"/blkio.throttle." + name + b"_device").split(b"\n"):
            words = line.split()
            if len(words) == 2 and _is_device(words[0]) and (limit := _number(words[1])) is not None:
                device = words[0].decode()
                count = _served(read(folder + b"/blkio.throttle." + counter), words[0], direction)
                found.append(_Limit(kind, f"blkio.throttle.{name.decode()}_device", device, limit, count))
    return found


def _processes(folder: bytes) -> list[_Limit]:
    limit = _number(read(folder + b"/pids.max"))
    if limit is None:
        return []
    return [_Limit(PROCESSES, "pids.max", "", limit, _counts(read(folder + b"/pids.events")).get(b"max", 0))]


_V1 = ((b"memory", _memory_v1), (b"blkio", _disks_v1), (b"pids", _processes))


def _served(text: bytes, device: bytes, direction: bytes) -> int:
    """``8:0 Read 4096``"""
    for line in text.split(b"\n"):
        words = line.split()
        if words[:2] == [device, direction] and len(words) == 3:
            return _number(words[2]) or 0
    return 0


def _by_device(text: bytes) -> dict[str, dict[bytes, int]]:
    """Lines ``8:0 rbps=1048576 wbps=max``; what is no number is left out."""
    found = {}
    for line in text.split(b"\n"):
        device, *fields = line.split() or [b""]
        if not _is_device(device):
            continue
        pairs = [(name, _number(value)) for name, _, value in (each.partition(b"=") for each in fields)]
        found[device.decode()] = {name: number for name, number in pairs if number is not None}
    return found


def _counts(text: bytes) -> dict[bytes, int]:
    """Lines ``high 12``"""
    pairs = [line.split() for line in text.split(b"\n")]
    return {words[0]: number for words in pairs if len(words) == 2 and (number := _number(words[1])) is not None}


def _number(text: bytes) -> int | None:
    """None for ``max``, and for what is no number."""
    text = text.strip()
    return int(text) if text.isdigit() and len(text) <= _DIGITS and int(text) < 1 << 64 else None


def _is_device(text: bytes) -> bool:
    major, colon, minor = text.partition(b":")
    return bool(colon) and major.isdigit() and minor.isdigit() and len(text) <= _DIGITS


def _on_disk(device: str, layers: Layers) -> list[str]:
    """The numbers of a disk, of what is made of it, and of the file systems on it that have numbers of their own."""
    disks = disk_and_parts(device)
    return [*disks, *layers.on(disks)][:MOST_DEVICES]


def disk_and_parts(device: str, sys: Path = Path("/sys")) -> list[str]:
    """The numbers of a disk, of its partitions, and of the devices that are made of these (device mapper, RAID)."""
    found, waiting = [device], [device]
    while waiting and len(found) < MOST_DEVICES:
        place = sys / "dev/block" / waiting.pop()
        for folder in (place, place / "holders"):
            for name in _names(folder):
                number = read(folder / name / "dev").strip()
                if _is_device(number) and (text := number.decode()) not in found and len(found) < MOST_DEVICES:
                    found.append(text)
                    waiting.append(text)
    return found


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
