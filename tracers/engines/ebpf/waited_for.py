"""Objects of the waits of a trace, if it has some: what names them is imported for the first one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ....converters.model.wait_objects import label

if TYPE_CHECKING:
    from ....converters.model.wait_objects import WaitObject
    from ..rows import Row
    from .objects import Objects
    from .retransmissions import Retransmissions


class WaitedFor:
    """Objects that threads wait for; see `Objects`."""

    def __init__(self, resent: Callable[[], Retransmissions]) -> None:
        """``resent``: takes what TCP has sent again since the last time."""
        self._resent = resent
        self._objects: Objects | None = None

    def add(self, data: bytes) -> None:
        """Takes a record of the ring."""
        if self._objects is None:
            from .objects import Objects

            self._objects = Objects()
        self._objects.add(data)

    def poll(self) -> None:
        """Names some. Called repeatedly while the trace runs."""
        if self._objects:
            self._objects.poll()

    def finish(self) -> None:
        """Names the rest. Called when the trace has ended."""
        if self._objects:
            self._objects.finish()
        self.cut()

    def cut(self) -> None:
        """Counts what TCP has sent again, and looks at its figures. Called when an interval has ended."""
        resent = self._resent()
        if self._objects:
            self._objects.resent = resent
            self._objects.figures.cut()

    def others(self, number: int) -> set[int]:
        """Processes at the other end of the object that the probes give this id, as far as it is known by now."""
        return self._objects.others(number) if self._objects else set()

    def found(self, rows: Iterable[Row]) -> list[WaitObject]:
        """Objects of these rows."""
        return self._objects.found({label(row.origin.object) for row in rows}) if self._objects else []
