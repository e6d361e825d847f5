"""Origins of processes: who started each, its program and control group, and what its environment says of its job."""

from __future__ import annotations

import os
import re

from ...converters.model.origins import ENVIRONMENT, LONGEST, MOST_ANCESTORS, VARIABLES, Ancestor, ProcessOrigin
from .neighbours import named
from .procfs import PROC

_STAT = 4096
_MOST_KNOWN = 1 << 14
"""Processes whose names are remembered."""
_WANTED = {variable.encode(): variable for variable in VARIABLES}
_UNPRINTABLE = re.compile(rb"[^\x20-\x7e]")
_INIT = 1


class Origins:
    """Reads origins. The names of the processes above are read once each: ranks have the same ones."""

    def __init__(self) -> None:
        self._names: dict[tuple[int, int], str] = {}
        """Names with scripts, by pid and begin."""

    def of(self, pid: int, environment: bytes, membership: bytes, *, has_rank: bool) -> ProcessOrigin | None:
        """Origin of a process, without its name; None if it is gone.

        ``environment``, ``membership``: the bytes of /proc/PID/environ and of /proc/PID/cgroup."""
        found = _status(pid)
        if found is None:
            return None
        _, parent, began = found
        return ProcessOrigin(
            pid,
            "",
            self._above(parent),
            _executable(pid),
            group_in(membership),
            began,
            variables_in(environment),
            ENVIRONMENT if has_rank else "",
        )

    def _above(self, pid: int) -> list[Ancestor]:
        found: list[Ancestor] = []
        while pid > _INIT and len(found) < MOST_ANCESTORS:
            status = _status(pid)
            if status is None:
                break
            name, parent, began = status
            if (pid, began) not in self._names and len(self._names) < _MOST_KNOWN:
                self._names[pid, began] = named({pid: name})[pid]
            found.append(Ancestor(pid, self._names.get((pid, began), name)))
            pid = parent
        return found


def variables_in(environment: bytes) -> dict[str, str]:
    """Values of `VARIABLES` in the bytes of /proc/PID/environ, by name; printable, and of bounded length."""
    found: dict[str, str] = {}
    for entry in environment.split(b"\0"):
        name, equals, value = entry.partition(b"=")
        variable = _WANTED.get(name)
        if variable and equals and value:
            kept = _UNPRINTABLE.sub(b"?", value[:LONGEST]).decode("ascii")
            found.setdefault(variable, kept)  # getenv(3) takes the first
    return found


def group_in(membership: bytes) -> str:
    """The folder of the control group in the bytes of /proc/PID/cgroup (cgroups(7)): of version 2, or else the longest
    one; "" without one."""
    folders = [line.split(b":", 2) for line in membership.split(b"\n")]
    by_controller = {parts[1]: parts[2] for parts in folders if len(parts) == 3}
    found = by_controller.get(b"", b"/")
    if found == b"/":
        found = max(by_controller.values(), key=lambda folder: (len(folder), folder), default=b"")
    return os.fsdecode(found[:LONGEST])


def _executable(pid: int) -> str:
    """The path of its program; "" if it may not be read, or is a thread of the kernel."""
    try:
        return os.readlink(f"{PROC}/{pid}/exe")[:LONGEST]
    except OSError:
        return ""


def _status(pid: int) -> tuple[str, int, int] | None:
    """Name, parent, and begin in ticks, from /proc/PID/stat (proc(5)); None if it is gone."""
    try:
        with open(f"{PROC}/{pid}/stat", "rb") as file:
            before, _, after = file.read(_STAT).rpartition(b")")
    except OSError:
        return None
    words = after.split()
    return (os.fsdecode(before.partition(b"(")[2]), int(words[1]), int(words[19])) if len(words) > 19 else None
