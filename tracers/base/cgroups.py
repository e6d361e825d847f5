"""CPU limits of control groups, versions 1 and 2, and how often groups were throttled."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ...converters.model.pressure import Pressure
from ...converters.model.processes import CpuLimit
from .pressure import Stalled, stalled
from .procfs import PROC

_MOST = 4096
"""Maximum number of known groups; others are not reported."""
_MOST_ABOVE = 64
"""Maximum number of a group's ancestors, itself included."""
_MOST_PRESSED = 64
"""Maximum number of groups of which the pressure is read."""
_BYTES = 1 << 16
_PRESSURE = b".pressure"
_ESCAPE = re.compile(rb"\\([0-7]{3})")


@dataclass(frozen=True)
class Hierarchy:
    """Groups of one kind, as they are mounted."""

    version: int
    root: bytes
    """The group that is mounted; in a container perhaps its own."""
    mount: bytes


@dataclass(slots=True)
class _Group:
    """One group, with or without a quota. The counts are the kernel's, since the group was created."""

    name: str
    folder: bytes
    version: int
    quota_us: int = 0
    """Quota in µs per period; 0: none."""
    period_us: int = 0
    first: tuple[int, int, int] | None = None
    """Periods, throttled periods and throttled ns, when first seen."""
    last: tuple[int, int, int] | None = None

    def look(self) -> None:
        """Reads quota and counts; a group that is gone keeps its values."""
        quota, period = _quota(self)
        if quota and period:
            self.quota_us, self.period_us = quota, period
        elif self.quota_us and quota is not None:
            self.quota_us = 0  # it was lifted meanwhile
        if self.quota_us and (now := _counted(self)):
            self.first = self.first or now
            self.last = now

    def limit(self) -> CpuLimit:
        """The limit, as of the last look."""
        counted = [0, 0, 0]
        if self.first and self.last:
            counted = [max(now - then, 0) for then, now in zip(self.first, self.last, strict=True)]
        return CpuLimit(self.name, self.quota_us, self.period_us, *counted)


class Cgroups:
    """The requested groups, with their counts when they were first seen."""

    def __init__(self, mountinfo: Path = PROC / "self" / "mountinfo") -> None:
        self._hierarchies = hierarchies(read(mountinfo), b"cpu")
        self._groups: dict[bytes, _Group] = {}
        self._stalled: dict[bytes, Stalled] = {}
        """Stalls of groups of version 2, when they were first seen, by folder."""

    def of(self, membership: bytes) -> tuple[bytes, ...]:
        """The groups of a process, innermost first: the folders that `limits` takes.

        ``membership``: the content of /proc/PID/cgroup.
        """
        found: list[bytes] = []
        for controllers, path in memberships(membership):
            if controllers and b"cpu" not in controllers:
                continue
            for hierarchy in self._hierarchies:
                if hierarchy.version == (1 if controllers else 2):
                    found += self._up_from(hierarchy, path)
        return tuple(found)

    def _up_from(self, hierarchy: Hierarchy, path: bytes) -> list[bytes]:
        folders = []
        for name, folder in groups_up(hierarchy, path):
            if folder not in self._groups:
                if len(self._groups) >= _MOST:
                    continue
                group = _Group(name, folder, hierarchy.version)
                self._groups[folder] = group
                group.look()
                if hierarchy.version == 2 and len(self._stalled) < _MOST_PRESSED:  # version 1 has none
                    self._stalled[folder] = stalled(folder, _PRESSURE)
            folders.append(folder)
        return folders

    def look(self) -> None:
        """Updates the counts of groups with a quota: they may be gone before the end."""
        for group in self._groups.values():
            if group.quota_us:
                group.look()

    def pressure(self) -> list[Pressure]:
        """Pressure of the groups since they were first seen; a group that is gone is left out."""
        return [
            each
            for folder, before in self._stalled.items()
            if before.times
            for each in stalled(folder, _PRESSURE).since(before, self._groups[folder].name)
        ]

    def limits(self, folders: tuple[bytes, ...]) -> tuple[CpuLimit, ...]:
        """Limits of the groups with a quota, as of the last look."""
        return tuple(self._groups[folder].limit() for folder in folders if self._groups[folder].quota_us)


def _quota(group: _Group) -> tuple[int | None, int]:
    """Quota (0: none; None: cannot be read) and period, in µs."""
    if group.version == 2:
        words = read(group.folder + b"/cpu.max").split()  # "max 100000"
    else:
        words = [*read(group.folder + b"/cpu.cfs_quota_us").split()[:1]]
        words += read(group.folder + b"/cpu.cfs_period_us").split()[:1]
    if len(words) != 2 or not words[1].isdigit():
        return None, 0
    return (int(words[0]) if words[0].isdigit() else 0), int(words[1])


def _counted(group: _Group) -> tuple[int, int, int] | None:
    """Periods, throttled periods, throttled ns: the kernel's Documentation/scheduler/sched-bwc.rst; v2 has µs."""
    fields = {}
    for line in read(group.folder + b"/cpu.stat").splitlines():
        name, _, number = line.partition(b" ")
        if number.isdigit():
            fields[name] = int(number)
    time = fields.get(b"throttled_time") if group.version == 1 else fields.get(b"throttled_usec")
    if time is None or b"nr_periods" not in fields or b"nr_throttled" not in fields:
        return None
    return fields[b"nr_periods"], fields[b"nr_throttled"], time * (1 if group.version == 1 else 1_000)


def groups_up(hierarchy: Hierarchy, path: bytes) -> list[tuple[str, bytes]]:
    """A group and those above it, innermost first: name (hostile) and folder. ``path``: as /proc/PID/cgroup has it; []
    if it is outside of what is mounted."""
    root = hierarchy.root.rstrip(b"/")
    if path != root and not path.startswith(root + b"/"):
        return []
    parts = [part for part in path[len(root) :].split(b"/") if part]
    if b".." in parts or len(parts) >= _MOST_ABOVE:  # outside of the visible groups
        return []
    found = []
    for depth in range(len(parts), -1, -1):
        folder = b"/".join([hierarchy.mount.rstrip(b"/"), *parts[:depth]])
        name = root + b"".join(b"/" + part for part in parts[:depth]) or b"/"
        found.append((name.decode(errors="surrogateescape"), folder))
    return found


def memberships(text: bytes) -> list[tuple[frozenset[bytes], bytes]]:
    """Lines of a /proc/PID/cgroup (cgroups(7)): the controllers, and the path; of version 2 without controllers."""
    found = []
    for line in text.split(b"\n"):
        number, _, rest = line.partition(b":")
        controllers, _, path = rest.partition(b":")
        if number == b"0" and not controllers:
            found.append((frozenset[bytes](), path))
        elif controllers:
            found.append((frozenset(controllers.split(b",")), path))
    return found


def hierarchies(mountinfo: bytes, controller: bytes) -> list[Hierarchy]:
    """Places where the groups of a controller are mounted, each hierarchy once: proc(5), /proc/PID/mountinfo."""
    found: dict[int, Hierarchy] = {}
    for line in mountinfo.split(b"\n"):
        fields, _, rest = line.partition(b" - ")
        words, described = fields.split(b" "), rest.split(b" ")
        if len(words) < 5 or len(described) < 3:
            continue
        if described[0] == b"cgroup2":
            version = 2
        elif described[0] == b"cgroup" and controller in described[2].split(b","):
            version = 1
        else:
            continue
        root, mount = (_ESCAPE.sub(lambda m: bytes([int(m[1], 8) & 255]), words[i]) for i in (3, 4))
        # A mount of the topmost group shows most.
        if version not in found or len(root) < len(found[version].root):
            found[version] = Hierarchy(version, root, mount)
    return list(found.values())


def read(path: Path | bytes, most: int = _BYTES) -> bytes:
    """The beginning of a file, so many bytes; b"" if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(most)
    except (OSError, ValueError):  # a NUL
        return b""
