"""State of each process: its address spaces, one per exec, and the files mapped there, held open.

A process may exit between any two lines here: what can no longer be read is counted in ``lost``.
Processes are identified by their tgid. An address space has a number, its *epoch*: how many execs of the
process were seen while it was traced. A reused tgid starts again at epoch 0; where the two processes mapped
different files, neither is used.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ..base.descriptors import Budget
from ..images.files import HOST, Root, open_mapped, wall_from_monotonic
from ..images.maps import AddressSpace, Mapping, read_maps
from .objects import ObjectFile
from .perfmap import PerfMap, read_perf_map

GONE = "processes gone before their maps were read"
NOT_OPENED = "files not opened while they were mapped"
NOW = -2
"""The number of the address space as it was when the process was last read."""
NO_DESCRIPTORS = "files not kept open for want of descriptors"
MALFORMED = "malformed lines in JIT maps"


@dataclass(slots=True)
class Process:
    """One tgid."""

    pid: int
    nspid: int
    """The pid as the process itself sees it (innermost namespace)."""
    uid: int = -1
    """Effective user, -1 when unknown."""
    comm: str = ""
    root: Root = HOST
    started_ns: int = 0
    """Start time, Unix epoch ns."""
    epochs: list[AddressSpace] = field(default_factory=lambda: [AddressSpace()])
    current: int = 0
    now: AddressSpace | None = None
    """As it was at the last `refresh`; the others also contain earlier mappings."""
    exited: bool = False
    adopted_ns: int = 0
    """CLOCK_MONOTONIC time just before its maps were read from /proc; 0: never."""
    perf_map: PerfMap | None = None

    @property
    def space(self) -> AddressSpace:
        """The current address space, or the last one."""
        return self.epochs[self.current]


class ProcessSpaces:
    """All processes of a trace. Events must arrive in time order; times are CLOCK_MONOTONIC ns."""

    def __init__(self, fd_budget: int | None = None) -> None:
        """At most ``fd_budget`` files are held open; see `Budget` for the default."""
        self.processes: dict[int, Process] = {}
        self.lost = dict.fromkeys((GONE, NOT_OPENED, NO_DESCRIPTORS, MALFORMED), 0)
        self.listeners: list[Callable[[int, Mapping], None]] = []
        """Called with the pid and mapping for each mapping found in a process, even if it was known already."""
        self._objects: dict[tuple[int, int] | str, ObjectFile] = {}
        self._roots: dict[tuple[str, int, int], Root] = {}
        self.descriptors = Budget(fd_budget)

    def adopt(self, pid: int, time_ns: int = 0) -> Process | None:
        """Reads the maps of a live process and opens its files. None, and counted as lost, when it has exited.

        The current mappings of a known process (a fork event came first) are added.
        """
        before = time_ns or time.monotonic_ns()
        try:
            mappings = read_maps(pid)
        except OSError:
            self.lost[GONE] += 1
            return None
        process = self.processes.get(pid)
        if process is None or process.exited:
            process = self._begin(pid)
        self._describe(process)
        # An exiting process no longer shows mappings: its parent's are better.
        process.adopted_ns = before if mappings else 0
        for mapping in mappings:
            process.space.map_unless_other(mapping)
            self._open(process, mapping, time.time_ns())
        return process

    def refresh(self, pid: int) -> None:
        """Adds the current mappings of a live process at addresses about which nothing is known.

        No event reports that memory became executable by mprotect, as JIT compilers make it.
        """
        process = self.processes.get(pid)
        if process is None or process.exited:
            return
        try:
            mappings = read_maps(pid)
        except OSError:
            return
        process.now = AddressSpace(mappings)
        for mapping in mappings:
            process.space.map_in_gaps(mapping)
            self._open(process, mapping, time.time_ns())

    def fork(self, parent: int, child: int, time_ns: int = 0) -> None:
        """``parent`` forked the process (not thread) ``child``, which has the same mappings."""
        known = self.processes.get(child)
        if known is not None and not known.exited and known.adopted_ns > time_ns:
            return  # its maps were read after this event
        source = self.processes.get(parent)
        process = self._begin(child)
        if source is None:
            return
        for mapping in source.space:
            process.space.map_unless_other(mapping)
        process.uid, process.comm, process.root = source.uid, source.comm, source.root
        process.started_ns = wall_from_monotonic(time_ns)
        self._describe(process)

    def exec(self, pid: int, time_ns: int = 0, epoch: int | None = None) -> None:
        """``pid`` executed another program; its new mappings arrive through :meth:`mmap`.

        ``epoch`` is the new address space's number if the event has it; else the next one.
        """
        process = self.processes.get(pid)
        if process is None:
            process = self._begin(pid)
        old, number = process.space, process.current + 1 if epoch is None else epoch
        # More numbers than execs means that events were lost, or that the numbers are forged.
        if number <= process.current or number > process.current + 1024:
            return
        while len(process.epochs) <= number:
            process.epochs.append(AddressSpace())
        process.perf_map = None
        if process.adopted_ns > time_ns > 0:
            # The maps were read after this exec: they belong to the new program.
            process.epochs[process.current] = AddressSpace()
            for mapping in old:
                process.epochs[number].map_unless_other(mapping)
        process.current = number
        self._describe(process)

    def mmap(self, pid: int, mapping: Mapping, time_ns: int = 0) -> None:
        """``pid`` mapped executable memory: the content of a PERF_RECORD_MMAP2."""
        if not 0 <= mapping.start < mapping.end <= 1 << 64:
            return
        process = self.processes.get(pid)
        if process is None:
            process = self._begin(pid)
            self._describe(process)
        if mapping.path == "//anon":
            mapping = mapping._replace(path="")
        process.space.map_unless_other(mapping)
        self._open(process, mapping, wall_from_monotonic(time_ns))

    def exit(self, pid: int) -> None:
        """The process has exited. What is known about it stays; its JIT map is read now if still possible."""
        process = self.processes.get(pid)
        if process is not None and not process.exited:
            self.jit_map(process)
            process.exited = True

    def jit_map(self, process: Process) -> PerfMap | None:
        """Names of the code generated by the process's current program; read again while it lives."""
        if not process.exited:
            found = read_perf_map(process.root, process.nspid, process.uid, process.started_ns)
            if found is not None:
                self.lost[MALFORMED] += found.malformed - (process.perf_map.malformed if process.perf_map else 0)
                process.perf_map = found
        return process.perf_map

    def space(self, pid: int, epoch: int) -> AddressSpace | None:
        """The address space that ``pid`` had after ``epoch`` execs, or has `NOW`; None when it is not known."""
        process = self.processes.get(pid)
        if process is not None and epoch == NOW:
            return process.now or process.space
        if process is None or not 0 <= epoch < len(process.epochs):
            return None
        return process.epochs[epoch]

    def object_of(self, mapping: Mapping) -> ObjectFile | None:
        """The file behind a mapping, None if it has none."""
        return self._objects.get(mapping.key) if mapping.is_file else None

    def file_of(self, pid: int, mapping: Mapping) -> ObjectFile | None:
        """The file behind a current mapping of the live process ``pid``; None if the mapping is not of a file."""
        process = self.processes.get(pid)
        if process is not None and not process.exited:
            self._open(process, mapping, time.time_ns())
        return self.object_of(mapping)

    def forget(self, pids: Iterable[int]) -> None:
        """Forgets processes that are gone, files that nobody has mapped any more, and what was lost so far."""
        for pid in pids:
            self.processes.pop(pid, None)
        used = {
            mapping.key
            for process in self.processes.values()
            for space in (*process.epochs, *([process.now] if process.now else []))
            for mapping in space
            if mapping.is_file
        }
        for key in self._objects.keys() - used:
            file = self._objects.pop(key)
            if file.is_open:
                self.descriptors.give_back()
            file.close()
        self.lost = dict.fromkeys(self.lost, 0)

    def close(self) -> None:
        """Closes all files."""
        for file in self._objects.values():
            file.close()
        for root in self._roots.values():
            root.close()
        self._objects.clear()
        self._roots.clear()

    def _begin(self, pid: int) -> Process:
        """A new process; if the tgid belonged to another one before, that one's address spaces stay."""
        process = Process(pid, pid)
        before = self.processes.get(pid)
        if before is not None:
            process.epochs = before.epochs
        self.processes[pid] = process
        return process

    def _open(self, process: Process, mapping: Mapping, mapped_ns: int) -> None:
        for tell in self.listeners:
            tell(process.pid, mapping)
        if not mapping.is_file or mapping.key in self._objects:
            return
        fd = None
        if not self.descriptors.take():
            self.lost[NO_DESCRIPTORS] += 1
        else:
            try:
                fd = open_mapped(process.pid, mapping, process.root)
            except (OSError, ValueError):
                self.descriptors.give_back()
                self.lost[NOT_OPENED] += 1
        self._objects[mapping.key] = ObjectFile(mapping, process.root, fd, mapped_ns, self.descriptors)

    def _describe(self, process: Process) -> None:
        """Fills in what /proc shows; what it no longer shows stays as it is."""
        folder = f"/proc/{process.pid}"
        try:
            with open(f"{folder}/status", "rb") as file:
                status = dict(line.split(b":", 1) for line in file.read().split(b"\n") if b":" in line)
            process.uid = int(status[b"Uid"].split()[1])
            process.nspid = int(status.get(b"NSpid", b"%d" % process.pid).split()[-1])
            with open(f"{folder}/comm", "rb") as file:
                process.comm = os.fsdecode(file.read().removesuffix(b"\n"))
            with open(f"{folder}/stat", "rb") as file:
                ticks = int(file.read().rpartition(b")")[2].split()[19])
            since_boot = ticks * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
            process.started_ns = time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME) + since_boot
            process.root = self._root(folder)
        except (OSError, KeyError, IndexError, ValueError):
            return

    def _root(self, folder: str) -> Root:
        """The root of a process; equal ones (same mount namespace, same folder) share one object."""
        status = os.stat(f"{folder}/root")
        key = (os.readlink(f"{folder}/ns/mnt"), status.st_dev, status.st_ino)
        if key not in self._roots:
            ours = os.stat("/")
            if key == (os.readlink("/proc/self/ns/mnt"), ours.st_dev, ours.st_ino):
                return HOST
            self._roots[key] = Root(os.open(f"{folder}/root", os.O_PATH | os.O_CLOEXEC))
        return self._roots[key]
