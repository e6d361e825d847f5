"""Python interpreters of the traced processes: the probes are told of them, and the functions in new stacks get names
while their process lives."""

from __future__ import annotations

import contextlib
import os
import time
from array import array
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from ....converters.base.text import printable
from ....converters.base.units import plural
from ...base import procfs
from ...cpython.deallocator import DEALLOCATOR, Unproven, deallocator
from ...cpython.functions import Function, Inside, read_functions
from ...cpython.layouts import Refused, check_threads, layout_of
from ...cpython.memory import memory_of
from ...cpython.runtime import Runtime, address_of, find_runtime, may_be_interpreter
from ...holder.client import HOLDER
from ...images.elf import ElfError, ElfFile, FileSource
from ...images.maps import Mapping
from ...kernel import python
from ...kernel.attaching import attach_entry
from ...kernel.libbpf import BpfError
from ...symbols.process import ProcessSpaces
from .capture import PythonFunctions
from .probes import FREED

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ...kernel.records import RecordSink
    from .probes import Probes
    from .unwinding import Unwinding

_FUNCTIONS = 1 << 16
_BYTES = 32 << 20
"""Maximum number and size of the functions that are kept."""
_AT_ONCE = 256
"""Functions that are read in one go."""
_TRIES = 8
"""Other processes in which a function is looked for, if its own has ended: forked ones have the same."""
_PRUNE = 2.0
"""Seconds between two searches for processes that ended, and for functions that could not be read."""
_LOOKS = 3
"""Searches for one function, besides the last one: memory of a busy process may change, or be refused, for a moment."""
_NAMED = 8
"""Reasons that are said."""
_SLICE = 0.05
"""Seconds spent on names between two looks at the rings."""
_HEAD_WORDS = 2


_Identity = tuple[int, int, int]
"""Identity of an open file."""


class _Known(NamedTuple):
    """An interpreter in a process."""

    inside: Inside
    space: bytes
    """Identity of the interpreter as the probes have it: `python.identity`."""


class Interpreters:
    """Finds the interpreters, and reads the functions. `functions` stay when their processes end, as long as a stack
    has them."""

    def __init__(self, engine: Probes, spaces: ProcessSpaces, unwinding: Unwinding | None) -> None:
        """Does nothing if the probes were told to leave Python out."""
        self._engine = engine
        self._spaces = spaces
        self._unwinding = unwinding
        self._is_on = engine.options.has_python
        if self._is_on:
            self._map = engine.object.find_map("python_spaces")
            spaces.listeners.append(self.mapped)
            spaces.fork_listeners.append(self.forked)
        self._processes: dict[int, _Known] = {}
        self._inside: dict[bytes, Inside] = {}
        """Interpreters by their identity, as in `_Known.space`."""
        self._files: dict[_Identity, Runtime | None] = {}
        self._deallocators: dict[_Identity, tuple[int, int] | str] = {}
        """Files of interpreters: where they free code objects, or why that is not known."""
        self._counted: dict[_Identity, str] = {}
        """Files with a probe there, or why there is none; "" if there is one."""
        self._uncounted: Counter[str] = Counter()
        """Interpreters of processes whose code objects are read each time, by the reason."""
        self._mapped: dict[tuple[int, Mapping], None] = {}
        """New mappings of processes, in their order."""
        self._forked: list[int] = []
        self._wanted: dict[tuple[int, int], int] = {}
        """Functions without a name yet, and the process where one was seen."""
        self._unread: dict[tuple[int, int], int] = {}
        """Functions that could not be read, and the process of each: it had ended, or freed them."""
        self._looks: Counter[tuple[int, int]] = Counter()
        """Searches for a function of ``_unread``."""
        self.functions: dict[tuple[int, int], Function] = {}
        """Functions by address and checksum of the code object."""
        self._bytes = 0
        self._most = _FUNCTIONS // 2, _BYTES // 2
        self._has_stacks = False
        self._generation = self._salt = 0
        self._next_prune = 0.0
        self.refused: Counter[str] = Counter()
        """Processes whose interpreter cannot be read, by the reason."""

    def mapped(self, pid: int, mapping: Mapping) -> None:
        """A process has mapped a file."""
        if may_be_interpreter(mapping):
            HOLDER.begin()  # it begins while the file is read
            self._mapped[pid, mapping] = None

    def forked(self, pid: int) -> None:
        """A process was forked. The probes know its interpreter if they knew the other one's by then."""
        self._forked.append(pid)

    def on_record(self, data: bytes) -> None:
        """Takes note of the functions of a stack's record, as the ring buffer has it."""
        self._has_stacks = True
        words = array("Q", data)[_HEAD_WORDS:]
        part = words[python.begin_of(words) :]
        if not part:
            return
        pid = part[0] & 0xFFFFFFFF
        for code in python.codes(part):
            if code not in self.functions and code not in self._unread and len(self._wanted) < _FUNCTIONS:
                self._wanted.setdefault(code, pid)

    def begin(self, sink: RecordSink) -> None:
        """Tells the probes of the interpreters of the first processes. ``sink`` gets the stacks."""
        sink.on_python = self.on_record
        self.poll()

    def poll(self) -> None:
        """Looks at new mappings, and reads the functions in new stacks."""
        if not self._is_on:
            return
        found = False
        mapped, self._mapped = self._mapped, {}
        for pid, mapping in mapped:
            found |= self._look(pid, mapping)
        forked, self._forked = self._forked, []
        for pid in forked if any(self._files.values()) else ():
            found |= self._look_at_fork(pid)
        if found:
            self._generation += 1
            self._engine.object.set_variable("python_generation", self._generation)
            if self._unwinding:  # threads that wait there have stacks without its functions
                self._unwinding.restack_soon()
        self.read(time.monotonic() + _SLICE)
        if (now := time.monotonic()) >= self._next_prune:
            self._next_prune = now + _PRUNE
            self._prune()
            self._look_again()

    def finish(self) -> None:
        """The trace has ended: reads what was seen, and tries the rest once more."""
        self.read()
        self._wanted, self._unread = self._unread, {}
        self.read()

    def read(self, until: float | None = None) -> None:
        """Reads the functions that were seen, at most until then."""
        by_process: dict[int, list[tuple[int, int]]] = {}
        for code, pid in self._wanted.items():
            by_process.setdefault(pid, []).append(code)
        for pid, codes in by_process.items():
            if until is not None and time.monotonic() > until:
                return
            left = self._read_in(pid, codes)
            for other in self._others(pid) if left else ():
                left = self._read_in(other, left)
            for code in left:
                self._give_up(code, pid)

    def _read_in(self, pid: int, codes: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Returns those that are not there."""
        known = self._of(pid)
        if known is None:
            return codes
        left = []
        try:
            with memory_of(pid) as memory:
                for first in range(0, len(codes), _AT_ONCE):
                    some = codes[first : first + _AT_ONCE]
                    for code, function in zip(some, read_functions(memory, known.inside, some), strict=True):
                        if function is None:
                            left.append(code)
                            continue
                        self._keep(code, function)
                        for collector in self._engine.options.collectors:
                            collector.saw_function(pid, code[0], function)
        except OSError:
            return codes
        return left

    def _keep(self, code: tuple[int, int], function: Function) -> None:
        self._wanted.pop(code, None)
        if len(self.functions) >= _FUNCTIONS or self._bytes + function.size > _BYTES:
            self._give_up(code, 0)
            return
        self.functions[code] = function
        self._bytes += function.size

    def _give_up(self, code: tuple[int, int], pid: int) -> None:
        """Gives up code that could not be read: the process made it, and freed it. It may make the same one again."""
        self._wanted.pop(code, None)
        if len(self._unread) < _FUNCTIONS:
            self._unread[code] = pid

    @property
    def is_full(self) -> bool:
        """Whether functions have to leave soon."""
        number = len(self.functions) + len(self._unread)
        return number > self._most[0] or self._bytes > self._most[1]

    def keep(self, words: NDArray[np.uint64]) -> None:
        """Forgets the functions that are not in the stacks of these words."""
        codes = python.all_codes(words)
        self._unread = {code: pid for code, pid in self._unread.items() if code in codes}
        self._looks = Counter({code: number for code, number in self._looks.items() if code in self._unread})
        self.functions = {code: function for code, function in self.functions.items() if code in codes}
        self._bytes = sum(function.size for function in self.functions.values())
        # Half of the room that is left, so that this does not come again at once.
        number = len(self.functions) + len(self._unread)
        self._most = (number + _FUNCTIONS) // 2, (self._bytes + _BYTES) // 2

    def _look_again(self) -> None:
        """Wants the functions that could not be read in processes that live."""
        again = {
            code: pid
            for code, pid in self._unread.items()
            if pid in self._processes and self._looks[code] < _LOOKS and len(self._wanted) < _FUNCTIONS
        }
        self._looks.update(again.keys())
        for code, pid in again.items():
            del self._unread[code]
            self._wanted.setdefault(code, pid)

    def _of(self, pid: int) -> _Known | None:
        """Knowledge of a process; if it was forked, the probes have it."""
        known = self._processes.get(pid)
        if known is not None:
            return known
        space = self._lookup(pid)
        inside = self._inside.get(space) if space else None
        if space is None or inside is None:
            return None
        return self._processes.setdefault(pid, _Known(inside, space))

    def _others(self, pid: int) -> list[int]:
        """Processes that may have the same functions."""
        gone = self._processes.get(pid)
        alike = (p for p, known in self._processes.items() if p != pid and (not gone or known.space == gone.space))
        return [p for _, p in zip(range(_TRIES), alike, strict=False)]

    def _look_at_fork(self, pid: int) -> bool:
        """Whether a forked process has an interpreter that the probes do not know yet, and know now."""
        process = self._spaces.processes.get(pid)
        if process is None or process.exited or self._lookup(pid) is not None:
            return False
        return any(self._look(pid, mapping) for mapping in process.space if may_be_interpreter(mapping))

    def _look(self, pid: int, mapping: Mapping) -> bool:
        """Whether the mapping shows an interpreter, which the probes then know."""
        known = self._processes.get(pid)
        file = self._spaces.object_of(mapping)
        elf = file.elf() if file is not None else None
        if elf is None or (known and self._lookup(pid) == known.space):
            return False
        identity = _identity_of(elf)
        if identity not in self._files:
            try:
                self._files[identity] = find_runtime(elf, mapping.file_path)
            except ElfError:
                self._files[identity] = None
        runtime = self._files[identity]
        address = address_of(elf, mapping, runtime.vaddr) if runtime else None
        if runtime is None or address is None:
            return False
        try:
            with memory_of(pid) as memory:
                layout = layout_of(runtime.version, address, memory)
                with contextlib.suppress(OSError):
                    check_threads(layout, address, memory)
        except OSError:
            return False
        except Refused as reason:
            name = printable(os.path.basename(mapping.file_path))
            self.refused[f"{name} ({'.'.join(map(str, runtime.version))}): {reason}"] += 1
            return False
        bias = address - runtime.vaddr
        code, text = (bias + kind if kind else 0 for kind in (runtime.code_type, runtime.text_type))
        counted = self._count_freed(pid, elf, mapping, bias, runtime.code_type)
        return self._tell(pid, Inside(layout, code, text, 0), address + layout.interpreters_head, counted=counted)

    def _count_freed(self, pid: int, elf: ElfFile, mapping: Mapping, bias: int, code_type: int) -> bool:
        """Whether the probes see it if a process's interpreter frees a code object: one probe on the file serves all
        of its processes. Without it, code objects are read each time.

        The file alone says where the probe is (see `deallocator`). The process has to agree: one that frees them
        elsewhere has its code objects read each time, and changes nothing for others.
        """
        identity = _identity_of(elf)
        if identity not in self._deallocators:
            try:
                self._deallocators[identity] = deallocator(elf, code_type)
            except Unproven as reason:
                self._deallocators[identity] = str(reason)
        place = self._deallocators[identity]
        if isinstance(place, str):
            return self._not_counted(mapping, place)
        vaddr, offset = place
        try:
            with memory_of(pid) as memory:
                agrees = memory.word(bias + code_type + DEALLOCATOR) == bias + vaddr
        except OSError:
            return self._not_counted(mapping, "its process could not be read")
        if not agrees:
            return self._not_counted(mapping, "its process frees them elsewhere than its file says")
        if identity not in self._counted:
            self._counted[identity] = self._attach(elf, offset)
        why = self._counted[identity]
        return self._not_counted(mapping, why) if why else True

    def _attach(self, elf: ElfFile, offset: int) -> str:
        """Puts the probe on the open file from which its place was read; returns why there is none."""
        if not isinstance(elf.source, FileSource):
            return "the file is not open"
        try:
            self._engine.keep(attach_entry(self._engine.object, FREED, elf.source.fd, offset))
        except BpfError as error:
            return f"the kernel takes no probe: {error.cause}"
        return ""

    def _not_counted(self, mapping: Mapping, why: str) -> bool:
        self._uncounted[f"{printable(os.path.basename(mapping.file_path))}: {why}"] += 1
        return False

    def _tell(self, pid: int, inside: Inside, interpreters: int, *, counted: bool) -> bool:
        """Tells the probes, unless they know it: a forked process has its parent's, and the salt that goes with it."""
        key = pid.to_bytes(4, "little")
        before = self._lookup(pid)
        if before is not None and before == python.identity(inside.layout.pack(interpreters, salt := _salt(before))):
            self._processes[pid] = _Known(inside._replace(salt=salt), before)
            return False
        self._salt += 1
        inside = inside._replace(salt=self._salt)
        space = inside.layout.pack(interpreters, inside.salt, counted=counted)
        try:
            self._map.update(key, space)
        except BpfError:
            self.refused["too many processes have an interpreter"] += 1
            return False
        known = self._processes[pid] = _Known(inside, python.identity(space))
        self._inside[known.space] = inside
        return True

    def _lookup(self, pid: int) -> bytes | None:
        """Identity of a process, as the probes know it."""
        space = self._map.lookup(pid.to_bytes(4, "little"))
        return python.identity(space) if space else None

    def _prune(self) -> None:
        """Forgets processes that ended."""
        keys = {int.from_bytes(key, "little") for key, _ in self._map.items()} | self._processes.keys()
        for pid in keys:
            if procfs.state(pid) in ("", "X"):
                self._processes.pop(pid, None)
                self._map.delete(pid.to_bytes(4, "little"))

    def found(self) -> PythonFunctions:
        """Functions that have been read so far, and sentences for the reader."""
        remarks = [
            f"Python functions of {plural(count, 'process')} are not shown: {reason}"
            for reason, count in self.refused.most_common()
        ]
        remarks += [
            f"code objects of {plural(count, 'interpreter')} are read each time: {reason}"
            for reason, count in self._uncounted.most_common(_NAMED)
        ]
        return PythonFunctions(self.functions, self._has_stacks, tuple(remarks))


def _identity_of(elf: ElfFile) -> _Identity:
    """Identity with the time of the last change: when a file is deleted, another one may get its inode's number."""
    status = os.fstat(elf.source.fd) if isinstance(elf.source, FileSource) else None
    return (status.st_dev, status.st_ino, status.st_ctime_ns) if status else (0, id(elf), 0)


def _salt(space: bytes) -> int:
    return int.from_bytes(space[8:12], "little")
