"""Roots of the traced processes, each held open once, and only while a process has it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import Protocol

from ..images.files import HOST, Root

_BETWEEN, _SHARE = 0.5, 0.01
"""Least seconds between two looks for roots that nobody has, and the share of the time that these take."""


class _Process(Protocol):
    root: Root
    exited: bool


class Roots:
    """Roots of mount namespaces and chroots; ours is `HOST`."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], Root] = {}
        """Roots by `Root.identity`."""
        self._ours: tuple[int, int] | None = None
        self._next = 0.0

    def __len__(self) -> int:
        return len(self._known)

    def of(self, pid: int) -> Root:
        """Root of a live process; equal ones share one object. OSError without one."""
        if self._ours is None:
            own = Root.of(os.getpid())
            self._ours = own.identity()
            own.close()
        root = Root.of(pid)
        identity = root.identity()
        known = HOST if identity == self._ours else self._known.setdefault(identity, root)
        if known is not root:
            root.close()
        return known

    def close_unused(self, processes: Iterable[_Process]) -> None:
        """A process has ended: closes those that no living one has, now and then. They would keep the mounts of
        containers that are gone."""
        if not self._known or (now := time.monotonic()) < self._next:
            return
        used = {process.root for process in processes if not process.exited}
        for identity in [identity for identity, root in self._known.items() if root not in used]:
            self._known.pop(identity).close()
        self._next = now + max(_BETWEEN, (time.monotonic() - now) / _SHARE)

    def close(self) -> None:
        """Closes all."""
        for root in self._known.values():
            root.close()
        self._known.clear()
