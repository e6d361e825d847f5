"""Another user's Python, which has nothing to do with anything, and its code as it is in its memory and in its file."""

from __future__ import annotations

import contextlib
import os
import select
import struct
import subprocess
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path

import capstone
from attackers import PATIENCE, free_uid
from default_signals import in_child

_BREAKPOINT = 0xCC
_LOAD, _EH_FRAME_HDR, _EXECUTABLE = 1, 0x6474E550, 1
_TABLE = (0x1B, 0x03, 0x3B)
"""Encodings of .eh_frame_hdr as linkers write it: Linux Standard Base, 10.6.2."""

PROGRAM = """
import json, re, sys, time
value = {"rows": [{"id": i, "text": "é" * i} for i in range(50)]}
expected = json.dumps(value)
while True:
    for _ in range(20):
        scope = {}
        exec(compile("def f(a, b=2):\\n return [a * i + b for i in range(9)]\\nx = sum(f(3))", "", "exec"), scope)
        assert scope["x"] == 126
        assert json.dumps(json.loads(expected)) == expected
        assert re.sub("[0-9]+", "", "a1b22") == "ab"
    print("ready", flush=True)
    time.sleep(0.01)
"""


class Code:
    """The text of a program's file: its bytes, and where its instructions begin."""

    def __init__(self, path: Path) -> None:
        self.data = path.read_bytes()
        offset, _, _, _, size, count = struct.unpack_from("<QQIHHH", self.data, 32)
        self.segments = [struct.unpack_from("<IIQQQQQQ", self.data, offset + i * size) for i in range(count)]
        self.functions = self._read_functions()
        self._machine = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)

    def _read_functions(self) -> list[int]:
        """Addresses in the file at which functions begin, as its table for unwinding says."""
        ((_, _, at, vaddr, *_),) = [segment for segment in self.segments if segment[0] == _EH_FRAME_HDR]
        assert tuple(self.data[at + 1 : at + 4]) == _TABLE
        (count,) = struct.unpack_from("<I", self.data, at + 8)
        pairs = struct.iter_unpack("<ii", self.data[at + 12 : at + 12 + 8 * count])
        return sorted(vaddr + start for start, _ in pairs)

    def is_instruction(self, vaddr: int) -> bool:
        """Whether an instruction of a function begins there."""
        at = bisect_right(self.functions, vaddr)
        if not at:
            return False
        start = self.functions[at - 1]
        offset = next(s[2] - s[3] for s in self.segments if s[0] == _LOAD and s[3] <= start < s[3] + s[5])
        code = self.data[start + offset : vaddr + offset + 16]
        return vaddr in {each[0] for each in self._machine.disasm_lite(code, start)}

    def place(self, pid: int, vaddr: int) -> tuple[int, int]:
        """The offset in the file of an instruction's address there, and its address in a process."""
        offset = next(vaddr + s[2] - s[3] for s in self.segments if s[0] == _LOAD and s[3] <= vaddr < s[3] + s[5])
        return next((offset, start + offset - at) for start, size, at in _text_mappings(pid) if 0 <= offset - at < size)

    def breakpoints(self, pid: int) -> set[int]:
        """Addresses in the file at which a process has one."""
        found = set()
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
            for start, size, offset in _text_mappings(pid):
                memory.seek(start)
                text = memory.read(size)
                places = [at for at in _places(text) if self.data[offset + at] != _BREAKPOINT]
                for s in self.segments:
                    found |= {at + offset - s[2] + s[3] for at in places if s[0] == _LOAD and s[1] & _EXECUTABLE}
        return found

    def strange(self, pid: int) -> list[tuple[int, str]]:
        """Places where the text in a process differs from the file, other than by a breakpoint on an instruction."""
        mappings = _text_mappings(pid)
        found = []
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
            for start, size, offset in mappings:
                memory.seek(start)
                text = memory.read(size)
                expected = self.data[offset : offset + len(text)]
                for i in range(0, len(text), 4096):
                    if text[i : i + 4096] != expected[i : i + 4096].ljust(len(text[i : i + 4096]), b"\0"):
                        found += self._judge(text, expected, i, offset)
        return found

    def _judge(self, text: bytes, expected: bytes, page: int, offset: int) -> list[tuple[int, str]]:
        found = []
        for at in range(page, min(page + 4096, len(expected))):
            if text[at] == expected[at]:
                continue
            vaddr = next(at + offset - s[2] + s[3] for s in self.segments if s[0] == _LOAD and s[1] & _EXECUTABLE)
            if text[at] != _BREAKPOINT:
                found.append((vaddr, f"{text[at]:#x} instead of {expected[at]:#x}"))
            elif not self.is_instruction(vaddr):
                found.append((vaddr, "a breakpoint inside an instruction"))
        return found


def _places(text: bytes) -> Iterator[int]:
    at = -1
    while (at := text.find(_BREAKPOINT, at + 1)) >= 0:
        yield at


def _text_mappings(pid: int) -> list[tuple[int, int, int]]:
    """Start, size and offset of what a program has mapped of its own file to be executed."""
    own = os.readlink(f"/proc/{pid}/exe")
    found = []
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        addresses, flags, offset, _, _, *path = line.split(None, 5)
        if "x" in flags and path == [own]:
            start, end = (int(each, 16) for each in addresses.split("-"))
            found.append((start, end - start, int(offset, 16)))
    return found


class Neighbour:
    """The process. A context manager."""

    def __init__(self, python: Path) -> None:
        uid = free_uid(1)
        self.code = Code(python)
        self.process = subprocess.Popen(
            ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--", python, "-c", PROGRAM],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd="/",
            env={"PYTHONHOME": "/usr"},
            start_new_session=True,
            preexec_fn=in_child,  # noqa: PLW1509  # it only sets signals
        )

    def goes_on(self) -> bool:
        """Whether it still computes, and finds its results right."""
        assert self.process.stdout
        for _ in range(2):  # what it said before, then something new
            if not select.select([self.process.stdout], [], [], PATIENCE)[0] or not os.read(
                self.process.stdout.fileno(), 1 << 16
            ):
                return False
        return self.process.poll() is None

    def check(self) -> None:
        """Checks that the process is unharmed."""
        assert self.goes_on(), (self.process.poll(), self.process.stderr and self.process.stderr.read1()[-500:])  # type: ignore[attr-defined]
        assert self.code.strange(self.process.pid) == []


@contextlib.contextmanager
def neighbour(python: Path) -> Iterator[Neighbour]:
    found = Neighbour(python)
    try:
        assert found.goes_on()
        yield found
    finally:
        found.process.kill()
        found.process.wait()
        for stream in (found.process.stdout, found.process.stderr):
            assert stream
            stream.close()
