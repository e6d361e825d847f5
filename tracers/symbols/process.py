"""State of each process: its address spaces, one per exec, and the files mapped there, held open.

A process may exit between any two lines here: what can no longer be read is counted in ``lost``.
A process has a number: its pid, until the pid comes back for another process; then it gets one that is no pid. An
address space has one, too, its *epoch*: how many execs of the process were seen while it was traced.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from ...converters.base.units import plural
from ..base.budget import Readings
from ..base.descriptors import Budget
from ..images.files import open_all, wall_from_monotonic
from ..images.maps import MOST, AddressSpace, Mapping, read_maps
from ..outside.client import NotRead
from ..outside.reads import is_administrators
from .describing import describe
from .objects import ObjectFile
from .one import Process
from .perfmap import JitMaps, PerfMap
from .roots import Roots
from .uses import Uses

GONE = "processes whose maps were not read in time"
NOT_OPENED = "files not opened while they were mapped"
_WHOSE = 3
"""Users that are named."""
NOW = -2
"""The number of the address space as it was when the process was last read."""
NO_PID = 1 << 30
"""The numbers of processes whose pid is another one's begin here."""
NO_DESCRIPTORS = "files not kept open for want of descriptors"
MALFORMED = "malformed lines in JIT maps"
LEFT_OUT = "lines of JIT maps that were left out"
TOO_MANY = "executable mappings that were left out: a process has too many"
CROWDED = "files that were not opened: a process maps too many"
MOST_FILES = 1 << 11
"""Files that are opened for one process: programs with everything in them map many hundred."""
NOT_READ = "JIT maps that were not read, because others took the time or memory"


class ProcessSpaces:
    """All processes of a trace. Events must arrive in time order; times are CLOCK_MONOTONIC ns."""

    def __init__(self, fd_budget: int | None = None) -> None:
        """Spaces that hold at most ``fd_budget`` files open; see `Budget` for the default."""
        self.processes: dict[int, Process] = {}
        """Processes by number."""
        self._replaced: dict[int, list[tuple[int, int]]] = {}
        """Processes of pids that came back, in order: when the next process began, and the number of the one before."""
        self._uses = Uses()
        self._next = NO_PID
        self.lost = dict.fromkeys(
            (GONE, NOT_OPENED, NO_DESCRIPTORS, MALFORMED, LEFT_OUT, NOT_READ, TOO_MANY, CROWDED), 0
        )
        self.listeners: list[Callable[[int, Mapping], None]] = []
        """Called with the pid and mapping for each mapping found in a process, even if it was known already."""
        self.fork_listeners: list[Callable[[int], None]] = []
        self._objects: dict[tuple[int, int] | str, ObjectFile] = {}
        self._crowds: Counter[int] = Counter()
        """Files that were left out, by the user whose process mapped them."""
        self._roots = Roots()
        self.descriptors = Budget(fd_budget)
        self.readings = Readings()
        self._jit_maps = JitMaps()

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
            self.replace(pid, before)
            process = self._begin(pid)
        describe(process, self._roots)
        # An exiting process no longer shows mappings: its parent's are better.
        process.adopted_ns = before if mappings else 0
        for mapping in mappings:
            process.space.map_unless_other(mapping)
        self._open(process, mappings, time.time_ns())
        self._count_left_out(process.space)
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
        self._open(process, mappings, time.time_ns())
        self._count_left_out(process.space)

    def fork(self, parent: int, child: int, time_ns: int = 0) -> int:
        """``parent`` forked the process (not thread) ``child``, with the same mappings. Returns what `replace` does."""
        known = self.processes.get(child)
        if known is not None and not known.exited and known.adopted_ns > time_ns:
            return 0  # its maps were read after this event
        source = self.processes.get(parent)
        before = self.replace(child, time_ns)
        process = self._begin(child)
        if source is None:
            return before
        process.epochs = [source.space.copy()]
        process.uid, process.comm, process.root = source.uid, source.comm, source.root
        process.started_ns = wall_from_monotonic(time_ns)
        describe(process, self._roots)
        for tell in self.fork_listeners:
            tell(child)
        return before

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
            process.execs.append(time_ns)
        process.perf_map = None
        if process.adopted_ns > time_ns > 0:
            # The maps were read after this exec: they belong to the new program.
            process.epochs[process.current] = AddressSpace()
            for mapping in old:
                process.epochs[number].map_unless_other(mapping)
        process.current = number
        describe(process, self._roots)

    def mmap(self, pid: int, mapping: Mapping, time_ns: int = 0) -> Mapping:
        """``pid`` mapped executable memory: the content of a PERF_RECORD_MMAP2. Returns the mapping as it is kept."""
        if not 0 <= mapping.start < mapping.end <= 1 << 64:
            return mapping
        process = self.processes.get(pid)
        if process is None:
            process = self._begin(pid)
            describe(process, self._roots)
        if mapping.path == "//anon":
            mapping = mapping._replace(path="")
        if mapping.is_file and not mapping.inode and mapping.build_id not in self._objects:  # an administrator's file
            mapping = mapping._replace(user=process.uid)
        (mapping,) = self._open(process, [mapping], wall_from_monotonic(time_ns))
        process.space.map_unless_other(mapping)
        self._count_left_out(process.space)
        return mapping

    def exit(self, pid: int) -> None:
        """The process has exited. What is known about it stays; its JIT map is read now if still possible."""
        process = self.processes.get(pid)
        if process is not None and not process.exited:
            self.jit_map(process)
            process.exited = True
            self._roots.close_unused(self.processes.values())

    def jit_map(self, process: Process) -> PerfMap | None:
        """Names of the code generated by the process's current program; read again while it lives."""
        if not process.exited:
            before = process.perf_map
            found = self._jit_maps.read(process.root, process.nspid, process.uid, process.started_ns, before)
            if found is None:
                self.lost[NOT_READ] += self._jit_maps.was_refused
            elif found is not before:
                self.lost[MALFORMED] += found.malformed - (before.malformed if before else 0)
                self.lost[LEFT_OUT] += found.left_out - (before.left_out if before else 0)
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
            self._open(process, [mapping], time.time_ns())
        return self.object_of(mapping)

    def forget(self, pids: Iterable[int]) -> None:
        """Forgets processes that are gone, files that nobody has mapped any more, and what was lost so far."""
        for number in pids:
            self.drop(number)
        self.close_unused()
        self.lost = dict.fromkeys(self.lost, 0)
        self._crowds.clear()

    def close_unused(self) -> None:
        """Closes the files that nobody has mapped any more."""
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
                file.descriptors.give_back()
            file.close()

    def close(self) -> None:
        """Closes all files."""
        for file in self._objects.values():
            file.close()
        self._objects.clear()
        self._roots.close()

    def drop(self, number: int) -> None:
        """Forgets a process."""
        process = self.processes.pop(number, None)
        if process is None:
            return
        self._uses.ended(process)
        left = [entry for entry in self._replaced.get(process.pid, ()) if entry[1] != number]
        if left:
            self._replaced[process.pid] = left
        else:
            self._replaced.pop(process.pid, None)

    def add(self, process: Process) -> int:
        """Adds a process that has no pid; returns its number."""
        number = self._next
        self._next += 1
        self.processes[number] = process
        return number

    def replace(self, pid: int, time_ns: int) -> int:
        """Another process has had this pid since ``time_ns``: the known one gets a number of its own, which is
        returned; 0 when none is known."""
        before = self.processes.pop(pid, None)
        if before is None:
            return 0
        before.exited = True
        self._roots.close_unused(self.processes.values())
        self._uses.ended(before)
        number = self.add(before)
        self._replaced.setdefault(pid, []).append((time_ns, number))
        return number

    def number(self, pid: int, time_ns: int) -> int:
        """The number of the process that had this pid at ``time_ns``, CLOCK_MONOTONIC."""
        replaced = self._replaced.get(pid)
        if not replaced:
            return pid
        later = bisect_right(replaced, (time_ns, 1 << 64))
        return replaced[later][1] if later < len(replaced) else pid

    @property
    def pids(self) -> dict[int, int]:
        """Pids of the processes whose number is not their pid."""
        return {number: self.processes[number].pid for of in self._replaced.values() for _, number in of}

    @property
    def came_back(self) -> int:
        """Number of pids that came back for another process, of which the one before is known."""
        return len(self._replaced)

    def epoch(self, number: int, time_ns: int) -> int:
        """The epoch of a process at ``time_ns``; 0 when nothing is known about it."""
        process = self.processes.get(number)
        return bisect_right(process.execs, time_ns) if process is not None and process.execs else 0

    def _begin(self, pid: int) -> Process:
        process = self.processes[pid] = Process(pid, pid, life=self._uses.of(pid) + 1)
        return process

    def _open(self, process: Process, mappings: Sequence[Mapping], mapped_ns: int) -> list[Mapping]:
        """Opens the files of mappings, those that are not open yet. Returns the mappings as they are kept."""
        mappings = mappings[:MOST]  # an address space keeps no more
        new = self._unopened(process, mappings, mapped_ns)
        known = set()
        for mapping, fd in zip(new.values(), open_all(process.pid, [*new.values()], process.root), strict=True):
            if isinstance(fd, OSError):
                self.descriptors.give_back(process.uid)
                self.lost[NOT_OPENED] += 1
            elif mapping.user is not None and is_administrators(fd):
                known.add(mapping.key)
                mapping = mapping._replace(user=None)
            file = self._object(process, mapping, fd, mapped_ns)
            if isinstance(fd, NotRead):
                file.problem = "its file system does not answer"
        kept = [each._replace(user=None) if each.key in known else each for each in mappings]
        for mapping in kept:
            for tell in self.listeners:
                tell(process.pid, mapping)
        return kept

    def _unopened(
        self, process: Process, mappings: Sequence[Mapping], mapped_ns: int
    ) -> dict[tuple[int, int] | str, Mapping]:
        """Mappings that are to be opened, by their keys: there is a descriptor for each."""
        new: dict[tuple[int, int] | str, Mapping] = {}
        for mapping in mappings:
            if not mapping.is_file or mapping.key in new:
                continue
            file = self._objects.get(mapping.key)
            if file is not None and (file.is_open or not file.is_left_out):
                file.is_mapped_in(process.root)
            elif process.files < MOST_FILES and self.descriptors.take(process.uid):
                new[mapping.key] = mapping
                process.files += 1
            elif file is not None and file.descriptors.uid == process.uid:  # it is counted
                file.is_mapped_in(process.root)
            else:
                is_crowded = process.files >= MOST_FILES
                self.lost[CROWDED if is_crowded else NO_DESCRIPTORS] += 1
                self._crowds[process.uid] += 1
                file = self._object(process, mapping, None, mapped_ns)
                file.is_left_out = True
                file.problem = "its process maps too many files" if is_crowded else ""
        return new

    def _object(self, process: Process, mapping: Mapping, fd: int | OSError | None, mapped_ns: int) -> ObjectFile:
        """The file, which is known if it was left out in another process."""
        before = self._objects.get(mapping.key)
        kept = fd if isinstance(fd, int) else None
        file = ObjectFile(mapping, process.root, kept, mapped_ns, self.descriptors.of(process.uid))
        file.readings = self.readings
        if before is not None:
            file.is_mapped_in_all(before)
        self._objects[mapping.key] = file
        return file

    def most_files(self) -> str:
        """An addition to a sentence: which process maps very many files; "" when none does."""
        process = max(self.processes.values(), key=lambda each: each.files, default=None)
        if process is None or process.files < MOST_FILES:
            return ""
        return f"; process {process.pid} of uid {process.uid} maps many"

    def remarks(self) -> list[str]:
        """Sentences about whose files were left out."""
        return [
            f"processes of uid {uid} map many files: {plural(count, 'file')} of them were not kept open"
            for uid, count in self._crowds.most_common(_WHOSE)
        ]

    def _count_left_out(self, space: AddressSpace) -> None:
        self.lost[TOO_MANY] += space.left_out
        space.left_out = 0
