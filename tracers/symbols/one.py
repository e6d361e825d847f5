"""One process, as it is known; `process` has all of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..images.files import HOST, Root
from ..images.maps import AddressSpace
from .perfmap import PerfMap


@dataclass(slots=True)
class Process:
    """One process."""

    pid: int
    nspid: int
    """The pid as the process itself sees it (innermost namespace)."""
    uid: int = -1
    """Effective user, -1 when unknown."""
    comm: str = ""
    root: Root = HOST
    started_ns: int = 0
    """Start time, Unix epoch ns."""
    epochs: list[AddressSpace] = field(default_factory=lambda: [AddressSpace()])
    current: int = 0
    now: AddressSpace | None = None
    """Address space as it was at the last `refresh`; ``epochs`` also contain earlier mappings."""
    exited: bool = False
    adopted_ns: int = 0
    """CLOCK_MONOTONIC time just before its maps were read from /proc; 0: never."""
    perf_map: PerfMap | None = None
    execs: list[int] = field(default_factory=list)
    """Begin of each epoch but the first one, CLOCK_MONOTONIC ns; 0 when unknown."""
    life: int = 1
    """Number of the process among those that have had its pid during the trace, from 1."""
    files: int = 0
    """Number of files that it was the first one to map."""

    @property
    def space(self) -> AddressSpace:
        """The current address space, or the last one."""
        return self.epochs[self.current]
