"""Files that have wanted functions, and the probes on these: found when a traced process maps a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from .....converters.base.text import printable, shortened, some
from .....converters.base.units import plural
from .....converters.names.demangle import Demangler
from ....base.budget import Seconds, reading
from ....holder.links import Place
from ....holder.making import NO_TIME, NOT_SUPPORTED, SECONDS
from ....images.elf import ElfError, ElfFile, FileSource
from ....images.files import HOST, Root, open_mapped
from ....images.functions import Function, find_functions, function_names, is_of_go
from ....images.maps import Mapping
from ....kernel.attaching import WithheldError, attach_possible
from ....kernel.bpfobject import Link, Object
from ....kernel.libbpf import BpfError
from ....kernel.uprobes import Way
from ....probe_targets import collectives, copies, cuda, results
from ....probe_targets.entries import CODE, entry
from ....probe_targets.wanted import Wanted, is_safe

_FUNCTION = (1 << 32) - 1
"""COOKIE_FUNCTION of bpf/include/call_cookie.h."""
_ERRORS = 1 << 32
"""COOKIE_ERRORS of bpf/include/call_cookie.h."""
NOT_LOOKED_INTO = "files not looked into"
"""Kind of loss."""
MOST_PROBES = 1 << 14
"""Functions with a probe."""
_NAMED = 3
"""Number of names in a remark."""
_LONGEST = 60
"""Characters of a C++ name."""
_X86_64 = 62
"""EM_X86_64 of elf.h."""


_REASONS = {
    NOT_SUPPORTED: "with a first instruction that the kernel takes no probe on",
    NO_TIME: f"that there was no time for ({SECONDS:.0f} s)",
}
"""Reasons why functions have no probe, by the number of the error."""


class Probe(NamedTuple):
    """A function with a probe; its number is its index. ``path``: as the process that mapped it sees it."""

    name: str
    path: str
    is_fast: bool


class _Kept(NamedTuple):
    """A file with probes. ``fd``: closed with it."""

    fd: int
    path: str
    places: tuple[Place, ...]
    links: list[Link]


class Probed(Link):
    """The probes. As a link: closed when the trace ends."""

    def __init__(
        self, loaded: Object, way: Way, programs: tuple[str, str, str], wanted: Wanted, begin: str = ""
    ) -> None:
        """``begin``: the program for functions whose entry only has a probe."""
        super().__init__(0)
        self._begin = begin
        self._loaded, self._way, self._programs, self._wanted = loaded, way, programs, wanted
        self._links: list[Link] = []
        self.keeps = False
        """Files stay open, so that functions can lose their probes again."""
        self._kept: list[_Kept] = []
        self._seconds = Seconds()
        """Spent on looking into files."""
        self._known: set[tuple[tuple[int, int] | str, str]] = set()
        """Mapped files that were looked into, and those that need not be, each with the path that a process has for it:
        a user can mount a file elsewhere, under a name that nobody asks for."""
        self._users: dict[tuple[tuple[int, int] | str, str], set[int]] = {}
        """Processes that have mapped those of them that may have wanted functions."""
        self._files: set[tuple[int, int, str]] = set()
        self._probed: dict[tuple[int, int], set[int]] = {}
        """Offsets of functions that have probes, or cannot have them, by file."""
        self._done: set[int] = set()
        """Offsets of such functions of the file that is being looked into."""
        self.functions: list[Probe] = []
        """Functions by number, those without a probe included."""
        self._refused: dict[str, dict[int, list[int]]] = {}
        """Functions on which the kernel takes no probe, by file and number of the error."""
        self._unsafe: dict[str, list[str]] = {}
        """Wanted functions that would not survive a probe at their return, by file."""
        self._without: dict[str, list[str]] = {}
        """The user's libraries in which no function matches, and similar names."""
        self._narrow: list[str] = []
        """32-bit programs."""
        self.problems: dict[str, str] = {}
        """Files without probes although they may have wanted functions, and why."""
        self.is_closed = False

    def look(self, pid: int, mapping: Mapping) -> None:
        """Puts probes on the wanted functions of a file that a process has mapped, unless they have some."""
        path, identity = mapping.file_path, (mapping.dev, mapping.inode)
        if (mapping.key, path) in self._users:
            self._users[mapping.key, path].add(pid)
        if self.is_closed or not mapping.is_file or (mapping.key, path) in self._known:
            return
        of_program = is_program(pid, mapping)
        self._known.add((mapping.key, path))
        if not self._wanted.looks_into(path, identity, is_program=of_program):
            return
        self._users[mapping.key, path] = {pid}
        try:
            root = root_of(pid)
            try:
                fd = open_mapped(pid, mapping, root)
            finally:
                root.close()
        except (OSError, ValueError) as error:
            self._refuse(path, str(error), is_program=of_program)
        else:
            self._take(fd, path, identity, is_program=of_program)

    def expect(self, path: str, *, is_program: bool) -> None:
        """Probes a file that a command will map, before it does: its first calls are then seen."""
        try:
            fd = HOST.open_regular(path)
        except (OSError, ValueError):
            return  # it is looked into if it is mapped
        status = os.fstat(fd)
        identity = status.st_dev, status.st_ino
        if self._wanted.looks_into(path, identity, is_program=is_program):
            self._take(fd, path, identity, is_program=is_program)
        else:
            os.close(fd)

    def _take(self, fd: int, path: str, identity: tuple[int, int], *, is_program: bool) -> None:
        """Puts probes on the functions of an open file, which it closes."""
        try:
            # Some file systems show other numbers in maps than these, but these are always the same for a file.
            status = os.fstat(fd)
            file = status.st_dev, status.st_ino
            if (*file, path) not in self._files:
                self._files.add((*file, path))
                if self._seconds.is_over:
                    raise ElfError("the files before took too much time")
                with reading(path), self._seconds.spent():
                    self._done = self._probed.setdefault(file, set())
                    self._probe(fd, path, identity, is_program=is_program)
        except ElfError as error:
            self._refuse(path, str(error), is_program=is_program)
        except BpfError as error:
            self._refuse(path, error.cause, is_program=is_program and not isinstance(error, WithheldError))
        finally:
            os.close(fd)

    def _refuse(self, path: str, why: str, *, is_program: bool) -> None:
        """Nobody expects functions in any program: that one of them is damaged, for example, is not worth a word."""
        if not is_program:
            self.problems[path] = why

    def _probe(self, fd: int, path: str, identity: tuple[int, int], *, is_program: bool) -> None:
        elf = ElfFile(FileSource(fd))
        unsafe: list[str] = []

        def wanted(name: str) -> bool:
            if self._wanted.is_unsafe(name, path, identity):
                unsafe.append(name)
            return self._wanted.wants(name, path, identity)

        self._wanted.learn(path, identity, lambda: function_names(elf))
        found = find_functions(elf, wanted, CODE, exported=self._wanted.is_exported(path, identity))
        if is_program and not elf.is_64:
            self._narrow.append(path)
        if not found:
            self._note_without(elf, path, identity, unsafe)
            return
        if why := unfit(elf):
            self.problems[path] = why
            return
        # Functions of a program that only looks like CUDA's are not taken for it.
        if is_program and not any(cuda.kind(function.name) for function in found) and not self._wanted.libraries:
            return
        if not (found := self._not_done(found)):
            return
        if len(self.functions) + len(found) > MOST_PROBES:
            raise ElfError(f"more than {plural(MOST_PROBES, 'function')} would have probes: give a narrower expression")
        if fits := self.fitting(fd, elf, path, found):
            self._unsafe[path] = sorted(set(unsafe))
            self._put(fd, path, fits)

    def _not_done(self, functions: Sequence[Function]) -> list[Function]:
        """Functions that were not found under another path of the same file; they are done then."""
        found = [function for function in functions if function.offset not in self._done]
        self._done.update(function.offset for function in found)
        return found

    def _put(self, fd: int, path: str, fits: Sequence[tuple[Function, int]]) -> None:
        """Puts probes on functions; the other number is that of `fitting`."""
        first = len(self.functions)
        placed = (self._placed(function, path, number, bits) for number, (function, bits) in enumerate(fits, first))
        probes, places = zip(*placed, strict=True)
        refused: dict[Place, int] = {}
        begins = [self._wanted.is_begin(function.name) for function, _ in fits]
        if both := tuple(place for place, is_one in zip(places, begins, strict=True) if not is_one):
            attached = attach_possible(self._loaded, self._way, self._programs, fd, both)
            self._links += attached.links
            refused |= attached.refused
            if self.keeps:
                self._kept.append(_Kept(os.dup(fd), path, both, attached.links))
        if entries := [place for place, is_one in zip(places, begins, strict=True) if is_one]:
            way = Way.MULTI if self._way is Way.SESSION else self._way
            attached = attach_possible(self._loaded, way, ("", self._begin, ""), fd, entries)
            self._links += attached.links
            refused |= attached.refused
        self.functions += probes
        for i, place in enumerate(places, first):
            if error := refused.get(place):
                self._refused.setdefault(path, {}).setdefault(error, []).append(i)

    def leave(self, functions: Collection[int]) -> None:
        """Removes the probes of functions. Those of the same files are made again: for a moment there are none."""
        for at, file in enumerate(self._kept):
            rest = tuple(place for place in file.places if place.cookie & _FUNCTION not in functions)
            if len(rest) == len(file.places):
                continue
            for link in file.links:
                self._links.remove(link)
                link.close()
            links: list[Link] = []
            try:
                if rest:
                    links = attach_possible(self._loaded, self._way, self._programs, file.fd, rest).links
            except BpfError as error:
                self.problems[file.path] = f"its probes could not be made again ({error.cause})"
            self._links += links
            self._kept[at] = file._replace(places=rest, links=links)

    def fitting(self, fd: int, elf: ElfFile, path: str, found: Sequence[Function]) -> list[tuple[Function, int]]:
        """Chooses the functions that get a probe, with more bits of each one's cookie."""
        return [(function, 0) for function in found]

    def _placed(self, function: Function, path: str, number: int, bits: int) -> tuple[Probe, Place]:
        at = entry(function.code)
        cookie = bits | number | (_ERRORS if results.has_errors(function.name) else 0)
        cookie |= copies.cookie(function.name) or collectives.cookie(function.name)
        name = self._wanted.readable(function.name)
        return Probe(name, path, at.is_fast), Place(function.offset + at.offset, cookie)

    def _note_without(self, elf: ElfFile, path: str, identity: tuple[int, int], unsafe: list[str]) -> None:
        """A file has no wanted function that can have a probe."""
        if unsafe:
            self._unsafe[path] = sorted(set(unsafe))
        elif self._wanted.is_given(path, identity):
            self._without[path] = self._wanted.nearest(filter(is_safe, function_names(elf)))

    def probes(self) -> list[Probe]:
        """The functions that have one."""
        without = self._without_probe()
        return [probe for i, probe in enumerate(self.functions) if i not in without]

    def _without_probe(self) -> set[int]:
        return {i for errors in self._refused.values() for refused in errors.values() for i in refused}

    def users(self, is_one: Callable[[str], bool]) -> frozenset[int]:
        """Processes that have mapped files with such functions, if all of these have probes."""
        refused = [self.functions[i] for i in self._without_probe()]
        fit, unfit = ({probe.path for probe in of if is_one(probe.name)} for of in (self.probes(), refused))
        unfit |= self.problems.keys() | {path for path, names in self._unsafe.items() if any(map(is_one, names))}
        users = {path: frozenset[int]() for path in (*fit, *unfit)}
        for (_, path), pids in self._users.items():
            if path in users:
                users[path] |= pids
        found = frozenset[int]().union(*(users[path] for path in fit))
        return found.difference(*(users[path] for path in unfit))

    def remarks(self) -> Iterator[str]:
        """Sentences that the reader should know."""
        probes = self.probes()
        if not probes:
            yield "no traced process has mapped a library with functions to trace"
            if self._narrow:
                yield f"32-bit programs are not traced: {some([os.path.basename(path) for path in self._narrow])}"
        else:
            files = len({probe.path for probe in probes})
            where = f"{plural(len(probes), 'function')} of {plural(files, 'file')}"
            yield f"probes were on {where}, by {self._way.title}"
        yield from self.remarks_on_files()

    def remarks_on_files(self) -> Iterator[str]:
        """Remarks on what has no probe, and on probes that cost more."""
        slow = [probe.name for probe in self.probes() if not probe.is_fast]
        if slow:
            yield f"the kernel cannot emulate the first instruction of {some(slow)}: calls cost some 10 µs more"
        for path, nearest in self._without.items():
            has = f": it has {some(nearest)}" if nearest else ""
            yield f"{printable(os.path.basename(path))} has no function that {self._wanted.option} matches{has}"
        for path in dict.fromkeys((*self._unsafe, *self._refused)):
            if kinds := self._left_out(path):
                yield f"{printable(os.path.basename(path))}: left out {'; '.join(kinds)}"
        for path, why in self.problems.items():
            yield f"{printable(path)} was not traced: {printable(why)}"

    def _left_out(self, path: str) -> list[str]:
        """Wanted functions of a file without a probe: how many, why, and some of their names."""
        kinds = []
        for error, functions in sorted(self._refused.get(path, {}).items()):
            why = _REASONS.get(error) or f"which the kernel refuses ({os.strerror(error)})"
            kinds.append(
                f"{plural(len(functions), 'function')} {why}: {some([self.functions[i].name for i in functions])}"
            )
        if unsafe := self._unsafe.get(path):
            why = "that a probe on the return could end the program of"
            kinds.append(f"{plural(len(unsafe), 'function')} {why}: {some(_readable(unsafe))}")
        return kinds

    def close(self) -> None:
        self.is_closed = True
        links, self._links = self._links, []
        for link in links:
            link.close()
        kept, self._kept = self._kept, []
        for file in kept:
            os.close(file.fd)


def _readable(names: Sequence[str]) -> list[str]:
    """Names that are shown, without the mangling of C++ and Rust."""
    known = Demangler().demangle(names[:_NAMED])
    return [shortened(known.get(name, name), _LONGEST) for name in names]


def is_program(pid: int, mapping: Mapping) -> bool:
    """Whether the mapped file is the program that the process runs."""
    try:
        return os.readlink(f"/proc/{pid}/exe") == mapping.path
    except OSError:
        return False


def root_of(pid: int) -> Root:
    try:
        return Root.of(pid)
    except OSError:
        return HOST


def unfit(elf: ElfFile) -> str:
    """Reason why no function of this file can have a probe; "" if they can."""
    if why := of_another_machine(elf):
        return why
    return "Go made it, and a probe on the return of a function could end the program" if is_of_go(elf) else ""


def of_another_machine(elf: ElfFile) -> str:
    """Reason why no code of this file can have a probe at all; "" if it can."""
    return "" if elf.is_64 and elf.machine == _X86_64 else "its code is not that of 64-bit x86"
