"""Predicts which files a program has mapped when its first own instruction runs: those that ld.so loads for it.

The rules are those of ld.so(8). The result may be incomplete: libraries opened while a program runs, audit libraries
and other C libraries' search rules are not covered.
"""

from __future__ import annotations

import os
import re
import struct
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from .elf import ElfError, ElfFile, FileSource, read_string
from .files import HOST

_PT_LOAD, _PT_DYNAMIC, _PT_INTERP = 1, 2, 3
_DT_NEEDED, _DT_STRTAB, _DT_STRSZ, _DT_RPATH, _DT_RUNPATH, _DT_FLAGS_1 = 1, 5, 10, 15, 29, 0x6FFFFFFB
_DF_1_NODEFLIB = 0x800
_MAX_DYNAMIC, _MAX_PATH = 1 << 16, 4096
_MAX_FILES, _MAX_FOLDERS, _MAX_LOOKS = 512, 64, 1 << 16
_MACHINES = {62: ("x86_64", 0x0300), 183: ("aarch64", 0x0A00)}
"""e_machine to ($PLATFORM, flags of entries in ld.so.cache (dl-cache.h))."""
_CACHE = "/etc/ld.so.cache"
_CACHE_MAGIC = b"glibc-ld.so.cache1.1"
_CACHE_HEAD, _CACHE_ENTRY = struct.Struct("<20sII20x"), struct.Struct("<iIIIQ")
_MAX_CACHE = 16 << 20
_PRELOAD = "/etc/ld.so.preload"
_PYTHON = re.compile(r"python3\.\d+")


@dataclass(frozen=True)
class _Object:
    """A file and the content of its dynamic section."""

    path: str
    """Path of the file, links resolved."""
    origin: str
    """$ORIGIN: the folder of the program, or where a library was found."""
    machine: int
    is_64: bool
    interpreter: str = ""
    needed: tuple[str, ...] = ()
    rpath: tuple[str, ...] = ()
    runpath: tuple[str, ...] = ()
    no_default: bool = False


@dataclass
class _Search:
    """One program's search for libraries. ``environ`` is the program's environment."""

    program: _Object
    environ: Mapping[str, str]
    known: dict[str, list[str]] = field(default_factory=dict)
    """Entries of ld.so.cache, by name."""
    looked: int = 0
    """Paths at which libraries were looked for."""

    def find(self, name: str, of: tuple[_Object, ...]) -> list[_Object]:
        """Finds a library that the last of ``of`` needs; each of the others needs the one after it.

        Returns all of its variants for different processors, from the first folder that has one: which of them ld.so
        loads depends on the processor.
        """
        if "/" in name:
            found = _read(_expand(name, of[-1])[0])
            return [found] if found else []
        for folder in self._folders(of):
            if found_here := self._fitting(f"{folder}/{variant}{name}" for variant in _variants(folder)):
                return found_here
        if of[-1].no_default:
            return []
        cached = self._fitting(self.known.get(name, []))
        return cached or self._first(f"{folder}/{name}" for folder in _default_folders(self.program.machine))

    def _folders(self, of: tuple[_Object, ...]) -> Iterator[str]:
        last = of[-1]
        if not last.runpath:
            for each in (*reversed(of), self.program):
                yield from each.rpath if not each.runpath else ()
        for folder in self.environ.get("LD_LIBRARY_PATH", "").replace(";", ":").split(":")[:_MAX_FOLDERS]:
            if folder:
                yield from _expand(folder, self.program)
        yield from last.runpath

    def _fitting(self, paths: Iterator[str] | list[str]) -> list[_Object]:
        objects = [found for path in paths if self._may_look() and (found := _read(path))]
        return [each for each in objects if (each.machine, each.is_64) == (self.program.machine, self.program.is_64)]

    def _may_look(self) -> bool:
        """Files can name any number of libraries and folders; a program of 512 libraries needs some 10,000 looks."""
        self.looked += 1
        return self.looked <= _MAX_LOOKS

    def _first(self, paths: Iterator[str]) -> list[_Object]:
        return next((found for path in paths if (found := self._fitting([path]))), [])


def needed(path: str, environ: Mapping[str, str], *, with_modules: bool = False, also: Sequence[str] = ()) -> list[str]:
    """Absolute paths, links resolved: the program itself, its interpreter (ld.so), and the libraries of both.

    ``environ`` is the program's environment. Empty when it is not an ELF file. ``with_modules``: for a Python
    interpreter, adds the modules of its standard library, which scripts import early. ``also``: names or paths of
    libraries that the program may open; where they are is what ld.so would find for the program itself.
    """
    with suppress(ValueError):  # a NUL
        path = os.path.realpath(path)
    program = _read(path)
    if program is None:
        return []
    search = _Search(program, environ, _read_cache(program.machine))
    found = {program.path: program}
    names: set[str] = set()
    todo: deque[tuple[tuple[_Object, ...], tuple[str, ...]]] = deque()
    modules = _modules(program.path) if with_modules else []
    todo.append(((program,), (*_first(program, environ), *program.needed, *modules, *also)))
    while todo:
        chain, wanted = todo.popleft()
        for name in wanted:
            # Files already found are not searched for again.
            if name in names or len(found) >= _MAX_FILES or search.looked > _MAX_LOOKS:
                continue
            names.add(name)
            for each in search.find(name, chain):
                if found.setdefault(each.path, each) is each:
                    todo.append(((*chain[-_MAX_FOLDERS:], each), each.needed))
    return list(found)


def _first(program: _Object, environ: Mapping[str, str]) -> tuple[str, ...]:
    """ld.so and what it loads for every program; nothing for a static one."""
    return (program.interpreter, *_preloaded(environ)) if program.interpreter else ()


def _modules(path: str) -> list[str]:
    """Extension modules of a Python's standard library: PREFIX/bin/python3.11 has them in PREFIX/lib/python3.11."""
    prefix, name = os.path.dirname(os.path.dirname(path)), os.path.basename(path)
    if not _PYTHON.fullmatch(name):
        return []
    folder = f"{prefix}/lib/{name}/lib-dynload"
    try:
        return sorted(f"{folder}/{file}" for file in os.listdir(folder) if file.endswith(".so"))
    except OSError:
        return []


def _preloaded(environ: Mapping[str, str]) -> list[str]:
    names = environ.get("LD_PRELOAD", "").replace(":", " ").split()
    with suppress(OSError), open(_PRELOAD, encoding="utf-8", errors="surrogateescape") as file:
        names += file.read(_MAX_PATH).replace(":", " ").split()
    return names[:_MAX_FOLDERS]


def _read(path: str) -> _Object | None:
    """None when the file is missing or cannot be part of a program."""
    try:
        fd = HOST.open_regular(os.path.realpath(path))
    except (OSError, ValueError):
        return None
    try:
        real = os.readlink(f"/proc/self/fd/{fd}")
        elf = ElfFile(FileSource(fd))
        origin = os.path.dirname(os.path.abspath(path))
        return _parse(real, origin, elf) if elf.machine in _MACHINES else None
    except (OSError, ElfError, struct.error):
        return None
    finally:
        os.close(fd)


def _parse(path: str, origin: str, elf: ElfFile) -> _Object:
    interpreter, entries = "", []
    for segment in elf.segments:
        if segment.type == _PT_INTERP and 0 < segment.filesz <= _MAX_PATH:
            interpreter = os.fsdecode(elf.source.read(segment.offset, segment.filesz).split(b"\0")[0])
        elif segment.type == _PT_DYNAMIC:
            layout = struct.Struct("<qQ" if elf.is_64 else "<iI")
            size = min(segment.filesz, _MAX_DYNAMIC) // layout.size * layout.size
            entries = list(layout.iter_unpack(elf.source.read(segment.offset, size)))
    values = dict(reversed(entries))
    string = _reader(elf, values.get(_DT_STRTAB, 0), values.get(_DT_STRSZ, 0))
    bare = _Object(path, origin, elf.machine, elf.is_64)

    def texts(tag: int) -> list[str]:
        return [string(value) for kind, value in entries if kind == tag][:_MAX_FILES]

    def folders(tag: int) -> tuple[str, ...]:
        parts = [part for text in texts(tag) for part in text.split(":") if part]
        expanded = (folder for part in parts[:_MAX_FOLDERS] for folder in _expand(part, bare))
        return tuple(folder for folder in expanded if len(folder) < _MAX_PATH)

    return replace(
        bare,
        interpreter=interpreter,
        needed=tuple(filter(None, texts(_DT_NEEDED))),
        rpath=folders(_DT_RPATH),
        runpath=folders(_DT_RUNPATH),
        no_default=bool(values.get(_DT_FLAGS_1, 0) & _DF_1_NODEFLIB),
    )


def _reader(elf: ElfFile, vaddr: int, size: int) -> Callable[[int], str]:
    """A function that returns the string at an index of the string table loaded at ``vaddr``."""
    for segment in elf.segments:
        if segment.type == _PT_LOAD and segment.vaddr <= vaddr < segment.vaddr + segment.filesz:
            offset = segment.offset + vaddr - segment.vaddr
            return lambda at: os.fsdecode(read_string(elf.source, offset, size, at, _MAX_PATH) or b"")
    return lambda _: ""


def _string(strings: bytes, at: int) -> str:
    end = strings.find(b"\0", at)
    return os.fsdecode(strings[at:end]) if 0 <= at < end else ""


def _expand(text: str, of: _Object) -> list[str]:
    """Expands dynamic string tokens; the right value of $LIB depends on the C library."""
    platform = _MACHINES[of.machine][0]
    for name, value in ("ORIGIN", of.origin), ("PLATFORM", platform):
        text = text.replace(f"${{{name}}}", value).replace(f"${name}", value)
    if "$LIB" not in text and "${LIB}" not in text:
        return [text]
    return [text.replace("${LIB}", lib).replace("$LIB", lib) for lib in (f"lib/{platform}-linux-gnu", "lib64", "lib")]


def _variants(folder: str) -> list[str]:
    """The subfolders for variants for particular processors, and the folder itself."""
    try:
        names = sorted(os.listdir(f"{folder}/glibc-hwcaps"))[:_MAX_FOLDERS]
    except (OSError, ValueError):
        names = []
    return [*(f"glibc-hwcaps/{name}/" for name in names), ""]


def _default_folders(machine: int) -> list[str]:
    multiarch = f"{_MACHINES[machine][0]}-linux-gnu"
    folders = [f"/lib/{multiarch}", f"/usr/lib/{multiarch}", "/lib64", "/usr/lib64", "/lib", "/usr/lib"]
    return [*folders, "/usr/local/lib"]  # the last one is musl's


def _read_cache(machine: int) -> dict[str, list[str]]:
    """The paths for this machine, by name, as ldconfig(8) wrote them. Empty where there is no readable cache."""
    try:
        with open(_CACHE, "rb") as file:
            data = file.read(_MAX_CACHE)
    except OSError:
        return {}
    begin = data.find(_CACHE_MAGIC)  # the older format may precede it
    if begin < 0 or len(data) < begin + _CACHE_HEAD.size:
        return {}
    data = data[begin:]
    _, count, _ = _CACHE_HEAD.unpack_from(data)
    wanted = _MACHINES[machine][1]
    known: dict[str, list[str]] = {}
    end = min(_CACHE_HEAD.size + count * _CACHE_ENTRY.size, len(data)) - _CACHE_ENTRY.size
    for at in range(_CACHE_HEAD.size, end + 1, _CACHE_ENTRY.size):
        flags, key, value, _, _ = _CACHE_ENTRY.unpack_from(data, at)
        name, path = _string(data, key), _string(data, value)
        if flags & 0xFF00 == wanted and name and path.startswith("/"):
            known.setdefault(name, []).append(path)
    return known
