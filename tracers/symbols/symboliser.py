"""Converts addresses to frames, in bulk.

A return address points after the call, and a call may be the last instruction of its function: all
frames but the innermost are looked up one byte earlier. The frame that a signal interrupted did not really call the
kernel's signal trampoline; it is looked up exactly, like the innermost one.

A frame without a name is ``[libfoo.so!fn_0x1a00]`` if its unwind rules show in which function it is, so that equal
functions are one frame, else ``[libfoo.so+0x1a2b]``.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import TYPE_CHECKING, NamedTuple

from ...converters.base.text import printable
from ...converters.model import Frame, Module, Stack
from ...converters.names.demangle import Demangler
from ..images.debuginfod import Debuginfod
from ..images.maps import REMAPPED, AddressSpace, Mapping
from ..images.vdso import VDSO, VSYSCALL, special_name
from .kallsyms import KERNEL, UNKNOWN, Kallsyms, KernelPlace
from .lines import Lines, LineTool
from .objects import ObjectFile
from .one import Process
from .perfmap import PerfMap, jit_frame
from .process import NOW, ProcessSpaces

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Addresses = tuple[int, ...]
"""A stack as probes deliver it: absolute addresses, innermost first."""

NO_SYMBOL = "frames outside any symbol"
NO_FILE = "frames in files that could not be read"
NO_MAPPING = "frames outside any mapping"
AMBIGUOUS = "frames where two files were mapped in turn"
ANONYMOUS = "frames in anonymous memory"
NO_KERNEL_SYMBOL = "kernel frames outside any symbol"

UNMAPPED = "[unmapped]"
"""Name of a frame whose address is not in any mapping."""

_ANONYMOUS = ("[anon", "//anon", "/memfd:", "/dev/zero", "/SYSV", "/anon_hugepage", "[heap]", "[stack")
_SIGRETURN = bytes.fromhex("48c7c00f0000000f05")
"""mov $__NR_rt_sigreturn,%rax; syscall: the code by which unwinders recognise a signal trampoline (x86-64)."""


class Request(NamedTuple):
    """A user stack of the process ``tgid``, taken after ``epoch`` of its execs."""

    tgid: int
    epoch: int
    addresses: Addresses


class _Place(NamedTuple):
    """Place where an address was found, and the name if there is one: the input of a frame."""

    reason: str
    """Reason why there is no name; "" when there is one."""
    name: str
    address: int
    module: Module | None = None
    jit: bool = False
    trampoline: bool = False
    file: ObjectFile | None = None
    code: int = 0
    """Virtual address in ``file`` at which the name was looked up."""


class Symboliser:
    """Names for kernel and user stacks. ``lost`` counts the frames without one, by reason; ``problems`` lists other
    failures.

    If $DEBUGINFOD_URLS is set, debug files missing on this machine are requested from there.
    """

    def __init__(
        self,
        processes: ProcessSpaces,
        kernel: Kallsyms | None = None,
        lines: LineTool | None = None,
        on_progress: Callable[[str], None] | None = None,
    ) -> None:
        """``lines``: user frames get their source line, and inlined functions become frames. ``on_progress`` gets a
        line of text during slow operations."""
        self.problems: list[str] = []
        self.lost = dict.fromkeys((NO_SYMBOL, NO_FILE, NO_MAPPING, AMBIGUOUS, ANONYMOUS, NO_KERNEL_SYMBOL), 0)
        self._processes = processes
        self._kernel = kernel
        self._lines = lines
        self._on_progress = on_progress
        self._demangler = Demangler()
        self._asks_servers = True
        self._frames: dict[Frame, Frame] = {}

    def kernel_stacks(self, stacks: Sequence[Addresses]) -> list[Stack]:
        """Each stack as frames, outermost first."""
        import numpy as np

        exact = {stack[0] for stack in stacks if stack}
        callers = set(chain.from_iterable(stack[1:] for stack in stacks))
        tables = []
        for addresses, back in ((sorted(exact), 0), (sorted(callers), 1)):
            found = [KernelPlace(UNKNOWN, KERNEL, 0)] * len(addresses)
            if self._kernel is not None:
                found = self._kernel.places(np.array(addresses, np.uint64), back)
            tables.append({a: self._kernel_frame(place) for a, place in zip(addresses, found, strict=True)})
        nameless = {id(frame) for table in tables for frame in table.values() if frame.name.startswith("[")}
        result = []
        for stack in stacks:
            frames = [tables[0][stack[0]], *map(tables[1].__getitem__, stack[1:])] if stack else []
            if nameless:
                self.lost[NO_KERNEL_SYMBOL] += sum(id(frame) in nameless for frame in frames)
            result.append(tuple(reversed(frames)))
        return result

    def user_stacks(self, requests: Sequence[tuple[int, int, Addresses]]) -> list[Stack]:
        """Each (tgid, epoch, addresses) as frames, outermost first, in the order of ``requests``."""
        spaces = self._look_up(requests)
        uses = _uses(spaces)
        if self._fetch_debug_files(uses):
            spaces = self._look_up(requests)
            uses = _uses(spaces)
        distinct = {place for place, _ in uses.values()}
        lines = self._look_up_lines(distinct)
        named = {place.name for place in distinct if not place.reason and not place.jit}
        named.update(line.function for found in lines.values() for line in found)
        readable = self._demangler.demangle(named)
        by_place = {place: self._frames_at(place, lines.get(place, ()), readable) for place in distinct}
        frames = {key: by_place[place] for key, (place, _) in uses.items()}
        for key, (place, count) in uses.items():
            if place.reason and frames[key][0].name == place.name:
                self.lost[place.reason] += count
        result: list[Stack] = [()] * len(requests)
        for space in spaces:
            for i, stack in zip(space.requests, space.as_frames(frames), strict=True):
                result[i] = stack
        return result

    def _look_up(self, requests: Sequence[tuple[int, int, Addresses]]) -> list[_Addresses]:
        """The places of all addresses, by address space."""
        by_space: dict[tuple[int, int], list[int]] = {}
        for i, request in enumerate(requests):
            by_space.setdefault((request[0], request[1]), []).append(i)
        return [
            self._look_up_space(tgid, epoch, indices, [requests[i][2] for i in indices])
            for (tgid, epoch), indices in by_space.items()
        ]

    def _fetch_debug_files(self, uses: dict[int, tuple[_Place, int]]) -> bool:
        """Queries debuginfod, first for the file that the most frames lack. Returns whether it got any file."""
        frames: Counter[ObjectFile] = Counter()
        for place, count in uses.values():
            if place.file is not None and (self._lines or place.reason == NO_SYMBOL):
                frames[place.file] += count
        wanted = [file for file, _ in frames.most_common() if self._lacks_debug_file(file)]
        client = Debuginfod.from_environment(self._on_progress) if wanted and self._asks_servers else None
        if client is None:
            return False
        fetched = False
        for file in wanted:
            fd = client.find(file.module.build_id, printable(os.path.basename(file.path)))
            if fd is not None:
                fetched |= file.add_debug_file(fd)
        if client.problem:
            self.problems.append(client.problem)
            self._asks_servers = False
        client.close()
        return fetched

    def _lacks_debug_file(self, file: ObjectFile) -> bool:
        return file.lacks_names or (self._lines is not None and file.lines_fd() is None)

    def _look_up_lines(self, places: set[_Place]) -> dict[_Place, Lines]:
        """The lines of each place, where any are known."""
        wanted: dict[ObjectFile, dict[int, list[_Place]]] = {}
        for place in places if self._lines else ():
            if place.file is not None:
                wanted.setdefault(place.file, {}).setdefault(place.code, []).append(place)
        found: dict[_Place, Lines] = {}
        for file, by_code in wanted.items():
            fd = file.lines_fd()
            if self._lines is None or fd is None:
                continue
            if self._on_progress:
                self._on_progress(f"source lines: {printable(os.path.basename(file.path))}")
            for code, lines in self._lines.look_up(fd, sorted(by_code)).items():
                found |= dict.fromkeys(by_code[code], lines)
        if self._lines is not None and self._lines.problem:
            self.problems.append(self._lines.problem)
        return found

    def _look_up_space(self, tgid: int, epoch: int, indices: list[int], stacks: list[Addresses]) -> _Addresses:
        process = self._processes.processes.get(tgid)
        space = self._processes.space(tgid, epoch)
        if process is None or space is None:
            space = AddressSpace()
        lookup = _Lookup(self._processes, process if process and epoch in (process.current, NOW) else None, space)
        exact = lookup.places((stack[0] for stack in stacks if stack), 0)
        callers = lookup.places(chain.from_iterable(stack[1:] for stack in stacks), 1)
        trampolines = {address for address, place in callers.items() if place.trampoline}
        if trampolines:
            interrupted = {b for stack in stacks for a, b in pairwise(stack[1:]) if a in trampolines}
            exact.update(lookup.places(interrupted, 0))
        return _Addresses(indices, stacks, exact, callers, trampolines)

    def _frames_at(self, place: _Place, lines: Lines, readable: dict[str, str]) -> tuple[Frame, ...]:
        """The frame of a place, then those of the functions inlined there, outermost first."""
        if place.jit:
            return (self._shared(jit_frame(place.name, place.address)),)
        names = [readable.get(line.function, "") for line in reversed(lines)] or [""]
        # The symbol table knows which of a function's names is the best; DWARF knows the names of static functions.
        names[0] = names[0] if place.reason and names[0] else readable.get(place.name, place.name)
        frames = []
        for i, name in enumerate(names):
            _, file, line = lines[-1 - i] if lines else ("", "", 0)
            if name:
                frames.append(self._shared(Frame(name, "native", place.module, place.address, file, line)))
        return tuple(frames)

    def _shared(self, frame: Frame) -> Frame:
        return self._frames.setdefault(frame, frame)

    def _kernel_frame(self, place: KernelPlace) -> Frame:
        return self._shared(Frame(place.name, "kernel", place.module, place.address))


class _Addresses(NamedTuple):
    """The addresses of one address space's stacks, and where each was found."""

    requests: list[int]
    """Indices of the stacks."""
    stacks: list[Addresses]
    exact: dict[int, _Place]
    """Innermost addresses, and others that are no return addresses."""
    callers: dict[int, _Place]
    trampolines: set[int]

    def counts(self) -> tuple[Counter[int], Counter[int]]:
        """Number of uses of each address of ``exact`` and of ``callers``."""
        exact = Counter(stack[0] for stack in self.stacks if stack)
        callers = Counter(chain.from_iterable(stack[1:] for stack in self.stacks))
        for stack in self.stacks if self.trampolines else ():
            interrupted = Counter(stack[i] for i in self._interrupted(stack))
            exact += interrupted
            callers -= interrupted
        return exact, callers

    def as_frames(self, frames: dict[int, tuple[Frame, ...]]) -> Iterator[Stack]:
        """Each stack, outermost frame first. ``frames``: by the `id` of a place."""
        exact = {address: frames[id(place)] for address, place in self.exact.items() if id(place) in frames}
        callers = {address: frames[id(place)] for address, place in self.callers.items() if id(place) in frames}
        for stack in self.stacks:
            if self.trampolines and not self.trampolines.isdisjoint(stack):
                signalled = {0, *self._interrupted(stack)}
                parts = [(exact if i in signalled else callers)[address] for i, address in enumerate(stack)]
                yield tuple(chain.from_iterable(reversed(parts)))
            else:
                outer = tuple(chain.from_iterable(map(callers.__getitem__, stack[:0:-1])))
                yield outer + exact[stack[0]] if stack else ()

    def _interrupted(self, stack: Addresses) -> list[int]:
        """Positions of addresses that a signal interrupted."""
        return [i + 1 for i in range(1, len(stack) - 1) if stack[i] in self.trampolines]


def _uses(spaces: Iterable[_Addresses]) -> dict[int, tuple[_Place, int]]:
    """Each place and how often it is used, by its `id`: to hash a place takes longer than to look one up."""
    uses: dict[int, tuple[_Place, int]] = {}
    for space in spaces:
        for places, counts in zip((space.exact, space.callers), space.counts(), strict=True):
            for address, count in counts.items():
                place = places[address]
                uses[id(place)] = place, uses.get(id(place), (place, 0))[1] + count
    return uses


class _Lookup:
    """Finds addresses in one address space. ``process`` is given if its JIT map applies to it."""

    def __init__(self, processes: ProcessSpaces, process: Process | None, space: AddressSpace) -> None:
        self._processes = processes
        self._process = process
        self._space = space
        self._jit: PerfMap | None = None

    def places(self, addresses: Iterable[int], back: int) -> dict[int, _Place]:
        """The place of each address, looked up ``back`` bytes earlier."""
        import numpy as np

        given = sorted(set(addresses))
        values = np.array(given, np.uint64)
        looked_up = values - np.minimum(values, np.uint64(back))
        index = self._space.bulk_find(looked_up)
        mappings = list(self._space)
        result: dict[int, _Place] = {}
        groups: dict[ObjectFile, list[tuple[Mapping, NDArray[np.intp]]]] = {}
        for i in np.unique(index).tolist():
            rows = np.flatnonzero(index == i)
            mapping = mappings[i] if i >= 0 else None
            file = self._processes.object_of(mapping) if mapping else None
            if mapping is not None and file is not None and not _is_generated(mapping, file):
                groups.setdefault(file, []).append((mapping, rows))
            else:
                result.update(self._without_file(mapping, values[rows], looked_up[rows]))
        for file, parts in groups.items():
            result.update(self._in_file(file, parts, values, back))
        return result

    def _in_file(
        self, file: ObjectFile, parts: list[tuple[Mapping, NDArray[np.intp]]], values: NDArray[np.uint64], back: int
    ) -> dict[int, _Place]:
        import numpy as np

        rows = np.concatenate([rows for _, rows in parts])
        shift = np.concatenate([np.full(len(r), (m.start - m.offset) % (1 << 64), np.uint64) for m, r in parts])
        absolute = values[rows]
        vaddrs, known = file.to_vaddrs(absolute - shift - np.uint64(back))
        returns = (vaddrs + np.uint64(back)).tolist()
        trampolines = [bool(back) and _is_sigreturn(file, vaddr) for vaddr in returns]
        # The kernel made up the return address of a signal handler: no call precedes it.
        code = vaddrs + np.where(trampolines, np.uint64(back), np.uint64(0))
        names = file.names(code)
        starts = file.starts(code) if None in names else [None] * len(names)
        module = file.module
        base = os.path.basename(file.path) or file.path
        result = {}
        for i, (address, vaddr) in enumerate(zip(absolute.tolist(), returns, strict=True)):
            name, reason = names[i], ""
            if not known[i]:
                name, reason = f"[{base}+{vaddr:#x}]", NO_FILE if file.problem else NO_SYMBOL
            elif name is None:
                start, reason = starts[i], NO_FILE if file.problem else NO_SYMBOL
                name = f"[{base}+{vaddr:#x}]" if start is None else f"[{base}!fn_{start:#x}]"
            where = (file, int(code[i])) if known[i] else (None, 0)
            result[address] = _Place(reason, name, vaddr, module, False, trampolines[i], *where)
        return result

    def _without_file(
        self, mapping: Mapping | None, values: NDArray[np.uint64], looked_up: NDArray[np.uint64]
    ) -> dict[int, _Place]:
        if mapping is None:
            return {a: _Place(NO_MAPPING, UNMAPPED, a) for a in values.tolist()}
        if mapping.path == REMAPPED:
            return {a: _Place(AMBIGUOUS, REMAPPED, a) for a in values.tolist()}
        if mapping.path in (VDSO, VSYSCALL):
            return {a: _special(mapping, a, b) for a, b in zip(values.tolist(), looked_up.tolist(), strict=True)}
        if mapping.path and not mapping.path.startswith(_ANONYMOUS):
            base = os.path.basename(mapping.file_path).strip("[]") or "file"
            shift = mapping.start - mapping.offset
            module = Module(mapping.file_path)
            return {a: _Place(NO_FILE, f"[{base}+{a - shift:#x}]", a - shift, module) for a in values.tolist()}
        names: list[str | None] = [None] * len(values)
        if self._jit is None and self._process is not None:
            self._jit = self._processes.jit_map(self._process)
        if self._jit is not None:
            names = self._jit.find(looked_up)
        return {
            a: _Place("", name, a, jit=True) if name else _Place(ANONYMOUS, "[anon]", a)
            for a, name in zip(values.tolist(), names, strict=True)
        }


def _is_generated(mapping: Mapping, file: ObjectFile) -> bool:
    """Whether a JIT compiler generated this code in a memory file, as opposed to a program that was copied there."""
    return mapping.path.startswith(_ANONYMOUS) and file.elf() is None


def _is_sigreturn(file: ObjectFile, vaddr: int) -> bool:
    return file.code_at(vaddr, len(_SIGRETURN)) == _SIGRETURN


def _special(mapping: Mapping, address: int, looked_up: int) -> _Place:
    _, name = special_name(mapping, looked_up)
    offset = address - mapping.start
    module = Module(mapping.path)
    if name:
        return _Place("", name, offset, module)
    return _Place(NO_SYMBOL, f"[{mapping.path.strip('[]')}+{offset:#x}]", offset, module)
