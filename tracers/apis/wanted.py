"""What to trace: CUDA's functions, and functions of other libraries."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from . import cuda

LETTERS = re.Pattern[str]


@dataclass(frozen=True)
class Library:
    """A library given by the user: a path, or a name without a folder, which any file of that name matches."""

    path: str
    identity: tuple[int, int] | None = None
    """(device, inode) of the path, if there is such a file."""

    @classmethod
    def at(cls, path: str) -> Library:
        """OSError if a path with a folder leads to no file."""
        try:
            status = os.stat(path)
        except OSError:
            if "/" in path:
                raise
            return cls(path)
        return cls(os.path.realpath(path), (status.st_dev, status.st_ino))

    def is_file(self, path: str, identity: tuple[int, int]) -> bool:
        """Whether a mapped file is this one; in another mount namespace, one of the same path is."""
        if self.identity == identity or path == self.path:
            return True
        return self.identity is None and os.path.basename(path) == self.path


@dataclass(frozen=True)
class Wanted:
    """``api``: more of CUDA's functions; ``symbols``: those of ``libraries``."""

    api: LETTERS | None = None
    launches: bool = False
    libraries: tuple[Library, ...] = ()
    symbols: LETTERS | None = None

    def looks_into(self, path: str, identity: tuple[int, int], *, is_program: bool) -> bool:
        """Whether a file can have wanted functions. The runtime can be linked into a program."""
        return is_program or cuda.is_library(os.path.basename(path)) or self._is_given(path, identity)

    def wants(self, name: str, path: str, identity: tuple[int, int]) -> bool:
        """Whether a function of such a file is wanted."""
        if self.symbols and self._is_given(path, identity) and self.symbols.search(name):
            return True
        if not cuda.is_function(name):
            return False
        kind = cuda.kind(name)
        if kind and (kind != cuda.LAUNCH or self.launches):
            return True
        return bool(self.api and self.api.search(name))

    def _is_given(self, path: str, identity: tuple[int, int]) -> bool:
        return any(library.is_file(path, identity) for library in self.libraries)
