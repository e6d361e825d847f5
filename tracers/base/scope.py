"""The processes and threads that a trace covers."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

from ...converters.base.errors import StallscopeError
from ...converters.base.units import plural
from ..outside.client import CLIENT
from . import procfs

_CGROUP_MOUNT = Path("/sys/fs/cgroup")
_CGROUP_FILE_SYSTEMS = (0x27E0EB, 0x63677270)
"""CGROUP_SUPER_MAGIC and CGROUP2_SUPER_MAGIC of include/uapi/linux/magic.h: others may hold any text."""


@dataclass
class Scope:
    """The user's choice. At least one of the first five is given; they are combined.

    ``tgids`` / ``tids`` also hold the processes and threads resolved so far.
    """

    pids: list[int] = field(default_factory=list)
    threads: list[int] = field(default_factory=list)
    name: re.Pattern[str] | None = None
    cgroup: Path | None = None
    everything: bool = False
    children: bool = True
    """Whether processes that traced ones fork during the trace are traced."""
    descendants: bool = False
    """Whether processes that ``pids``, and processes that match ``name``, have forked before are traced."""
    peers: bool = False
    """Whether processes for which traced ones wait are traced, too."""
    tgids: set[int] = field(default_factory=set)
    tids: set[int] = field(default_factory=set)
    ours: set[int] = field(default_factory=set)
    """Processes that work for the tracer; always excluded."""
    waits: bool = False
    """No process has matched so far: the scope waits for processes by ``name``."""
    left_out: dict[int, dict[int, bytes]] = field(default_factory=dict, compare=False)
    """Processes that those of the scope had forked before they were traced, and that are not traced: what they had of
    the cores by then (`procfs.cpu_times`)."""
    _callers: set[int] = field(default_factory=lambda: procfs.ancestors(os.getpid()), repr=False, compare=False)

    def resolve(self) -> None:
        """Finds the existing processes. StallscopeError when a requested one does not exist."""
        for pid in self.pids:
            tgid = procfs.tgid_of(pid)
            if tgid is None:
                raise StallscopeError(f"there is no process {pid}", "see `ps -e`; a name can be given with -n REGEX")
            if tgid != pid:
                raise StallscopeError(
                    f"{pid} is a thread of process {tgid}",
                    f"trace the process with -p {tgid}, the thread with -t {pid}",
                )
            if procfs.has_ended(pid):
                raise StallscopeError(
                    f"process {pid} has ended: it is a zombie", "trace its parent, which has to reap it"
                )
            self.tgids.add(pid)
        for tid in self.threads:
            if procfs.tgid_of(tid) is None:
                raise StallscopeError(f"there is no thread {tid}", "see `ps -eL`")
            self.tids.add(tid)
        if self.cgroup is not None:
            self.cgroup = _cgroup_folder(self.cgroup)
        if self.pids:
            self.tgids |= self._descendants(self.tgids)
        self.tgids |= self.newcomers()
        self.waits = self.name is not None and not (self.tgids or self.tids or self.cgroup or self.everything)

    def untraceable(self) -> StallscopeError:
        """Error for a scope of which the kernel has shown none of the threads."""
        what = "none of these threads can be traced"
        living = sorted(pid for pid in self.tgids | self.tids if procfs.state(pid) not in ("", "Z", "X"))
        if not living:
            return StallscopeError(
                f"{what}: they have ended", "see `ps -e`; -n REGEX traces processes that begin later"
            )
        hidden = (
            "the kernel hides them from tracers" if len(living) > 1 else f"the kernel hides {living[0]} from tracers"
        )
        return StallscopeError(
            f"{what}: {hidden}, as it can do with the first process of a container or virtual machine",
            "trace the processes that do the work: -n REGEX finds them by their command lines, -a takes all",
        )

    def _descendants(self, of: set[int]) -> set[int]:
        """Processes that ``of`` have forked so far and are to be traced; those that are not go to ``left_out``."""
        if not of or not self.children:
            return set()
        found = procfs.descendants(of) - self.tgids - of
        if os.getpid() in found:  # its shell is traced
            found -= {os.getpid(), *self._callers, *procfs.descendants([os.getpid()])}
        found -= self.ours
        if self.descendants:
            return found
        self.left_out |= {pid: procfs.cpu_times(pid) for pid in found - self.left_out.keys()}
        return set()

    def remarks(self, traced: Collection[int] = ()) -> list[str]:
        """Remarks on what was not traced. ``traced``: processes that were."""
        for pid in {*traced, *self.tgids} & self.left_out.keys():
            del self.left_out[pid]  # it was forked by a process that was traced, or matches by now
        if not self.left_out:
            return []
        number = plural(len(self.left_out), "process")
        names = sorted({procfs.comm(pid) for pid in self.left_out} - {""})
        whom = f" ({', '.join(names[:3])}{', …' if len(names) > 3 else ''})" if names else ""
        if self.name is None:
            return [f"{number}{whom} that -p had forked before the trace: not traced; --children traces them, too"]
        why = "forked by what -n matches before it was traced, but not matched"
        return [f"{number}{whom} {why}: not traced; --children traces them, too"]

    def busy_left_out(self) -> set[int]:
        """Processes of ``left_out`` that have run since."""
        return {pid for pid, before in self.left_out.items() if procfs.cpu_times(pid) != before}

    def newcomers(self) -> set[int]:
        """Processes that match the scope by name or cgroup and are not in it yet, with their children if wanted."""
        found: set[int] = set()
        if self.name is not None:
            others = [pid for pid in procfs.pids() if pid not in self.tgids and pid != os.getpid()]
            named = {pid for pid in others if self.name.search(procfs.comm(pid))}
            lines = procfs.command_lines([pid for pid in others if pid not in named and pid not in self._callers])
            found |= named | {pid for pid, line in lines.items() if self._matches_line(pid, line)}
        if self.cgroup is not None:
            found |= _members(self.cgroup) - self.tgids
        found -= {os.getpid(), *self.ours, *CLIENT.pids}
        if self.name is not None:
            found |= self._descendants(found)
        self.waits = self.waits and not found
        return found

    def matches(self, pid: int) -> bool:
        """Whether ``-n`` matches this process; ignores the command lines of sudo and the shell, which contain ours."""
        if self.name is None or pid == os.getpid():
            return False
        if self.name.search(procfs.comm(pid)):
            return True
        return pid not in self._callers and self._matches_line(pid, procfs.command_line(pid))

    def _matches_line(self, pid: int, line: str) -> bool:
        if self.name is None or not self.name.search(line):
            return False
        return not any(map(self._is_started_by(line), procfs.children(pid)))

    def _is_started_by(self, line: str) -> Callable[[int], bool]:
        """Tells of a process whether it matches, and is the command within ``line``: of timeout, su and the like."""

        def tell(child: int) -> bool:
            own = procfs.command_line(child)
            return own != line and own in line and self.name is not None and self.name.search(own) is not None

        return tell

    def check_met(self) -> None:
        """StallscopeError when the trace ended before a process matched."""
        if self.waits and self.name is not None:
            raise StallscopeError(
                f"there was no process whose name or command line matches {self.name.pattern!r}",
                "see `ps -e -o pid,comm,args`; a tracer's own process never counts",
            )

    @property
    def grows(self) -> bool:
        """Whether processes can join the scope other than by fork."""
        return self.name is not None or self.cgroup is not None

    @property
    def ends_with(self) -> list[int]:
        """The processes and threads whose end ends the trace; empty if the trace does not end that way."""
        return [] if self.everything or self.grows else [*self.tgids, *self.tids]


def _cgroup_folder(path: Path) -> Path:
    """The folder of a cgroup given as a path, or as its name below a hierarchy (as in ``/proc/PID/cgroup``)."""
    relative = str(path).lstrip("/")
    candidates = [path, _CGROUP_MOUNT / relative, *(mount / relative for mount in sorted(_CGROUP_MOUNT.glob("*/")))]
    for candidate in candidates:
        if (candidate / "cgroup.procs").is_file() and file_system(candidate) in _CGROUP_FILE_SYSTEMS:
            return candidate
    raise StallscopeError(
        f"{path} is not a control group", "give a folder below /sys/fs/cgroup, such as /sys/fs/cgroup/system.slice"
    )


def file_system(path: Path) -> int:
    """The type of the file system that holds ``path``, as given by statfs(2); 0 if that fails."""
    import ctypes

    status = (ctypes.c_long * 64)()  # struct statfs has at most 15; f_type is the first
    found = ctypes.CDLL(None).statfs(os.fsencode(path), status)
    return status[0] & 0xFFFFFFFF if found == 0 else 0


def _members(folder: Path) -> set[int]:
    """The processes of a cgroup and of all its descendants."""
    members: set[int] = set()
    for current, _, _ in os.walk(folder):
        try:
            members.update(map(int, (Path(current) / "cgroup.procs").read_text().split()))
        except OSError:
            continue
    return members
