"""Ranks that processes got after they were started: from the environment in their memory.

A program that forks its ranks sets their variables then, in Python by ``os.environ``, which CPython hands on to the C
library (setenv(3)): /proc/PID/environ still has what the first program was started with. The C library's variable
``environ`` (environ(7)) points to what is set now.
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterable

from ...base.conditions import Conditions
from ...base.ranks import ranks_in
from ...cpython.memory import memory_of
from ...cpython.runtime import address_of
from ...images.elf import SHT_DYNSYM, ElfError
from ...images.maps import Mapping
from ...images.variables import variables_named
from ...outside.reads import Memory
from ...symbols.process import ProcessSpaces

_ENVIRON = {b"environ", b"__environ"}
_LIBC = re.compile(r"libc\.so\.6|libc-[\d.]+\.so|ld-musl-.*|libc\.musl-.*")
"""Files of the C library; a program that names the variable itself has it instead (a copy relocation)."""
_MOST_VARIABLES = 1 << 10
_LONGEST = 160
"""Bytes of a variable and its value that are read."""
_PAUSE, _BETWEEN, _SLICE, _LAST = 1.0, 0.1, 0.01, 0.3
"""Seconds between two looks at all, between the parts of one, for a part, and for the last one."""
_TRIES = 3
"""Looks at a process while the trace runs: a rank sets its variables soon after it has begun."""


class LaterRanks:
    """Looks for ranks of processes that were started without one beside others like them."""

    def __init__(self, spaces: ProcessSpaces, conditions: Conditions) -> None:
        self._spaces, self._conditions = spaces, conditions
        self._next = 0.0
        self._together: set[object] = set()
        """Groups that had several such processes: the last one of them still counts."""
        self._tried: Counter[int] = Counter()
        self._vaddrs: dict[tuple[int, int] | str, int] = {}
        """Virtual address of the variable, by file; 0 for one without it."""

    def poll(self) -> None:
        """Called repeatedly while the trace runs."""
        now = time.monotonic()
        if now >= self._next:
            are_all = self._look([pid for pid in self._candidates() if self._tried[pid] < _TRIES], now + _SLICE)
            self._next = time.monotonic() + (_PAUSE if are_all else _BETWEEN)

    def finish(self) -> None:
        """The trace has ended: looks at all once more."""
        self._look(self._candidates(), time.monotonic() + _LAST)

    def _candidates(self) -> list[int]:
        """Processes without a rank that one process has started together with others of the same program."""
        groups: dict[object, list[int]] = defaultdict(list)
        for pid, origin in self._conditions.without_rank():
            if origin.ancestors and origin.executable and pid in self._spaces.processes:
                groups[origin.ancestors[0].pid, origin.executable].append(pid)
        self._together.update(key for key, group in groups.items() if len(group) > 1)
        return [pid for key, group in groups.items() if key in self._together for pid in group]

    def _look(self, pids: Iterable[int], until: float) -> bool:
        """Looks at processes until this time, those first that have had the fewest looks; whether that were all."""
        for pid in sorted(pids, key=lambda pid: self._tried[pid]):
            if time.monotonic() >= until:
                return False
            self._tried[pid] += 1
            if ranks := ranks_in(self._environment(pid)):
                self._conditions.learn_ranks(pid, ranks)
        return True

    def _environment(self, pid: int) -> bytes:
        """The variables that are set now, as in /proc/PID/environ; b"" if they cannot be read."""
        process = self._spaces.processes[pid]
        if process.exited:
            return b""
        for mapping in list(process.space):
            if not _may_have_it(mapping):
                continue
            address = self._address(mapping)
            try:
                with memory_of(pid) as memory:
                    found = _read(memory, address) if address else b""
            except OSError:
                return b""
            if found:
                return found
        return b""

    def _address(self, mapping: Mapping) -> int:
        """The address of ``environ`` in a process with this mapping of a file that has it; 0 if it has not."""
        file = self._spaces.object_of(mapping)
        elf = file.elf() if file is not None else None
        if elf is None or not elf.is_64:
            return 0
        if mapping.key not in self._vaddrs:
            try:
                found = variables_named(elf, _ENVIRON, (SHT_DYNSYM,))
            except ElfError:
                found = {}
            self._vaddrs[mapping.key] = min(found.values(), default=0)
        vaddr = self._vaddrs[mapping.key]
        return (address_of(elf, mapping, vaddr) or 0) if vaddr else 0


def _may_have_it(mapping: Mapping) -> bool:
    """Whether a mapped file may be a program or the C library."""
    name = os.path.basename(mapping.file_path)
    return mapping.is_file and bool(_LIBC.fullmatch(name) or ".so" not in name)


def _read(memory: Memory, address: int) -> bytes:
    """The variables of the array to which the pointer at ``address`` points. OSError like `Memory.read`."""
    array = memory.word(address)
    if not array:
        return b""
    (data,) = memory.read_some([(array, 8 * _MOST_VARIABLES)])
    pointers = [int.from_bytes(data[at : at + 8], "little") for at in range(0, len(data) // 8 * 8, 8)]
    if 0 in pointers:
        pointers = pointers[: pointers.index(0)]
    texts = memory.read_some([(pointer, _LONGEST) for pointer in pointers])
    return b"\0".join(text.partition(b"\0")[0] for text in texts)
