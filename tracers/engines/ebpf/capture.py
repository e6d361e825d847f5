"""Capture of a trace, or of an interval of one: what was taken from the kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ....converters.model import ValueType
from ....converters.model.asked_values import AskedValues
from ....converters.model.call_ioctls import CallIoctls
from ....converters.model.copies import Copies
from ....converters.model.file_locks import FileLock
from ....converters.model.group_limits import GroupLimit
from ....converters.model.pressure import Interrupts, Pressure
from ....converters.model.remarks import Comment
from ....converters.model.sharing import SharedCall
from ....converters.model.wait_objects import WaitObject
from ...base.conditions import Condition
from ...base.neighbours import Neighbours
from ...cpython.functions import Function
from ...kernel.records import Origin, ThreadRecord
from ...symbols.process import ProcessSpaces
from ...unwind.counts import Counts
from ..rows import Row, Timed
from .lives import Lives
from .measures.protocol import LockRows, Recorded

if TYPE_CHECKING:
    from ....converters.collectives.records import CallTable
    from .measures.slices import Slices


@dataclass(frozen=True)
class PythonFunctions:
    """The Python functions of a trace."""

    by_code: Mapping[tuple[int, int], Function] = field(default_factory=dict)
    """Functions by address and checksum of the code object."""
    are_there: bool = False
    """Whether there are stacks with Python functions."""
    remarks: tuple[str, ...] = ()


@dataclass
class Capture:
    """The data from the kernel. Times are CLOCK_MONOTONIC ns, ``wall_ns`` is the Unix epoch at ``began``."""

    began: int
    stopped: int
    wall_ns: int
    columns: tuple[ValueType, ...]
    rows: list[Row]
    losses: dict[str, int]
    """Number of losses by kind, from the measures."""
    threads: list[ThreadRecord]
    """``tgid`` in their keys, and in those of the rows, is the number of a process: see `ProcessSpaces`."""
    stacks: dict[int, tuple[int, ...]]
    counters: dict[str, int]
    lost_process_events: int
    lives: Lives
    spaces: ProcessSpaces
    notes: list[Comment] = field(default_factory=list)
    exit_status: int | None = None
    """Exit status of the launched command; None: there was none, or it goes on."""
    ends: dict[int, int] = field(default_factory=dict)
    """Reasons why stacks are incomplete, by id: an index into `records.ENDS`."""
    tables: Counts | None = None
    """Counts of the loader of unwind tables."""
    recorded: Recorded | None = None
    calls: list[Timed] = field(default_factory=list)
    api: frozenset[tuple[str, str]] = frozenset()
    """Functions whose calls were timed: path of the file, name."""
    shared: list[SharedCall] = field(default_factory=list)
    conditions: dict[int, Condition] = field(default_factory=dict)
    """Conditions of processes, by number."""
    call_ioctls: list[tuple[Origin, CallIoctls]] = field(default_factory=list)
    copies: list[tuple[Origin, Copies]] = field(default_factory=list)
    """Copies of memory, like the calls, without the names of processes."""
    locks: LockRows | None = None
    python: PythonFunctions = PythonFunctions()
    answers: list[AskedValues] = field(default_factory=list)
    file_locks: list[FileLock] = field(default_factory=list)
    neighbours: Neighbours | None = None
    """Processes that were not traced; None if the whole host was."""
    pressure: list[Pressure] = field(default_factory=list)
    """Pressure of the host, and of the control groups."""
    interrupts: list[Interrupts] = field(default_factory=list)
    objects: list[WaitObject] = field(default_factory=list)
    launched: int = 0
    """Pid of the command that the trace has started; 0: there was none."""
    """Files, sockets and pipes that the rows' waits are on."""
    group_limits: list[GroupLimit] = field(default_factory=list)
    slices: Slices | None = None
    """Times of waits by slices of the trace; None: they are not known."""
    collectives: CallTable | None = None
    """Calls of communication libraries; None: they were not kept."""
    creations: dict[int, Row] = field(default_factory=dict)
    """Stacks in which threads were created, by the thread's first life: see `creations`."""
    ours: frozenset[int] = frozenset()
    """Pids of the tracer and of the processes that work for it."""


@dataclass(frozen=True)
class Part:
    """The beginning of a trace, or of an interval, and what had been counted by then."""

    began: int
    wall: int
    counters: dict[str, int]
    lost_process_events: int = 0


def stacks_of(rows: Iterable[Row]) -> set[int]:
    """The ids of all stacks of the rows."""
    rows = list(rows)
    wakers = {waker for chain in {row.wakers for row in rows} for waker in chain}
    return {stack for origin in (*(row.origin for row in rows), *wakers) for stack in origin[:2] if stack}


def by_demand(threads: list[ThreadRecord]) -> list[int]:
    """The processes, sorted by time on a core or waiting for one."""
    wanted: Counter[int] = Counter()
    for record in threads:
        wanted[record.thread.key.tgid] += record.on_cpu + record.thread.runnable
    return [pid for pid, _ in wanted.most_common()]
