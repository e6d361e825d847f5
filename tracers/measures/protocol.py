"""What a measure is: one thing that is taken from the kernel, such as waits or samples. A trace carries several."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ...converters.model import ValueType
from ..images.maps import Mapping as MappedFile
from ..kernel.bpfobject import Link, Object
from ..kernel.records import Origin, ThreadRecord

if TYPE_CHECKING:
    from ...converters.model.scheduling import Scheduling

SCHEDULER = ("sched_switch", "sched_wakeup", "sched_exit")
"""Programs that keep the threads' accounts, and tell the measures that are on."""


class Row(NamedTuple):
    """What was counted at one origin. ``values``: of the measure's columns, in their order."""

    origin: Origin
    state: str
    """The label ``state``: see `converters.model.states`."""
    values: tuple[int, ...]
    is_open: bool = False
    """It had not ended when the trace did."""


@dataclass(frozen=True)
class Ended:
    """A trace that has ended, as far as measures ask. Times are CLOCK_MONOTONIC ns."""

    began: int
    stopped: int
    threads: Sequence[ThreadRecord]


@dataclass(frozen=True)
class Recorded:
    """What happened when: goes beside the samples."""

    scheduling: Scheduling
    """Without names and stacks: ``name`` of a thread is an index of ``lives``, ``stack`` of a span one of ``waits``."""
    lives: Sequence[ThreadRecord]
    waits: Sequence[Row]


class Measure(Protocol):
    """Says what it needs of the kernel side, takes its own records, and gives rows. For one trace.

    What a class that inherits from it leaves out does nothing. Names of programs are without the ``_raw`` of their
    second form. bpf/NAME.bpf.c is its kernel side.
    """

    name: str
    columns: tuple[ValueType, ...]
    """Of its rows' values. Columns of several measures that are equal become one."""
    programs: tuple[str, ...]
    """Loaded, and attached where they say themselves."""
    placed: tuple[str, ...] = ()
    """Loaded, and attached by `attach`."""
    period: float | None = None
    """Seconds between two calls of `consume` while the trace runs; None: it needs none."""

    def knobs(self) -> Mapping[str, int]:
        """Global variables of the BPF object, set before it is loaded."""
        return {}

    def sizes(self, entries: int) -> Mapping[str, int]:
        """Its maps, and how many entries they have where the user allows ``entries``."""
        return {}

    def attach(self, loaded: Object, suffix: str) -> list[Link]:
        """Attaches what is ``placed``; program names end in ``suffix``. BpfError or StallscopeError."""
        return []

    def on_record(self, data: bytes) -> bool:
        """A record of the ring buffer that nobody has taken yet; whether it is this measure's."""
        return False

    def consume(self) -> None:
        """Reads what its own buffers hold, before they are full."""
        return

    def mapped(self, pid: int, mapping: MappedFile) -> None:
        """A traced process has mapped a file, or did so before it was traced."""
        return

    def read(self, loaded: Object) -> None:
        """The programs are detached: what its maps hold is read now."""

    def rows(self, ended: Ended) -> list[Row]:
        """What it has counted."""
        ...

    def recorded(self, ended: Ended) -> Recorded | None:
        """What it has recorded event by event. After `read`."""
        return None

    def losses(self) -> Mapping[str, int]:
        """What is missing, by kind, zeros included. After `read`."""
        return {}

    def lost_so_far(self, counters: Mapping[str, int]) -> int:
        """While the trace runs, for the line of progress. ``counters``: those of the probes."""
        return 0

    def remarks(self) -> Iterable[str]:
        """Sentences that the reader should know. After `read`."""
        return ()


def columns_of(measures: Iterable[Measure]) -> tuple[ValueType, ...]:
    """Those of all, each once, in the order of their first sight."""
    return tuple(dict.fromkeys(column for measure in measures for column in measure.columns))


def rows_of(measures: Iterable[Measure], ended: Ended) -> list[Row]:
    """The rows of all, their values those of `columns_of`; 0 in columns that a measure does not have."""
    measures = list(measures)
    columns = columns_of(measures)
    rows = []
    for measure in measures:
        if measure.columns == columns:
            rows += measure.rows(ended)
            continue
        places = [columns.index(column) for column in measure.columns]
        for row in measure.rows(ended):
            values = [0] * len(columns)
            for place, value in zip(places, row.values, strict=True):
                values[place] = value
            rows.append(row._replace(values=tuple(values)))
    return rows
