"""The functions that a script is to time: which of them the files have."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from ....converters.base.errors import StallscopeError
from ....converters.base.text import printable, some
from ....converters.base.units import plural
from ...images.elf import ElfError, ElfFile, FileSource
from ...images.files import HOST
from ...images.functions import find_functions, function_names, is_of_go
from ...probe_targets import cuda
from ...probe_targets.wanted import Wanted
from ..protocol import EngineUnavailable
from .module_file import ModuleFile

MOST = 500
"""Functions of one module: stap compiles code for each."""
_NO_FILE = (-1, -1)
_NAME = re.compile(r"[A-Za-z_][\w$]*")
"""Names that a probe can be given: others have letters that mean something in the language of scripts."""


class Function(NamedTuple):
    """One that is timed: the path of its file, and how it is named in the outputs."""

    path: str
    shown: str


class Chosen(NamedTuple):
    """Functions as (path, name), and sentences that the reader should know."""

    functions: tuple[tuple[str, str], ...]
    remarks: tuple[str, ...] = ()

    def shown(self, wanted: Wanted) -> dict[str, Function]:
        """Functions by name; of equal names, the first file's."""
        return {name: Function(path, wanted.readable(name)) for path, name in reversed(self.functions)}


def choose(wanted: Wanted, files: Sequence[str], programs: Collection[str]) -> Chosen:
    """The wanted functions of ``files``, of which some are ``programs``. EngineUnavailable for none, and too many."""
    found: list[tuple[str, str]] = []
    left_out: list[str] = []
    for path in dict.fromkeys((*files, *(library.path for library in wanted.libraries if library.identity))):
        names = _wanted_in(path, wanted, is_program=path in programs)
        found += [(path, name) for name in names if _NAME.fullmatch(name)]
        left_out += [name for name in names if not _NAME.fullmatch(name)]
    if not found:
        raise EngineUnavailable(
            "none of the files that the targets map has functions to trace",
            f"name the file as {'TARGET' if wanted.option != '--sym' else '--lib'}, or with --stap-symbols FILE",
        )
    if len(found) > MOST:
        raise EngineUnavailable(
            f"{plural(len(found), 'function')} are too many for a module of SystemTap: at most {MOST}",
            "give a narrower expression",
        )
    told = f"functions with names that SystemTap does not take: {len(left_out)}, {left_out[0]}" if left_out else ""
    return Chosen(tuple(found), (told,) if told else ())


def check(module: ModuleFile, wanted: Wanted, found: Chosen) -> Chosen:
    """The functions of a module that was compiled before. ``found``: those that the targets have, as far as known.

    StallscopeError if it times others than ``wanted``, or none of ``found``: that no call is seen would say nothing.
    """
    has = sorted(module.functions)
    if others := [name for path, name in has if not _is_wanted(path, name, wanted)]:
        raise StallscopeError(
            f"{module.path} was compiled for other functions than this command asks for: {some(others)}",
            "compile it with the same options: --stap-compile-only",
        )
    lacks = [each for each in found.functions if each not in module.functions]
    if lacks and len(lacks) == len(found.functions):
        raise StallscopeError(
            f"{module.path} times none of the functions that the targets have: {some([name for _, name in lacks])} of "
            f"{printable(lacks[0][0])}",
            "compile it for this file: --stap-compile-only with --lib, TARGET or --stap-symbols FILE",
        )
    told = f"functions that the module does not time: {some([name for _, name in lacks])}"
    return Chosen(tuple(has), (told,) if lacks else ())


def _is_wanted(path: str, name: str, wanted: Wanted) -> bool:
    try:
        status = os.stat(path)
    except OSError:
        identity = _NO_FILE
    else:
        identity = status.st_dev, status.st_ino
    return wanted.wants(name, path, identity) and not wanted.is_begin(name)


def _wanted_in(path: str, wanted: Wanted, *, is_program: bool) -> list[str]:
    """Names of the functions that are wanted in a file, one per address."""
    try:
        fd = HOST.open_regular(path)
    except (OSError, ValueError):
        return []
    try:
        status = os.fstat(fd)
        identity = status.st_dev, status.st_ino
        if not wanted.looks_into(path, identity, is_program=is_program):
            return []
        elf = ElfFile(FileSource(fd))
        if is_of_go(elf):
            return []
        wanted.learn(path, identity, lambda: function_names(elf))
        found = find_functions(elf, lambda name: wanted.wants(name, path, identity) and not wanted.is_begin(name), 0)
        names = [each.name for each in found]
    except ElfError:
        return []
    finally:
        os.close(fd)
    if is_program and not wanted.libraries and not any(map(cuda.kind, names)):
        return []  # a program that only looks like CUDA's
    return names
