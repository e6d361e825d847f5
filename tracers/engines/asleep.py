"""Stacks of threads that sleep when a trace begins, for engines whose stacks come with a switch: such a thread has none
before it runs.

Nothing is stopped. The kernel tells where a thread sleeps (/proc/PID/task/TID/stack and …/syscall), and a copy of its
stack is made, which is walked when the trace has ended. If the thread slept on until the copy was made, it is that of
its wait: the engine knows when it ran.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

from ...converters.model import Frame, Stack
from ..images.elf import ElfFile
from ..images.maps import Mapping
from ..images.vdso import VDSO, image
from ..outside.reads import Memory
from ..symbols.kallsyms import KERNEL, module_named
from ..symbols.process import ProcessSpaces
from ..symbols.symboliser import Symboliser
from ..unwind.walking import Registers, Walker

_COPY = 1 << 16
"""Bytes of a stack that are kept; it mostly ends before that."""
_MOST = 64 << 20
"""Bytes of all copies."""
_SECONDS = 20.0
"""Seconds that walks may take together: the tables of a large library take seconds to compile, once."""
_KERNEL_FRAME = re.compile(r"\[<[0-9a-f]+>\] (.+?)\+0x[0-9a-f]+/0x[0-9a-f]+(?: \[(.+)\])?")


@dataclass
class _Copy:
    """Copy of a thread's stack."""

    pid: int
    until: int
    """Time when the copy was made, CLOCK_MONOTONIC ns."""
    kernel: Stack
    registers: Registers | None
    memory: bytes = b""
    """Bytes of the stack, from the stack pointer up."""

    def word(self, address: int) -> int | None:
        at = address - self.registers.sp if self.registers else -1
        if at < 0 or at + 8 > len(self.memory):
            return None
        return int.from_bytes(self.memory[at : at + 8], "little")


@dataclass
class Asleep:
    """Copies, and the stacks that they show."""

    user: bool = True
    """Whether users' frames are wanted."""
    kernel: bool = True
    """Whether frames of the kernel are wanted."""
    spaces: ProcessSpaces = field(default_factory=ProcessSpaces)
    """Mappings of the processes of these threads."""
    _copies: dict[int, _Copy] = field(default_factory=dict)
    _bytes: int = 0
    _stacks: dict[int, Stack] | None = None

    def look(self, pid: int, tid: int, registers: Registers | None = None) -> None:
        """Copies the stack of a thread that sleeps. ``registers``: None: those that /proc tells."""
        kernel = _kernel_stack(pid, tid) if self.kernel else ()
        where = (registers or _registers(pid, tid)) if self.user else None
        memory = b""
        if where and where.ip and self._bytes < _MOST and self._adopt(pid):
            memory = _memory(pid, where.sp)
            self._bytes += len(memory)
        if kernel or memory:
            self._copies[tid] = _Copy(pid, time.monotonic_ns(), kernel, where if memory else None, memory)

    def _adopt(self, pid: int) -> bool:
        return pid in self.spaces.processes or self.spaces.adopt(pid) is not None

    def has(self, tid: int, until: int) -> bool:
        """Whether there is a stack of the wait that this thread was in when the trace began, which ended ``until``
        (CLOCK_MONOTONIC, ns)."""
        copy = self._copies.get(tid)
        return copy is not None and copy.until <= until

    def stack(self, tid: int) -> Stack:
        """The outermost frame first; empty without any."""
        if self._stacks is None:
            self._stacks = self._walked()
        return self._stacks.get(tid, ())

    def _walked(self) -> dict[int, Stack]:
        """The walks of all."""
        walker = Walker()
        files: dict[int, Callable[[Mapping], ElfFile | None]] = {}
        requests, stacks = [], {}
        until = time.monotonic() + _SECONDS
        for tid, copy in self._copies.items():
            stacks[tid] = copy.kernel
            process = self.spaces.processes.get(copy.pid)
            if copy.registers is None or process is None or time.monotonic() > until:
                continue
            if copy.pid not in files:
                files[copy.pid] = self._files_of(copy.pid)
            walk = walker.walk(process.space, files[copy.pid], copy.registers, copy.word)
            if walk.addresses:
                requests.append((tid, (copy.pid, process.current, walk.addresses)))
        named = Symboliser(self.spaces).user_stacks([request for _, request in requests])
        for (tid, _), user in zip(requests, named, strict=True):
            stacks[tid] = user + stacks[tid]
        same: dict[Stack, Stack] = {}
        return {tid: same.setdefault(stack, stack) for tid, stack in stacks.items()}

    def _files_of(self, pid: int) -> Callable[[Mapping], ElfFile | None]:
        """Finds the files behind the mappings of a process."""

        @lru_cache(maxsize=1 << 10)
        def find(mapping: Mapping) -> ElfFile | None:
            if mapping.path == VDSO:
                return image()
            file = self.spaces.file_of(pid, mapping) if mapping.is_file else None
            return file.elf() if file else None

        return find

    def close(self) -> None:
        """Closes the files."""
        self.spaces.close()


def _task(pid: int, tid: int) -> str:
    return f"/proc/{pid}/task/{tid}"


def _kernel_stack(pid: int, tid: int) -> Stack:
    """Outermost frame first; empty where the kernel does not tell it, or not to this user."""
    try:
        with open(f"{_task(pid, tid)}/stack") as file:
            lines = file.read().splitlines()
    except (OSError, ValueError):
        return ()
    found = (_KERNEL_FRAME.fullmatch(line.strip()) for line in lines)
    return tuple(reversed([_frame(match[1], match[2]) for match in found if match]))


@lru_cache(maxsize=1 << 12)  # for equal ones to be one object: those who read frames look them up by identity
def _frame(name: str, module: str | None) -> Frame:
    return Frame(name, "kernel", module_named(module) if module else KERNEL)


def _registers(pid: int, tid: int) -> Registers | None:
    """Registers where a thread sleeps, if /proc tells this user: not with which rbp."""
    try:
        with open(f"{_task(pid, tid)}/syscall") as file:
            words = file.read().split()
    except (OSError, ValueError):
        return None
    return Registers(int(words[-1], 16), int(words[-2], 16), None) if len(words) >= 3 else None


def _memory(pid: int, address: int) -> bytes:
    """A stack's memory, as far as there is any."""
    memory = Memory(pid)
    try:
        return memory.read_some([(address, _COPY)])[0]
    except OSError:
        return b""
    finally:
        memory.close()
