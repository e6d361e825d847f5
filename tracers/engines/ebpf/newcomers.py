"""Processes that come into a scope while it is traced: looked for now and then."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from ...base import procfs
from ...base.scope import Scope

_SHARE = 0.1
"""Maximum share of time spent looking: a host may have thousands of processes."""


class Newcomers:
    """New processes of a scope that grows."""

    def __init__(
        self,
        scope: Scope,
        seed: Callable[[], list[tuple[int, int]]],
        take_in: Callable[[list[tuple[int, int]]], None],
    ) -> None:
        """``seed``: makes the probes trace the scope's processes, and returns threads (tid, tgid) that it found.
        ``take_in``: gets these."""
        self._scope, self._seed, self._take_in = scope, seed, take_in
        self._next = 0.0
        """Second of the next look."""

    def look(self, ours: Iterable[int]) -> None:
        """Looks for new ones, unless it is too early. ``ours``: processes of the tracer."""
        begin = time.monotonic()
        if begin < self._next:
            return
        self._scope.tgids &= set(procfs.pids())
        self._scope.ours |= set(ours)
        if newcomers := self._scope.newcomers():
            self._scope.tgids |= newcomers
            self._take_in(self._seed())
        end = time.monotonic()
        self._next = end + (end - begin) / _SHARE
