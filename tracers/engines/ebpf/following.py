"""Follows forks, execs, mappings and exits of processes."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable

from ...base.conditions import Conditions
from ...base.scope import Scope
from ...images.maps import Mapping
from ...kernel.process_events import Event, Exec, Exit, Fork, Mmap
from ...kernel.records import ThreadRecord
from ...symbols.process import ProcessSpaces
from .later_ranks import LaterRanks
from .unwinding import Unwinding


class Following:
    """Keeps what is known of the processes of a scope up to date."""

    def __init__(self, scope: Scope, spaces: ProcessSpaces, conditions: Conditions, to_adopt: deque[int]) -> None:
        """``to_adopt``: processes that exist, and are to be read soon."""
        self._scope, self.spaces, self.conditions, self.to_adopt = scope, spaces, conditions, to_adopt
        conditions.later = LaterRanks(spaces, conditions)
        self._gone: set[int] = set()
        """Processes that had exited at the last boundary."""

    def adopt(self, pid: int) -> None:
        """Reads what a live process is like."""
        self.spaces.adopt(pid)
        self.conditions.look(pid)

    def follow(self, events: Iterable[Event], unwinding: Unwinding | None) -> None:
        """Takes in events, which are in order. ``unwinding`` is told of programs and mappings."""
        every = self._scope.everything
        for event in events:
            if isinstance(event, Fork):
                self._forked(event)
            elif every or event.pid in self.spaces.processes:
                self._changed(event, unwinding)

    def forget(self, threads: Iterable[ThreadRecord]) -> None:
        """Forgets the processes that had exited before the interval began whose ``threads`` these are."""
        gone = {pid for pid, process in self.spaces.processes.items() if process.exited}
        left = (gone & self._gone) - {record.thread.key.tgid for record in threads if not record.exited}
        self._gone = gone - left
        self.spaces.forget(left)
        self.conditions.forget(left)

    def _forked(self, event: Fork) -> None:
        spaces = self.spaces
        if event.pid == os.getpid():
            return
        if not (self._scope.everything or event.parent in spaces.processes):
            self._stranger(event)
            return
        if event.parent in self.to_adopt:
            self.to_adopt.remove(event.parent)
            self.adopt(event.parent)
        if number := spaces.fork(event.parent, event.pid, event.time):
            self.conditions.replaced(event.pid, number)
        self.conditions.forked(event.parent, event.pid)

    def _stranger(self, event: Fork) -> None:
        """Nobody that is traced made this process: it may have the pid of one that was, and may be in the scope."""
        if number := self.spaces.replace(event.pid, event.time):
            self.conditions.replaced(event.pid, number)
            if event.pid in self._scope.tgids:
                self.to_adopt.append(event.pid)

    def _changed(self, event: Exec | Mmap | Exit, unwinding: Unwinding | None) -> None:
        spaces = self.spaces
        if isinstance(event, Exec):
            spaces.exec(event.pid, event.time)
            spaces.processes[event.pid].comm = os.fsdecode(event.comm)
            self.conditions.look(event.pid)
            if unwinding:
                unwinding.began(event.pid)
        elif isinstance(event, Mmap):
            mapping = spaces.mmap(event.pid, _mapping(event), event.time)
            if unwinding:
                unwinding.mapped(event.pid, mapping, event.time)
        else:
            spaces.exit(event.pid)
            if unwinding:
                unwinding.exited(event.pid)


def _mapping(event: Mmap) -> Mapping:
    return Mapping(
        event.start,
        event.start + event.length,
        event.offset,
        os.fsdecode(event.path),
        event.dev,
        event.inode,
        event.build_id,
    )
