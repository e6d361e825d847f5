"""Source lines and inlined functions, by LLVM's llvm-symbolizer or binutils' addr2line.

Both read the same DWARF; the first answers in JSON (since LLVM 13) and is much faster on large files. There is one
process per file, with the addresses on its standard input. Its input was written by the owner of the traced program:
it has no rights, its memory, CPU time and output are bounded, and its output is accepted only in the expected form.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import IO, NamedTuple

from ...converters.base import helpers
from ...converters.base.errors import StallscopeError

MAX_DEPTH = 64
"""Maximum number of functions inlined into each other at one address."""

_MEMORY = 4 << 30
"""Limit of the address space, without the file itself, which is mapped."""
_OUTPUT = 256 << 20
_LINE = 1 << 18
_NAME, _PATH = 1 << 15, 4096
_SECONDS = 120
_MAX_FAILURES = 3
_PLACE = re.compile(r"(.*):(\d{1,9}|\?)(?: \(discriminator \d+\))?\Z", re.DOTALL)


class Line(NamedTuple):
    """A function name from DWARF (mangled, "" when unknown), and the place in it: file ("") and line (0)."""

    function: str
    file: str
    line: int


Lines = tuple[Line, ...]
"""Innermost first: the inlined functions, then the function that has a symbol."""
_Reader = Callable[[Iterator[str], Sequence[int]], dict[int, Lines]]


class LineTool:
    """Runs one tool. ``problem`` says why it is not used any more; "" while it is."""

    def __init__(self, command: Sequence[str], read: _Reader) -> None:
        self.problem = ""
        self._command = command
        self._read = read
        self._failures = 0

    @classmethod
    def find(cls) -> LineTool:
        """The better of the installed tools. StallscopeError when there is none."""
        llvm = helpers.find_program("llvm-symbolizer")
        if llvm and _answers_in_json(llvm):
            return cls([llvm, "--output-style=JSON", "--no-demangle", "--obj={}"], _read_json)
        if binutils := helpers.find_program("addr2line"):
            return cls([binutils, "-a", "-i", "-f", "-e", "{}"], _read_text)
        raise StallscopeError(
            "--lines needs llvm-symbolizer or addr2line", "install the package llvm or binutils, or leave out --lines"
        )

    def look_up(self, fd: int, addresses: Sequence[int]) -> dict[int, Lines]:
        """The lines at virtual addresses of the open ELF file ``fd``; addresses without a known line are left out.

        If a tool dies or takes too long, only the answers that it had given by then are returned.
        """
        if self.problem or not addresses:
            return {}
        with tempfile.TemporaryFile() as questions, tempfile.TemporaryFile() as answers:
            questions.write("".join(f"{address:#x}\n" for address in addresses).encode())
            questions.seek(0)
            try:
                failure = self._run(fd, questions, answers)
            except OSError as error:
                failure = str(error)
            except KeyboardInterrupt:
                self.problem = "source lines were looked up no further: interrupted"
                failure = ""
            if failure:
                self._failures += 1
                if self._failures >= _MAX_FAILURES:
                    self.problem = f"source lines were looked up no further: {self._command[0]} {failure}"
            answers.seek(0)
            return self._read(_lines_of(answers), addresses)

    def _run(self, fd: int, questions: IO[bytes], answers: IO[bytes]) -> str:
        """Runs the tool; returns why it failed, "" if it did not."""
        given = helpers.for_nobody(fd)
        try:
            command = [part.format(f"/proc/self/fd/{given}") for part in self._command]
            limits = helpers.Limits(os.fstat(given).st_size + _MEMORY, _SECONDS, _OUTPUT)
            process = helpers.start(
                command, rights=helpers.NOBODY, limits=limits, fds=[given], stdin=questions, stdout=answers
            )
            try:
                if not helpers.wait(process, _SECONDS):
                    return f"took longer than {_SECONDS} s"
            finally:
                helpers.kill(process)
        finally:
            if given != fd:
                os.close(given)
        return f"ended with status {process.returncode}" if process.returncode else ""


def _answers_in_json(tool: str) -> bool:
    """False for older versions, which accept the option and answer in text."""
    try:
        command = [tool, "--output-style=JSON", "--obj=/dev/null"]
        done = helpers.run(command, seconds=30, data=b"0x0\n", rights=helpers.NOBODY)
        return bool(json.loads(done.output)["Address"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _lines_of(file: IO[bytes]) -> Iterator[str]:
    """The lines up to the first that is incomplete or longer than any genuine one."""
    while (line := file.readline(_LINE)).endswith(b"\n"):
        yield line[:-1].decode("utf-8", "backslashreplace")


def _read_json(lines: Iterator[str], addresses: Sequence[int]) -> dict[int, Lines]:
    """One object per address, in the order of the questions."""
    found: dict[int, Lines] = {}
    for address, text in zip(addresses, lines, strict=False):
        try:
            answer = json.loads(text)
            if int(answer["Address"], 16) != address:
                break
            entries = [_line(e["FunctionName"], e["FileName"], e["Line"]) for e in answer.get("Symbol", ())]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            break
        if known := _known(entries):
            found[address] = known
    return found


def _read_text(lines: Iterator[str], addresses: Sequence[int]) -> dict[int, Lines]:
    """Reads, for each address, a line with it, then two lines for each function: its name, and FILE:LINE."""
    found: dict[int, Lines] = {}
    heads = [f"0x{address:016x}" for address in addresses]
    line = next(lines, None)
    for i, address in enumerate(addresses):
        if line != heads[i]:
            break
        entries = []
        while (line := next(lines, None)) is not None and line not in heads[i + 1 : i + 2]:
            place = _PLACE.match(next(lines, ""))
            if place is None:
                return found
            entries.append(_line(line, place[1], 0 if place[2] == "?" else int(place[2])))
        if known := _known(entries):
            found[address] = known
    return found


def _line(function: object, file: object, number: object) -> Line:
    if not (isinstance(function, str) and isinstance(file, str) and isinstance(number, int)):
        raise TypeError("not what the tool answers")
    function, file = (("" if text == "??" else text) for text in (function, file))
    return Line(function[:_NAME], file[:_PATH], number if file and 0 < number < 1 << 31 else 0)


def _known(entries: list[Line]) -> Lines:
    """The entries as `Lines`; empty if the tool knew nothing."""
    # The outermost one has the symbol: it is always kept.
    kept = entries if len(entries) <= MAX_DEPTH else [*entries[: MAX_DEPTH - 1], entries[-1]]
    return tuple(kept) if any(line.function or line.file for line in kept) else ()
