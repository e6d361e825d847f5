"""The native stacks of a process held still, as eu-stack (elfutils) and gdb see them, and how ours differ from them.

Both stop the process for a moment. Neither needs frame pointers: they read .eh_frame and .debug_frame, as debuggers do.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from elftools.elf.elffile import ELFFile
from stallscope.converters.model import Frame, Stack

PATIENCE = 60
STARTS = ("_start", "__libc_start_main", "__libc_start_call_main", "clone", "clone3", "start_thread")
"""Functions in which a process or a thread begins: outermost frames of whole stacks."""

_EU_THREAD = re.compile(r"TID (\d+):")
_EU_FRAME = re.compile(r"#\d+\s+0x([0-9a-f]+)(?: (\S.*?))?\s*$")
_GDB_SETTINGS = (
    "set debuginfod enabled off",
    "set auto-load off",
    "set backtrace past-main on",
    "set backtrace past-entry on",
    "set print demangle off",
    "set print asm-demangle off",
)
_GDB_SCRIPT = """
import gdb, json
def name(address):
    said = gdb.execute("info symbol %d" % address, to_string=True).strip()
    return "" if said.startswith("No symbol matches") else said.split(" in section ")[0].split(" + ")[0]
for thread in gdb.selected_inferior().threads():
    thread.switch()
    stack, frame, called = [], gdb.newest_frame(), 0
    while frame is not None:
        if frame.type() in (gdb.NORMAL_FRAME, gdb.SIGTRAMP_FRAME):
            trampoline = frame.type() == gdb.SIGTRAMP_FRAME
            stack.append((frame.pc(), name(frame.pc() - (0 if trampoline else called))))
            called = int(not trampoline)
        frame = frame.older()
    print("STACK", json.dumps((thread.ptid[1], stack)))
"""
_LIBC_ALIASES = re.compile(r"^(?:__GI_|__libc_(?!start))?_*")


class TruthFrame(NamedTuple):
    """``path`` and ``vaddr`` are the file and the ELF virtual address, "" and absolute where no file is."""

    name: str
    """Name as the tool says, readable; "" when it knows none."""
    path: str
    vaddr: int


TruthStack = list[TruthFrame]
"""Outermost frame first, without inlined functions."""


def eu_stacks(pid: int) -> dict[int, TruthStack]:
    """Stacks by thread. AssertionError when eu-stack could not see it all."""
    command = ["eu-stack", "--raw", "-n", "0", "-p", str(pid)]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert finished.returncode == 0, finished.stderr
    stacks: dict[int, list[tuple[int, str]]] = {}
    for line in finished.stdout.splitlines():
        if thread := _EU_THREAD.fullmatch(line):
            stack = stacks[int(thread[1])] = []
        elif frame := _EU_FRAME.fullmatch(line):
            stack.append((int(frame[1], 16), frame[2] or ""))
    return _placed(pid, stacks)


def gdb_stacks(pid: int) -> dict[int, TruthStack]:
    """Stacks by thread, without the frames that gdb makes up for inlined functions and tail calls.

    gdb guesses where code has no unwind table (made at run time): it is no witness there.
    """
    command = ["gdb", "-nx", "-batch"]
    for setting in _GDB_SETTINGS:
        command += ["-iex", setting]
    command += ["-p", str(pid), "-ex", 'python exec(__import__("os").environ["STACKS_SCRIPT"])']
    environment = {**os.environ, "STACKS_SCRIPT": _GDB_SCRIPT, "LC_ALL": "C"}
    finished = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=environment)
    lines = [line for line in finished.stdout.splitlines() if line.startswith("STACK ")]
    assert lines, finished.stderr
    return _placed(pid, dict(json.loads(line.partition(" ")[2]) for line in lines))


def _placed(pid: int, stacks: dict[int, list[tuple[int, str]]]) -> dict[int, TruthStack]:
    """Innermost-first absolute addresses as frames, outermost first."""
    maps = _executable_mappings(pid)
    names = sorted({name for stack in stacks.values() for _, name in stack})
    readable = dict(zip(names, _demangled(tuple(names)), strict=True))
    return {
        tid: [TruthFrame(readable[name], *_place(pid, maps, address)) for address, name in reversed(stack)]
        for tid, stack in stacks.items()
    }


def _executable_mappings(pid: int) -> list[tuple[int, int, int, str]]:
    """(start, end, file offset, path): proc(5)."""
    found = []
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        fields = line.split(maxsplit=5)
        if "x" in fields[1]:
            start, _, end = fields[0].partition("-")
            found.append((int(start, 16), int(end, 16), int(fields[2], 16), fields[5] if len(fields) > 5 else ""))
    return found


def _place(pid: int, maps: list[tuple[int, int, int, str]], address: int) -> tuple[str, int]:
    for start, end, offset, path in maps:
        if start <= address < end:
            if not path.startswith("/"):
                return path, address
            return path, _to_vaddr(f"/proc/{pid}/map_files/{start:x}-{end:x}", address - start + offset)
    return "", address


def _to_vaddr(file: str, offset: int) -> int:
    for file_offset, size, vaddr in _segments(file, os.stat(file).st_ino):
        if file_offset <= offset < file_offset + size:
            return offset - file_offset + vaddr
    raise AssertionError(f"{offset:#x} is in no segment of {file}")


@lru_cache(256)
def _segments(file: str, _inode: int) -> list[tuple[int, int, int]]:
    with open(file, "rb") as stream:
        headers = list(ELFFile(stream).iter_segments("PT_LOAD"))
    return [(header["p_offset"], header["p_filesz"], header["p_vaddr"]) for header in headers]


def native(stack: Stack) -> list[Frame]:
    """The user frames, outermost first."""
    return [frame for frame in stack if frame.kind != "kernel"]


def reaches_start(stack: Stack) -> bool:
    """Whether its outermost user frame is where a thread or a process begins."""
    frames = native(stack)
    return bool(frames) and plain(frames[0].name) in STARTS


def plain(name: str) -> str:
    """A function's name without what tools put to it: the version, Rust's hash, prefixes of the C library's aliases."""
    name = re.sub(r"@.*", "", name) if not name.startswith("[") and "(" not in name else name
    name = re.sub(r"(::h[0-9a-f]{16})?(\.llvm\.\d+)?$", "", name)
    return name if name.startswith("__libc_start") or name == "_start" else _LIBC_ALIASES.sub("", name)


def differences(ours: Sequence[Frame], truth: TruthStack, deepest: int | None = None) -> list[str]:
    """Differences, frame by frame and readable; empty when all is equal.

    ``deepest``: how many frames, from the innermost on, may be there of a stack that has more.
    """
    if deepest is not None:
        truth = truth[-deepest:]
    found = []
    if len(ours) != len(truth):
        found.append(f"{len(ours)} frames, and not {len(truth)}")
    for i in range(1, max(len(ours), len(truth)) + 1):
        mine = ours[-i] if i <= len(ours) else None
        true = truth[-i] if i <= len(truth) else None
        if mine is None or true is None or not _equal(mine, true, i > 1):
            found.append(f"#{i - 1} {_shown(mine)} and not {true}")
    return found


def _shown(frame: Frame | None) -> str:
    return f"{frame.name} {frame.module.path if frame.module else ''} {frame.address:#x}" if frame else "nothing"


def _equal(mine: Frame, true: TruthFrame, called: bool) -> bool:
    if true.path.startswith("/"):
        if mine.address != true.vaddr or not mine.module or mine.module.path != true.path.removesuffix(" (deleted)"):
            return False
        return same_name(mine.name, true.name, aliases(true.path, true.vaddr - called))
    # Code without a file: [vdso], or made at run time.
    return not true.name or plain(mine.name) == plain(true.name)


def same_name(mine: str, true: str, other: frozenset[str] = frozenset()) -> bool:
    """Whether both name one function; ``other`` are the names of the function at that address."""
    if not true:
        return mine.startswith("[")
    return plain(mine) in {plain(name) for name in (true, *other)}


@lru_cache(4096)
def aliases(path: str, vaddr: int) -> frozenset[str]:
    """Readable names of all symbols of the file, and of its debug file, that begin where the function does."""
    symbols = _function_symbols(path)
    starts = {start for start, size, _ in symbols if start <= vaddr < start + max(size, 1)}
    return frozenset(_demangled(tuple(sorted({name for start, _, name in symbols if start in starts}))))


@lru_cache(64)
def _function_symbols(path: str) -> list[tuple[int, int, str]]:
    """(value, size, name)."""
    found = set()
    for file in filter(os.path.exists, (path, _debug_file(path))):
        for table in ([], ["--dynamic"]):
            command = ["nm", "--defined-only", "--print-size", "--no-demangle", *table, file]
            output = subprocess.run(command, capture_output=True, text=True).stdout
            for fields in (line.split() for line in output.splitlines()):
                if len(fields) == 4 and fields[2] in "TtWwViIu":
                    found.add((int(fields[0], 16), int(fields[1], 16), fields[3].partition("@")[0]))
    return sorted(found)


def _debug_file(path: str) -> str:
    """Debian's -dbg and -dbgsym packages, by build id."""
    try:
        with open(path, "rb") as stream:
            section = ELFFile(stream).get_section_by_name(".note.gnu.build-id")
            build_id = next(section.iter_notes())["n_desc"] if section else ""
    except OSError:
        return ""
    return f"/usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug"


@lru_cache(4096)
def _demangled(names: tuple[str, ...]) -> tuple[str, ...]:
    """Names demangled by c++filt, which knows C++ and Rust."""
    text = "".join(re.sub(r"\.llvm\.\d+$", "", name) + "\n" for name in names)
    finished = subprocess.run(["c++filt"], input=text, capture_output=True, text=True, check=True)
    return tuple(finished.stdout.splitlines())
