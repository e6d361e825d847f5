"""The file of a compiled module: which scripts are in it, and which functions it times."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from ....converters.base.errors import StallscopeError
from ....converters.base.text import printable
from ....converters.base.trusted import weak_part
from .compiling import NAME

_NAMED = re.compile(rb"\0(?:name=)?(NAME[a-z]+_[0-9a-f]{8})\0".replace(b"NAME", NAME.encode()))
"""Name in .modinfo; a module for kernels before 4.13 (3e2e857f9c3a) has it in its struct module alone."""
_POINT = re.compile(rb'process\("([^"\0]{1,4096})"\)\.function\("([^"\0@]{1,4096})(?:@[^"\0]*)?"\)\.(?:call|return)\b')
"""A probe as SystemTap names it, in the module and in its warnings. The function's source follows if it is known."""
UNATTACHED = "registration error"
"""Text in SystemTap's warning of a probe that the kernel does not take."""

_REMEDY = "name a file of --stap-compile-only"
_LONGEST = 300
"""Characters of a warning that are told."""

Functions = frozenset[tuple[str, str]]
"""(Path, name) of each."""


@dataclass(frozen=True)
class ModuleFile:
    """Module in a file of ``--stap-compile-only``, as it says of itself."""

    path: Path
    name: str
    """Name of the module; it names its scripts: `compiling.scripts_of`."""
    functions: Functions
    """Functions whose calls it times."""

    @classmethod
    def read(cls, path: Path) -> ModuleFile:
        """StallscopeError if it is no module of this tracer, or, as root, one that somebody else can have written: the
        kernel is going to execute it."""
        try:
            if weak := os.geteuid() == 0 and weak_part(os.path.abspath(path)):
                whose = f"{path} is not root's alone: others control {weak}"
                raise StallscopeError(
                    printable(whose), f"install -m 600 {printable(str(path))} /root/, and name that file"
                )
            content = path.read_bytes()
        except OSError as error:
            raise StallscopeError(f"cannot read {path}: {error.strerror}", _REMEDY) from None
        match = _NAMED.search(content)
        if not match:
            raise StallscopeError(f"{path} is no module of this tracer", _REMEDY)
        return cls(path, match[1].decode(), _functions(content))


def without_probe(words: str) -> Functions:
    """The functions at whose entry or return no probe could be put, by what staprun said: their calls are not seen."""
    lines = "\n".join(line for line in words.splitlines() if UNATTACHED in line)
    return _functions(lines.encode(errors="surrogateescape"))


def refusal(words: str) -> StallscopeError:
    """Error for a module of which no function has a probe."""
    first = next((line for line in words.splitlines() if UNATTACHED in line), "")
    return StallscopeError(
        f"no function could get a probe, so that no call can be seen (SystemTap: {printable(first)[:_LONGEST]})",
        "the kernel puts no probes on files of some file systems: copy program and library to a local one",
    )


def _functions(text: bytes) -> Functions:
    found = (match.groups() for match in _POINT.finditer(text))
    return frozenset((os.fsdecode(path), os.fsdecode(name)) for path, name in found)
