"""Processes that join the scope of a trace other than by fork, and those whose mappings are still to be read."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from ....converters.model.remarks import Comment
from ...base import procfs
from ...base.scope import Scope
from .following import Following
from .probes import Probes
from .waited_for import WaitedFor

if TYPE_CHECKING:
    from .peers import Peers

_LOOK_SHARE = 0.1
"""Maximum share of time spent looking for new processes of the scope: a host may have thousands."""
_ADOPT_SLICE = 0.05
"""Seconds spent on reading maps of processes between two looks at the rings."""
_AT_ONCE = 64
"""Number of new processes that are read at once."""


class Newcomers:
    """Takes in processes that belong to the scope from some time on: by name, by group, or as peers."""

    def __init__(
        self,
        engine: Probes,
        following: Following,
        objects: WaitedFor,
        ours: Callable[[], Collection[int]],
        for_locks: Callable[[], Mapping[tuple[int, int], int]],
    ) -> None:
        """``objects``: what waits are on. ``ours``: processes of the tracer. ``for_locks``: see `Peers`."""
        self._engine, self._following = engine, following
        self._scope: Scope = engine.options.scope
        self._peers: Peers | None = None
        if self._scope.peers and not self._scope.everything:
            from .peers import Peers

            self._peers = Peers(engine, objects, ours, for_locks)
        self._spaces, self._to_adopt = following.spaces, following.to_adopt
        self._next = 0.0

    def poll(self, loaders: Callable[[], Iterable[int]]) -> None:
        """Looks for them now and then. ``loaders``: processes that load the tracer's tables."""
        if self._scope.grows and time.monotonic() >= self._next:
            self._look(loaders())
        if self._peers and (peers := self._peers.newcomers()):
            self._scope.tgids |= peers
            self.take_in(self._engine.seed())
        self.adopt_some()
        for collector in self._engine.options.collectors:
            self._to_adopt.extend(pid for pid in collector.newcomers() if pid not in self._spaces.processes)

    def _look(self, loaders: Iterable[int]) -> None:
        begin = time.monotonic()
        self._scope.tgids &= set(procfs.pids())
        self._scope.ours.update(loaders)
        if newcomers := self._scope.newcomers():
            self._scope.tgids |= newcomers
            self.take_in(self._engine.seed())
        end = time.monotonic()
        self._next = end + (end - begin) / _LOOK_SHARE

    def take_in(self, threads: list[tuple[int, int]]) -> None:
        """Takes in (tid, tgid) that the scope has by now."""
        known = self._spaces.processes
        tgids = {tgid for _, tgid in threads}
        self._to_adopt.extend(sorted(tgids - known.keys()))
        # Mappings of known processes were read before the trace began, but not their conditions.
        self._following.conditions.look_soon(sorted(tgids & known.keys()))
        if len(self._to_adopt) <= _AT_ONCE:
            self.adopt_some()

    def adopt_some(self) -> None:
        """Reads processes for a while."""
        until = time.monotonic() + _ADOPT_SLICE
        while self._to_adopt and time.monotonic() < until:
            self._following.adopt(self._to_adopt.popleft())

    def cut(self, at: int) -> None:
        """The next interval begins."""
        if self._peers:
            self._peers.cut(at)

    def remarks(self, began: int) -> list[Comment]:
        """Remarks on who has joined. ``began``: beginning of the interval that they are for."""
        return self._peers.remarks(began) if self._peers else []
