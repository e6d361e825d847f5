"""The words of the language of conditions: quantities, what they are measured in, and whose they are."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from ...facts.wait_functions import COLLECTIVE
from ...facts.wait_kinds import CHILD, EVENTS, LOCK, PEER, SLEEP, THREAD
from ...rules.verdict import DATABASE_LOCK, DRIVER, FILE_LOCK, GIL, GPU, IO, MEMORY, SLOW_LOADER


class Measure(Enum):
    """Measure of a quantity: what it can be compared with."""

    TIME = "a share such as 50%, or a time such as 200ms"
    LENGTH = "a time such as 200ms or 1.5s"
    SHARE = "a share such as 50%"
    NUMBER = "a number such as 2 or 0.5"


RUNNING, RUNNABLE, BLOCKED, IDLE, NETWORK = "running", "runnable", "blocked", "idle", "network"
LONGEST, WAITS, CORES, THREADS, SHARE, PID = "longest", "waits", "cores", "threads", "share", "pid"
RANK, RANKS, LATE = "rank", "ranks", "late"
VERDICT, NAME = "verdict", "name"
MAIN, WORKERS, PROCESS = "main", "workers", "process"

BY_KIND: Mapping[str, frozenset[str]] = {
    "lock": frozenset((LOCK, DATABASE_LOCK, FILE_LOCK, GIL)),
    "driver": frozenset((DRIVER,)),
    "gpu": frozenset((GPU,)),
    "io": frozenset((IO,)),
    "memory": frozenset((MEMORY,)),
    "peer": frozenset((PEER,)),
    "collective": frozenset((COLLECTIVE,)),
    "loader": frozenset((SLOW_LOADER,)),
    "thread": frozenset((THREAD,)),
    "child": frozenset((CHILD,)),
    "events": frozenset((EVENTS,)),
    "sleep": frozenset((SLEEP,)),
}
"""Quantities that are the time of waits of some kinds, with these (`rules.verdict.KINDS`)."""
QUANTITIES: Mapping[str, Measure] = {
    **dict.fromkeys((RUNNING, RUNNABLE, BLOCKED, IDLE, *BY_KIND, NETWORK), Measure.TIME),
    LONGEST: Measure.LENGTH,
    **dict.fromkeys((SHARE, LATE), Measure.SHARE),
    **dict.fromkeys((WAITS, CORES, THREADS, PID, RANK, RANKS), Measure.NUMBER),
}
"""Quantities by name, with their measures."""
WHOLE = frozenset((SHARE, PID, RANK, RANKS, LATE))
"""Quantities of a process, not of some of its threads."""
UNITS: Mapping[str, int] = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "min": 60_000_000_000,
}
"""ns of the units of time."""
