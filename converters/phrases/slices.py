"""Words for what changes within a trace. Names are unescaped (hostile)."""

from __future__ import annotations

from collections.abc import Sequence

from ..base.units import duration
from ..facts.slices import Phase
from ..facts.wait_functions import COLLECTIVE
from ..facts.wait_kinds import CHILD, EVENTS, HALTED, HELD, LOCK, PEER, SLEEP, THREAD
from ..facts.wait_objects import Objects, On
from ..facts.wait_sites import GAP
from ..model.slices import SliceSpent
from ..rules.finding import CPU
from ..rules.verdict import (
    CORES,
    DATABASE_LOCK,
    DRIVER,
    FILE_LOCK,
    GIL,
    GPU,
    IDLE,
    IO,
    MEMORY,
    NETWORK,
    POLLING,
    SLOW_LOADER,
    UNCLEAR,
)
from . import wait_objects

DOES = {
    CPU: "it runs",
    CORES: "it waits for a core",
    LOCK: "it waits for a lock",
    DATABASE_LOCK: "it waits for a lock of a database",
    FILE_LOCK: "it waits for a lock on a file",
    GIL: "it waits for Python's interpreter lock",
    DRIVER: "it is blocked in an ioctl",
    GPU: "it waits for the GPU",
    IO: "it is blocked in I/O",
    MEMORY: "it waits for memory",
    HELD: "it is blocked in the kernel",
    PEER: "it waits for its peer",
    NETWORK: "it waits for another host",
    COLLECTIVE: "it waits for other ranks",
    SLOW_LOADER: "it waits for a batch",
    CHILD: "it waits for a process to end",
    THREAD: "it waits for another thread",
    EVENTS: "it waits for events",
    SLEEP: "it sleeps",
    HALTED: "it is stopped",
    IDLE: "it has nothing to do",
    POLLING: "it polls",
    UNCLEAR: "it is not known what it does",
}
"""Words for what threads do, by the kinds that slices have."""
_NS = 1_000_000_000


def phases(found: Sequence[Phase], objects: Objects, begin: int) -> str:
    """``for the first 4.02 s it is blocked in I/O (load → read of /data/x), then for 5.98 s it waits for a lock``. ""
    for none. ``objects``: what waits are on, by id. ``begin``: when the threads began, ns since the trace did."""
    told: list[str] = []
    for phase in found:
        length = duration(phase.end - phase.begin)
        does = f"{DOES.get(phase.kind, phase.kind)}{_place(phase.place, objects)}"
        since = "for the first" if phase.begin <= begin else f"from second {phase.begin / _NS:.1f} on for"
        told.append(f"then for {length} {does}" if told else f"{since} {length} {does}")
    return ", ".join(told)


def _place(place: SliceSpent | None, objects: Objects) -> str:
    if place is None:
        return ""
    named = [frame for frame in place.frames if frame != GAP]
    where = " → ".join(named[-2:]) or place.kernel
    on = wait_objects.on(On(objects[place.object])) if place.object in objects else ""
    return f" ({where}{on})"


def part_of_trace(begin: int, end: int, whole: tuple[int, int]) -> str:
    """``from second 6.0 on``, ``until second 4.0``, ``from second 3.0 to second 6.0``. All in ns since the trace began;
    ``whole``: begin and end of what is known."""
    if end >= whole[1]:
        return f"from second {begin / _NS:.1f} on"
    if begin <= whole[0]:
        return f"until second {end / _NS:.1f}"
    return f"from second {begin / _NS:.1f} to second {end / _NS:.1f}"
