"""Functions that the user names: ``FILE:GLOB``, ``FILE:/REGEX/`` or ``FILE:re:REGEX``."""

from __future__ import annotations

import difflib
import fnmatch
import os
import re
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import ClassVar

from ...converters.names.cxx import without_arguments
from ...converters.names.demangle import Demangler, is_mangled
from .wanted import LETTERS, Library, Wanted, is_safe

_SUGGESTIONS = 3
_ELF = b"\x7fELF"
_ENDS_ANYHOW = re.compile(
    r".*\.|_*(sig)?setjmp$|_*(sig)?longjmp|_*vfork$|.*context$|__cxa_|_Unwind_|__gxx_|__libc_start|_start$|"
    r"_ZSt\d+__throw"
)
"""Names of functions whose return must not be watched even if no exception leaves one. With a dot: parts of functions
that are jumped to (`.cold`) have no return address where the kernel looks for it."""


@dataclass(frozen=True)
class Program(Library):
    """A name without a folder that is not a library's: any file of that name, with or without a version behind it."""

    def is_file(self, path: str, identity: tuple[int, int]) -> bool:
        return re.fullmatch(r"[\d.]*", _after(self.path, os.path.basename(path))) is not None


@dataclass(frozen=True)
class Target:
    """``text``: as the user gave it. ``pattern`` is searched in names, with and without mangling."""

    text: str
    libraries: tuple[Library, ...]
    pattern: LETTERS

    @classmethod
    def parse(cls, text: str) -> Target:
        """ValueError for a wrong one; OSError for a path without a file."""
        file, colon, names = text.partition(":")
        if not (file and colon and names) or names.startswith(":"):
            raise ValueError(f"{text!r} is not FILE:FUNCTION, such as libc.so.6:getenv or python3:Py*")
        try:
            pattern = re.compile(expression(names))
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(f"{text!r} has no regular expression: {error}") from None
        return cls(text, libraries(file), pattern)

    def is_file(self, path: str, identity: tuple[int, int]) -> bool:
        """Whether its functions are those of this file."""
        return any(library.is_file(path, identity) for library in self.libraries)

    def matches(self, names: Iterable[str]) -> bool:
        """Whether one of the names of a function is meant."""
        return any(self.pattern.search(name) for name in names)


@dataclass(frozen=True)
class Targets(Wanted):
    """The functions of ``targets``, and no others. ``returns``: those that an exception could leave, too."""

    targets: tuple[Target, ...] = ()
    returns: bool = False
    _known: dict[str, tuple[str, ...]] = field(default_factory=dict, compare=False, repr=False)
    """Names of mangled functions: mangled, readable, and readable without arguments."""
    option: ClassVar[str] = "a TARGET"

    @classmethod
    def of(cls, targets: Iterable[Target], *, returns: bool = False) -> Targets:
        """All of them."""
        targets = tuple(targets)
        found = tuple(dict.fromkeys(library for target in targets for library in target.libraries))
        return cls(libraries=found, targets=targets, returns=returns)

    def looks_into(self, path: str, identity: tuple[int, int], *, is_program: bool) -> bool:
        return self.is_given(path, identity)

    def learn(self, path: str, identity: tuple[int, int], names: Callable[[], Iterable[str]]) -> None:
        """Demangles the names together, which takes one process."""
        if not self.is_given(path, identity):
            return
        mangled = [name for name in names() if is_mangled(name) and name not in self._known]
        for name, readable in Demangler().demangle(mangled).items():
            short = without_arguments(readable.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")
            self._known[name] = (name, readable, short)

    def readable(self, name: str) -> str:
        return self._known[name][1] if name in self._known else name

    def wants(self, name: str, path: str, identity: tuple[int, int]) -> bool:
        return self._is_asked_for(name, path, identity) and self.can_return(name)

    def is_unsafe(self, name: str, path: str, identity: tuple[int, int]) -> bool:
        return self._is_asked_for(name, path, identity) and not self.can_return(name)

    def can_return(self, name: str) -> bool:
        """Whether a probe at the return of this function is allowed."""
        return not _ENDS_ANYHOW.match(name) if self.returns else is_safe(name)

    def _is_asked_for(self, name: str, path: str, identity: tuple[int, int]) -> bool:
        names = self._known.get(name, (name,))
        return any(target.matches(names) for target in self.targets if target.is_file(path, identity))

    def nearest(self, names: Iterable[str]) -> list[str]:
        """Names that are nearly what one of the targets asks for."""
        texts = [target.text.partition(":")[2].removeprefix("re:").strip("/*^$") for target in self.targets]
        short = {self._known.get(name, (name,))[-1] for name in names}
        found = [name for text in texts for name in difflib.get_close_matches(text, short, _SUGGESTIONS)]
        return list(dict.fromkeys(found))[:_SUGGESTIONS]


def expression(names: str) -> str:
    """The regular expression of what follows the file's name. ``re::f`` is a name of C++."""
    if names.startswith("re:") and not names.startswith("re::"):
        return names[3:]
    if names.startswith("/") and names.endswith("/") and len(names) > len("//"):
        return names[1:-1]
    return rf"\A{fnmatch.translate(names)}"


def libraries(file: str) -> tuple[Library, ...]:
    """Files that FILE stands for: a path; or a name, which any file of that name has, and the program that the shell
    would run for it. A name is not looked up in the current folder: see `Library.at`."""
    if "/" in file:
        return (Library.at(file),)
    if ".so" in file:
        return (Library(file),)
    program = shutil.which(file)
    return (Program(file), Library.at(program)) if program and _is_elf(program) else (Program(file),)


def _after(begin: str, text: str) -> str:
    """Rest of the text; a text that is no version if it begins in another way."""
    return text.removeprefix(begin) if text.startswith(begin) else "-"


def _is_elf(path: str) -> bool:
    """Scripts have no functions."""
    try:
        with open(path, "rb") as file:
            return file.read(len(_ELF)) == _ELF
    except OSError:
        return False
