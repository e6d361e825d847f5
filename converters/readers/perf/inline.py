"""Inlined functions, as named by binutils' addr2line: ``--inline`` of stackcollapse-perf.pl.

One addr2line per module runs as long as needed, and is queried address by address. Addresses are used as perf
prints them; if addr2line does not know one, ``nm`` gives the function's start, to which the offset is added.

Both get the opened module, not its name, and have no rights: the names are those of an untrusted text, and so may the
modules be. What they say, and the time that they take, is bounded.
"""

from __future__ import annotations

import os
import re
import select
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ...base import helpers
from ...base.errors import StallscopeError

if TYPE_CHECKING:
    import subprocess

_MAX_MODULES = 32
"""Modules whose addr2line is kept running: each holds the debugging information that it has read."""
_MEMORY, _SECONDS = 4 << 30, 120
"""Limits of addr2line and nm: bytes, without the module itself, and CPU time."""
_PATIENCE = 60.0
"""Seconds for one answer: the first reads all of the debugging information."""
_LONGEST, _MOST_SYMBOLS = 1 << 20, 256 << 20
"""Bytes of an answer of addr2line, and of what nm says."""
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
        self._processes: dict[bytes, _Asked | None] = {}
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
        asked = _kept(self._processes, module, self._start_process, self._end)
        if asked is None:
            return []
        try:
            lines = asked.answer(address)
        except OSError:
            self._end(asked)
            lines = []
        return [Place(*pair) for pair in zip(lines[::2], lines[1::2], strict=False)]

    def _start_process(self, module: bytes) -> _Asked | None:
        program = helpers.find_program("addr2line")
        if program is None:
            raise StallscopeError("--inline needs addr2line", "apt-get install binutils")
        try:
            with _opened(module) as fd:
                return _Asked([program, "-a", "-i", "-f", "-s", "-C", "-e", f"/proc/self/fd/{fd}"], fd)
        except (OSError, ValueError):
            return None

    def _end(self, asked: _Asked | None) -> None:
        if asked is not None:
            asked.close()

    def _start(self, function: bytes, module: bytes) -> int | None:
        """Start of the function according to the module's symbol table."""
        symbols = _kept(self._symbols, module, _nm, lambda _: None)
        match = re.search(rb"(?m)^([0-9a-f]{1,16}) . " + re.escape(function) + rb"$", symbols)
        return int(match[1], 16) if match else None


class _Asked:
    """A running addr2line."""

    def __init__(self, command: list[str], fd: int) -> None:
        self._ask_read, self._ask = os.pipe2(os.O_CLOEXEC)
        self._said, said_write = os.pipe2(os.O_CLOEXEC)
        self._rest = b""
        try:
            limits = helpers.Limits(os.fstat(fd).st_size + _MEMORY, _SECONDS)
            self.process: subprocess.Popen[bytes] = helpers.start(
                command, rights=helpers.NOBODY, limits=limits, fds=[fd], stdin=self._ask_read, stdout=said_write
            )
        except BaseException:
            os.close(self._ask)
            os.close(self._said)
            raise
        finally:
            os.close(self._ask_read)
            os.close(said_write)
        self._is_open = True

    def answer(self, address: bytes) -> list[bytes]:
        """Two lines for each function. OSError if none comes."""
        if not self._is_open:
            raise BrokenPipeError
        os.write(self._ask, b"%b\n,\n" % address)
        until = time.monotonic() + _PATIENCE
        self._line(until)
        lines: list[bytes] = []
        while (line := self._line(until)).strip() != _END:
            lines.append(_DISCRIMINATOR.sub(b"", line))
            if sum(map(len, lines)) > _LONGEST:
                raise OSError("an answer without end")
        self._line(until)
        self._line(until)
        return lines

    def _line(self, until: float) -> bytes:
        while b"\n" not in self._rest:
            if not select.select([self._said], [], [], max(until - time.monotonic(), 0))[0]:
                raise TimeoutError
            data = os.read(self._said, 1 << 16)
            if not data or len(self._rest) > _LONGEST:
                raise BrokenPipeError
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def close(self) -> None:
        """Ends it."""
        if self._is_open:
            self._is_open = False
            os.close(self._ask)
            os.close(self._said)
        helpers.kill(self.process)


@contextmanager
def _opened(module: bytes) -> Iterator[int]:
    """A descriptor that a helper may open again. OSError for what is no regular file."""
    fd = given = os.open(module, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError("not a regular file")
        given = helpers.for_nobody(fd)
        yield given
    finally:
        if given != fd:
            os.close(given)
        os.close(fd)


def _nm(module: bytes) -> bytes:
    program = helpers.find_program("nm")
    if program is None:
        return b""
    try:
        with _opened(module) as fd:
            limits = helpers.Limits(os.fstat(fd).st_size + _MEMORY, _SECONDS)
            command = [program, f"/proc/self/fd/{fd}"]
            return helpers.run(
                command, seconds=_PATIENCE, most=_MOST_SYMBOLS, rights=helpers.NOBODY, limits=limits, fds=[fd]
            ).output
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
