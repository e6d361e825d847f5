"""Complete user stacks: what the probes' walks miss goes to the loader of tables, and what came is used at once."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..symbols.process import ProcessSpaces
from ..symbols.vdso import image
from ..unwind.loader import VDSO, Loader
from ..unwind.store import Store

if TYPE_CHECKING:
    from ..symbols.elf import ElfFile
    from ..symbols.maps import Mapping
    from .engine import Engine

PRIME = 0.25
"""Seconds that loading tables may hold up the start of a trace; the rest comes while it runs."""
_EPOCH = 2.0
"""Seconds in which the use of a table counts as the same."""
_SOON, _LATER = 0.2, 5.0
"""Seconds until a process whose walks miss a mapping is looked at again: a walk that has lost its way always does."""


class Unwinding:
    """For the thread that traces; the loader's own thread begins with `start`."""

    def __init__(self, engine: Engine, spaces: ProcessSpaces, budget: int) -> None:
        self._engine = engine
        self._spaces = spaces
        self.store = Store(engine.object, budget)
        self.loader = Loader(self.store, self._find)
        self._next_epoch = 0.0
        self._looks: dict[int, tuple[float, float]] = {}
        """By process: when it may be looked at again, and how long to wait after that."""
        self.memory = 0
        """Bytes that the tables took in the kernel, at the end."""
        self._generation = 1
        engine.object.set_variable("unwind_generation", self._generation)

    def prime(self, pids: Iterable[int]) -> None:
        """Loads for these processes before the trace begins, as long as `PRIME` allows."""
        end = time.monotonic() + PRIME
        self.loader.request(pids=pids)
        while time.monotonic() < end and self.loader.work():
            pass

    def start(self) -> None:
        self.loader.start()

    def mapped(self, pids: Iterable[int]) -> None:
        """These processes have mapped code, or begun another program."""
        self.loader.request(pids=pids)

    def exited(self, pids: Iterable[int]) -> None:
        self.loader.request(gone=pids)

    def poll(self) -> None:
        """Passes on what was missed; walks waiting threads again when tables have come."""
        now = time.monotonic()
        if now >= self._next_epoch:
            self._next_epoch = now + _EPOCH
            self._engine.object.set_variable("unwind_epoch", self.loader.next_epoch())
        wanted = self.store.take_wanted()
        pids = [pid for pid in wanted.pids if self._may_look(pid, now)]
        for pid in pids:
            if pid in self._spaces.processes:
                self._spaces.refresh(pid)
            else:
                self._spaces.adopt(pid)
        self.loader.request(pids, wanted.tables)
        if self.loader.changed():
            self._generation = self._generation % 0xFFFFFFFF + 1
            self._engine.object.set_variable("unwind_generation", self._generation)
            self._engine.restack()

    def close(self) -> None:
        """Ends the loader's thread: files can be used by others then. For once."""
        self.loader.stop()
        self.memory = self.store.bytes
        self.store.close()

    def _may_look(self, pid: int, now: float) -> bool:
        after, wait = self._looks.get(pid, (0.0, _SOON / 2))
        if now < after:
            return False
        wait = min(wait * 2, _LATER)
        self._looks[pid] = (now + wait, wait)
        return True

    def _find(self, mapping: Mapping) -> ElfFile | None:
        if mapping.path == VDSO:
            return image()
        file = self._spaces.object_of(mapping)
        return file.elf() if file is not None else None
