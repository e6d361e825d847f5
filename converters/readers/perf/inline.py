"""Inlined functions, as named by binutils' addr2line: ``--inline`` of stackcollapse-perf.pl.

One addr2line per module runs as long as needed, and is queried address by address. Addresses are used as perf
prints them; if addr2line does not know one, ``nm`` gives the function's start, to which the offset is added.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from ...base.errors import StallscopeError

_MAX_MODULES = 32
"""Modules whose addr2line is kept running: each holds the debugging information that it has read."""
_NOT_A_FILE = re.compile(rb"perf-\d+.map|kernel\.|\[[^\]]+\]")
_FUNCTION = re.compile(rb"(.+)\+0x([0-9a-f]{1,16})\Z")
_DISCRIMINATOR = re.compile(rb" \(discriminator \S+\)")
_UNKNOWN = (b"??", b"??:0")
_END = b"0x0000000000000000"
"""The first line that addr2line -a prints for ``,``, which is not an address."""
_Value = TypeVar("_Value")


class Place(NamedTuple):
    """A function and the place in it, ``FILE:LINE`` without folders, as printed by addr2line."""

    function: bytes
    line: bytes


class Inliner:
    """Looks up addresses in any number of modules; must be closed. An unreadable module has no answers."""

    def __init__(self) -> None:
        self._processes: dict[bytes, subprocess.Popen[bytes] | None] = {}
        self._symbols: dict[bytes, bytes] = {}

    def close(self) -> None:
        """Ends every addr2line."""
        while self._processes:
            self._end(self._processes.popitem()[1])

    def places(self, address: bytes, function: bytes, module: bytes) -> list[Place]:
        """Innermost first; empty when nothing is known. ``function`` includes its offset, if any. Raises
        StallscopeError when addr2line is missing."""
        if _NOT_A_FILE.search(module) or not os.path.isfile(module):
            return []
        found = self._ask(address, module)
        if _UNKNOWN in found and (match := _FUNCTION.match(function)):
            start = self._start(match[1], module)
            if start is not None:
                found = self._ask(b"%#x" % (start + int(match[2], 16)), module)
        return [] if found == [Place(*_UNKNOWN)] else found

    def _ask(self, address: bytes, module: bytes) -> list[Place]:
        process = _kept(self._processes, module, self._start_process, self._end)
        if process is None or process.stdin is None or process.stdout is None:
            return []
        try:
            process.stdin.write(b"%b\n,\n" % address)
            process.stdin.flush()
            process.stdout.readline()
            lines = []
            while (line := process.stdout.readline()) and line.strip() != _END:
                lines.append(_DISCRIMINATOR.sub(b"", line.rstrip(b"\n")))
            if line:
                process.stdout.readline()
                process.stdout.readline()
        except OSError:
            lines = []
        return [Place(*pair) for pair in zip(lines[::2], lines[1::2], strict=False)]

    def _start_process(self, module: bytes) -> subprocess.Popen[bytes] | None:
        command = ["addr2line", "-a", "-i", "-f", "-s", "-C", "-e", os.fsdecode(module)]
        try:
            pipe, null = subprocess.PIPE, subprocess.DEVNULL
            return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=null)
        except FileNotFoundError as error:
            raise StallscopeError("--inline needs addr2line", "apt-get install binutils") from error
        except (OSError, ValueError):
            return None

    def _end(self, process: subprocess.Popen[bytes] | None) -> None:
        if process is not None:
            process.kill()
            process.communicate()

    def _start(self, function: bytes, module: bytes) -> int | None:
        """Start of the function according to the module's symbol table."""
        symbols = _kept(self._symbols, module, _nm, lambda _: None)
        match = re.search(rb"(?m)^([0-9a-f]{1,16}) . " + re.escape(function) + rb"$", symbols)
        return int(match[1], 16) if match else None


def _nm(module: bytes) -> bytes:
    path = os.fsdecode(b"./" + module if module.startswith(b"-") else module)
    try:
        return subprocess.run(["nm", path], capture_output=True, check=False).stdout
    except (OSError, ValueError):
        return b""


def _kept(
    known: dict[bytes, _Value], key: bytes, make: Callable[[bytes], _Value], drop: Callable[[_Value], Any]
) -> _Value:
    """The value for ``key``, made if necessary; removes the least recently used one when there are too many."""
    if key in known:
        value = known.pop(key)
    else:
        if len(known) >= _MAX_MODULES:
            drop(known.pop(next(iter(known))))
        value = make(key)
    known[key] = value
    return value
