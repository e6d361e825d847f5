"""Code objects of Python functions whose counts of references are watched, in all threads of their processes."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from .....converters.base.text import printable
from .....converters.base.units import duration, plural
from ....base import procfs
from ....cpython.functions import Function
from ....cpython.layouts import Version
from ....cpython.memory import memory_of
from ....kernel import breakpoints
from ....kernel.bpfobject import Link, Object
from ....kernel.libbpf import BpfError

_FLAGS = {(3, 8): 36, (3, 9): 36, (3, 10): 36}
"""Offset of co_flags in PyCodeObject (Include/cpython/code.h), by version, up to 3.10."""
_FLAGS_SINCE = 48
"""Offset of co_flags from 3.11 on."""
_SUSPENDED = 0x20 | 0x80 | 0x100 | 0x200
"""CO_GENERATOR, CO_COROUTINE, CO_ITERABLE_COROUTINE, CO_ASYNC_GENERATOR."""
_IMMORTAL = 1 << 29
"""Counts of references from which on nothing is counted (3.12 and newer), or more than memory has room for."""
_ROUNDS = 8
"""Looks for threads that begin meanwhile. One that is watched has its new threads watched."""


class Watch(NamedTuple):
    """A code object of a process. ``references``: their count at ``since``, in CLOCK_MONOTONIC ns; None: not known."""

    function: Function
    references: int | None
    since: int


class Watched(Link):
    """The breakpoints. As a link: closed when the trace ends."""

    def __init__(self, loaded: Object, program: str) -> None:
        super().__init__(0)
        self._loaded, self._program = loaded, program
        self._codes = loaded.find_map("watched_codes")
        self._links: dict[tuple[int, int], list[Link]] = {}
        self._cost: int | None = None
        self.watches: dict[tuple[int, int], Watch] = {}
        """Watched code objects, by process, and address of the code object."""
        self._functions: set[tuple[int, Function]] = set()
        """All that were watched, by process."""
        self.refused: dict[str, str] = {}
        """Functions without breakpoints, and why."""
        self.is_closed = False

    def add(self, pid: int, code: int, function: Function, top: int) -> bool:
        """Watches a code object; ``top``: `Layout.thread_top`. Returns whether it is watched only now."""
        if self.is_closed or (pid, code) in self.watches:
            return False
        name = f"{os.path.basename(function.file)}:{function.name}"
        try:
            with memory_of(pid) as memory:
                since = time.monotonic_ns()
                references = memory.word(code) & 0xFFFFFFFF
                flags = memory.word(code + _FLAGS.get(function.version, _FLAGS_SINCE))
        except OSError:
            return False
        if flags & _SUSPENDED:
            self.refused[name] = "it is a generator or coroutine, which begins and ends many times: name one it calls"
        elif references >= _IMMORTAL:
            self.refused[name] = "the interpreter does not count references to it"
        elif self.is_full(pid):
            self.refused[name] = f"a process can have {breakpoints.REGISTERS} of them"
        else:
            self._codes.update(code.to_bytes(8, "little"), top.to_bytes(8, "little"))
            return self._watch(pid, code, name, Watch(function, references, since))
        return False

    def _watch(self, pid: int, code: int, name: str, watch: Watch) -> bool:
        if self._cost is None:
            self._cost = breakpoints.cost()
        links: list[Link] = []
        try:
            seen: set[int] = set()
            for _ in range(_ROUNDS):
                fresh = set(procfs.tids(pid)) - seen
                seen |= fresh
                for tid in sorted(fresh):
                    links += self._attached(tid, code)
                if not fresh:
                    break
        except (OSError, BpfError) as error:
            for link in links:
                link.close()
            no_room = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EBUSY)
            why = "all of the processor's breakpoints are in use, by a debugger perhaps" if no_room else str(error)
            self.refused[name] = f"the kernel gives no hardware breakpoint: {why}"
            return False
        if not links:
            return False
        self._links[pid, code] = links
        self.put(pid, code, watch)
        return True

    def is_full(self, pid: int) -> bool:
        """Whether a process has all the breakpoints that it can have."""
        return sum(process == pid for process, _ in self.watches) >= breakpoints.REGISTERS

    def put(self, pid: int, code: int, watch: Watch) -> None:
        """Puts what is at an address since the last one was freed."""
        self.watches[pid, code] = watch
        self._functions.add((pid, watch.function._replace(lines=b"")))

    def release(self, pid: int, code: int) -> None:
        """Takes the breakpoint away, from processes that were forked, too."""
        self.watches.pop((pid, code), None)
        for link in self._links.pop((pid, code), []):
            link.close()

    def _attached(self, tid: int, code: int) -> Iterator[Link]:
        """The breakpoint of a thread; none if it is gone."""
        try:
            fd = breakpoints.open_breakpoint(tid, code)
        except OSError as error:
            if error.errno == errno.ESRCH:
                return
            raise
        try:
            yield self._loaded.programs[self._program].attach_perf_event(fd)
        except BpfError:
            os.close(fd)
            raise

    def of(self, pid: int, code: int) -> tuple[Watch, bool] | None:
        """Watch that is at this code, and whether in this very process: forked ones inherit it. None if it is not
        clear."""
        if (pid, code) in self.watches:
            return self.watches[pid, code], True
        alike = [watch for (_, other), watch in self.watches.items() if other == code]
        return (alike[0], False) if len({watch.function for watch in alike}) == 1 else None

    def remarks(self, traps: int) -> Iterator[str]:
        """Sentences that the reader should know. ``traps``: how many there were."""
        if self._functions:
            processes = len({pid for pid, _ in self._functions})
            where = f"{plural(len(self._functions), 'Python function')} of {plural(processes, 'process')}"
            took = f", {duration(self._cost * traps)} in all, which the steps' times contain" if self._cost else ""
            cost = f", {duration(self._cost)} each on this machine{took if traps else ''}" if self._cost else ""
            yield f"breakpoints were on {where}: {plural(traps, 'trap')}{cost}"
        for name, why in self.refused.items():
            yield f"calls of {printable(name)} are no steps: {printable(why)}"

    def close(self) -> None:
        self.is_closed = True
        links, self._links = self._links, {}
        for link in chain.from_iterable(links.values()):
            link.close()


def has_qualified_names(version: Version) -> bool:
    """Whether code objects of this version have their qualified names."""
    return version >= (3, 11)
