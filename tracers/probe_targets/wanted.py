"""Functions to trace: CUDA's, and those of other libraries."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar

from . import cuda

LETTERS = re.Pattern[str]
_SUGGESTIONS = 3

_UNSAFE = re.compile(
    r"_Z|_R|.*\.|_*(sig)?setjmp$|_*(sig)?longjmp|_*vfork$|.*context$|__cxa_|_Unwind_|__gxx_|__libc_start|_start$"
)


def is_safe(name: str) -> bool:
    """Whether a function's return can be watched. The kernel replaces the return address for that, which ends programs
    whose code looks at it: exceptions of C++ and panics of Rust on their way out (`_Z`, `_R`), Go (names with a dot),
    and functions that return twice or on another stack."""
    return not _UNSAFE.match(name)


@dataclass(frozen=True)
class Library:
    """A library given by the user: a path, or a name without a folder, which any file of that name matches, with or
    without more digits of a version."""

    path: str
    identity: tuple[int, int] | None = None
    """(device, inode) of the path, if there is such a file."""

    @classmethod
    def at(cls, path: str) -> Library:
        """OSError if a path with a folder leads to no file. A name is not looked up: the current folder may be another
        user's, who would decide what it means, or whose file system does not answer."""
        if "/" not in path:
            return cls(path)
        status = os.stat(path)
        return cls(os.path.realpath(path), (status.st_dev, status.st_ino))

    def is_file(self, path: str, identity: tuple[int, int]) -> bool:
        """Whether a mapped file is this one; in another mount namespace, one of the same path is."""
        if self.identity == identity or path == self.path:
            return True
        if self.identity is not None:
            return False
        # Of libfoo.so.1, programs map the file that this link leads to: libfoo.so.1.2.3.
        name = os.path.basename(path)
        return name == self.path or (".so" in self.path and name.startswith(f"{self.path}."))


@dataclass(frozen=True)
class Wanted:
    """``api``: more of CUDA's functions; ``symbols``: those of ``libraries``."""

    api: LETTERS | None = None
    launches: bool = False
    libraries: tuple[Library, ...] = ()
    symbols: LETTERS | None = None
    option: ClassVar[str] = "--sym"
    """Option with which the user named the functions of ``libraries``."""

    def looks_into(self, path: str, identity: tuple[int, int], *, is_program: bool) -> bool:
        """Whether a file can have wanted functions. The runtime can be linked into a program."""
        return is_program or cuda.is_library(os.path.basename(path)) or self.is_given(path, identity)

    def learn(self, path: str, identity: tuple[int, int], names: Callable[[], Iterable[str]]) -> None:
        """Learns the names of a file's functions, before it is asked for them. ``names`` gives those of all of them."""

    def readable(self, name: str) -> str:
        """Name of a function in the outputs."""
        return name

    def is_exported(self, path: str, identity: tuple[int, int]) -> bool:
        """Whether all wanted functions of a file are among those that other files can call."""
        return False

    def is_begin(self, name: str) -> bool:
        """Whether a function is to have a probe at its entry only."""
        return False

    def wants(self, name: str, path: str, identity: tuple[int, int]) -> bool:
        """Whether a function of such a file is wanted."""
        if self._is_asked_for(name, path, identity) and is_safe(name):
            return True
        if not cuda.is_function(name):
            return False
        kind = cuda.kind(name)
        if kind and (kind != cuda.LAUNCH or self.launches):
            return True
        return bool(self.api and self.api.search(name))

    def is_unsafe(self, name: str, path: str, identity: tuple[int, int]) -> bool:
        """Whether the user asked for a function that must not have a probe."""
        return self._is_asked_for(name, path, identity) and not is_safe(name)

    def _is_asked_for(self, name: str, path: str, identity: tuple[int, int]) -> bool:
        return bool(self.symbols and self.is_given(path, identity) and self.symbols.search(name))

    def nearest(self, names: Iterable[str]) -> list[str]:
        """Names that are nearly so, of a library in which no function matches ``symbols``."""
        return difflib.get_close_matches(self.symbols.pattern.strip("^$") if self.symbols else "", names, _SUGGESTIONS)

    def is_given(self, path: str, identity: tuple[int, int]) -> bool:
        """Whether a file is one of ``libraries``."""
        return any(library.is_file(path, identity) for library in self.libraries)
