"""Interface of a collector: what the programs in the kernel need and give for one measure of a trace."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

from .....converters.model import ValueType
from ....images.maps import Mapping as MappedFile
from ....kernel.bpfobject import Link, Object
from ....kernel.records import Origin, ThreadRecord
from ....measures.protocol import columns_of
from ...rows import Row, Timed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .....converters.collectives.records import CallTable
    from .....converters.model.asked_values import AskedValues
    from .....converters.model.call_ioctls import CallIoctls
    from .....converters.model.copies import Copies
    from .....converters.model.scheduling import Scheduling
    from .....converters.model.sharing import SharedCall
    from ....cpython.functions import Function
    from .lock_objects import LockObject
    from .slices import Slices
    from .spans import CallSpans
    from .totals import Moved, Totals, Words

SCHEDULER = ("sched_switch", "sched_wakeup", "sched_exit")
"""Programs that keep the threads' accounts, and call the enabled measures."""


@dataclass(frozen=True)
class Ended:
    """Data of a trace that has ended, for measures. Times are CLOCK_MONOTONIC ns."""

    began: int
    stopped: int
    threads: Sequence[ThreadRecord]
    lives: Mapping[int, int] = field(default_factory=dict)
    """The thread of each life, by its first one; of lives that are missing, nothing is known."""
    pids: Mapping[int, int] = field(default_factory=dict)
    """Pids of processes whose number, which the keys of threads have, is not the pid."""
    alike: Callable[[], Mapping[int, int]] = dict
    """Makes a map of each life to one of the same address space."""


@dataclass(frozen=True)
class Recorded:
    """Recorded events, stored beside the samples."""

    scheduling: Scheduling
    """Events without names and stacks: ``name`` is an index of ``lives``, and a span's ``stack`` one of ``places``."""
    lives: Sequence[ThreadRecord]
    places: Sequence[Row]
    """Places of waits and of timed calls; without values."""


class LockSum(NamedTuple):
    """Waits that ended; times in ns."""

    time: int
    waits: int
    max: int

    def joined(self, other: LockSum) -> LockSum:
        """Sum of both."""
        return LockSum(self.time + other.time, self.waits + other.waits, max(self.max, other.max))


class LockCrowd(NamedTuple):
    """Waits for one lock with others and without: fields of `LockTimes` of these names."""

    judged: int
    judged_time: int
    alone: int
    alone_time: int
    busy: int

    def joined(self, other: LockCrowd) -> LockCrowd:
        """Sum of both."""
        return LockCrowd(*(one + two for one, two in zip(self, other, strict=True)))


class LockWait(NamedTuple):
    """The waits of a thread in one place."""

    row: Row
    address: int
    kind: int
    sum: LockSum


class LockHolder(NamedTuple):
    """Waits of one process for one lock which one thread ended."""

    tgid: int
    """Process of those who waited; 0: the lock is the kernel's."""
    address: int
    kind: int
    owner: int
    """The thread that had it, as the lock itself says; 0: it does not. Not checked yet."""
    second: int
    """Process of the owner, if the lock is the kernel's. Else the writer, if it is a rwlock."""
    row: Row
    """Row that has the thread that ended the waits as its waker."""
    sum: LockSum


class SharedWord(NamedTuple):
    """A futex in a file, or in other memory, that processes share."""

    dev: int
    inode: int
    offset: int
    path: str


class GilWait(NamedTuple):
    """Waits of one thread for Python's interpreter lock while the same one had it."""

    row: Row
    """Row of the thread that waited. Its stack is that of the one that had the lock."""
    holder: int
    """Id of the thread that had the lock, as its process sees it; 0: not known. Not checked yet."""
    sum: LockSum


@dataclass(frozen=True)
class LockRows:
    """Counts of the measures of locks."""

    waits: Sequence[LockWait] = ()
    holders: Sequence[LockHolder] = ()
    queues: Mapping[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    """Longest time in which somebody always waited, and the waits in it, by address and process. For a shared lock, the
    process is 0, and the address is the lock's number."""
    shared: Mapping[tuple[int, int], SharedWord] = field(default_factory=dict)
    """Shared memory that has a lock, by process and address."""
    numbers: Mapping[SharedWord, int] = field(default_factory=dict)
    unreadable: Collection[tuple[int, int]] = ()
    """Words that may be shared, of processes that were gone before it was known, by process and address."""
    stacks: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """Kernel stacks that only these rows have."""
    objects: Mapping[int, LockObject] = field(default_factory=dict)
    """Objects that hold a lock of the kernel, by its address."""
    gil: Sequence[GilWait] = ()
    crowds: Mapping[tuple[int, int], LockCrowd] = field(default_factory=dict)
    """Waits with others and without, by address and process as in ``queues``."""

    def rows(self) -> list[Row]:
        """All rows whose stacks, processes and wakers need names."""
        found = [wait.row for wait in self.waits] + [holder.row for holder in self.holders]
        return found + [wait.row for wait in self.gil]


class Collector(Protocol):
    """States what its measure needs from the kernel side, takes its own records, and returns rows. For one trace.

    Methods that a subclass does not define do nothing. Names of programs are without the ``_raw`` of their second
    form. bpf/NAME.bpf.c is the kernel side.
    """

    name: ClassVar[str]
    """Name of the measure."""
    columns: tuple[ValueType, ...]
    """Columns of the measure."""
    programs: tuple[str, ...]
    """Loaded, and attached as their sections say."""
    placed: tuple[str, ...] = ()
    """Loaded, and attached by `attach`."""
    on_files: bool = False
    """Some of them at functions of files."""
    entries: str = ""
    """The counter of new entries in its tables, which are to be drained before they are full; "" without any."""
    slot: int = 0
    """The tables of the present interval: see `kernel.sum_table`."""
    modules: Sequence[str] = ()
    """Names or paths of libraries that a command may open while it runs, and that `expect` should know."""
    period: float | None = None
    """Seconds between two calls of `consume` while the trace runs; None: it needs none."""

    def beside(self, others: Sequence[Collector]) -> None:
        """Gets to know the other collectors of the trace, before anything else: some use what others know."""
        return

    def knobs(self) -> Mapping[str, int]:
        """Global variables of the BPF object, set before it is loaded."""
        return {}

    def attach_types(self) -> Mapping[str, int]:
        """Attach types with which ``placed`` programs are loaded, by program, if libbpf does not know them."""
        return {}

    def kfuncs(self) -> Mapping[str, tuple[int, str]]:
        """Kernel functions that ``placed`` programs call, by program: the number of a helper that does not exist, and
        the function meant."""
        return {}

    def does_without(self, program: str) -> bool:
        """The kernel refused the program, named with its suffix: whether others are asked for now, in its place."""
        return False

    def sizes(self, entries: int) -> Mapping[str, int]:
        """The number of entries of each of its maps, if the user allows ``entries``."""
        return {}

    def open(self, loaded: Object, entries: int) -> None:
        """Makes the tables that are not part of the loaded object, of so many entries. BpfError without memory."""
        return

    def attach(self, loaded: Object, suffix: str) -> list[Link]:
        """Attaches the ``placed`` programs; their names end in ``suffix``. BpfError or StallscopeError."""
        return []

    def on_record(self, data: bytes) -> bool:
        """Receives a ring buffer record that is still unclaimed; returns whether it is this measure's."""
        return False

    def seeded(self) -> None:
        """All threads that existed when the trace began have been listed."""
        return

    def consume(self) -> None:
        """Reads what its own buffers hold, before they are full."""
        return

    def drain(self) -> None:
        """Takes out what its tables in the kernel hold; the programs may be running."""
        return

    def stepped_calls(self) -> int:
        """Number of calls so far of functions with probes at which the kernel has to execute an instruction by itself.
        To be compared with an earlier one: it can become less."""
        return 0

    def totals(self) -> Totals | None:
        """Totals that it has taken out of its tables; its rare rows may be folded. None without tables."""
        return None

    def move(self, moved: Moved) -> None:
        """Rows of these lives get other ids."""
        if totals := self.totals():
            totals.move(moved)

    def added_up(self, life: int, times: NDArray[np.uint64], began: int) -> None:
        """The accounts of threads that ended are added up as those of one thread whose first life is ``life``.
        ``times``: begin and end of each, CLOCK_MONOTONIC ns, of a trace that ``began`` then."""
        return

    def joined(self, life: int, into: int) -> None:
        """Two of these sums become one, whose first life is ``into``."""
        return

    def stacks(self) -> Sequence[int] | Words:
        """The ids of the stacks that its other records refer to."""
        return ()

    def held(self) -> int:
        """Bytes that it takes for them, about."""
        return 0

    def newcomers(self) -> Iterable[int]:
        """Processes that its records name, since the last call; they may be out of the scope."""
        return ()

    def mapped(self, pid: int, mapping: MappedFile) -> None:
        """A traced process has mapped a file, or did so before it was traced."""
        return

    def saw_function(self, pid: int, code: int, function: Function) -> None:
        """A Python function, whose code object is at ``code``, was on a stack of a process, for the first time."""
        return

    def expect(self, path: str, *, is_program: bool) -> None:
        """A command that will be started for the trace will map this file, or execute it."""
        return

    def read(self, loaded: Object) -> None:
        """Reads its maps, after the programs were detached; or those of an interval that is over."""

    def ends(self, at: int) -> None:
        """The present interval ends at this time: what was read of later ones is not part of it."""
        return

    def next(self) -> None:
        """The next interval begins: forgets what was read, and changes the slot."""
        self.slot ^= 1

    def close(self) -> None:
        """Gives up what `open` made."""
        return

    def rows(self, ended: Ended) -> list[Row]:
        """Rows that it has counted."""
        ...

    def recorded(self, ended: Ended) -> Recorded | None:
        """Records of single events. After `read`."""
        return None

    def locks(self, ended: Ended) -> LockRows | None:
        """The waits for locks that it has counted. After `read`."""
        return None

    def gil(self, ended: Ended) -> Sequence[GilWait]:
        """The waits for Python's interpreter lock that it has counted. After `read`."""
        return ()

    def slices(self, ended: Ended) -> Slices | None:
        """Times of waits by slices of the trace. After `rows`."""
        return None

    def calls(self, ended: Ended) -> Sequence[Timed]:
        """The calls that it has timed. After `read`."""
        return ()

    def call_ioctls(self, ended: Ended) -> Sequence[tuple[Origin, CallIoctls]]:
        """The ioctls in the functions' calls that it has timed, by thread, like `Timed`. After `read`."""
        return ()

    def copies(self) -> Sequence[tuple[Origin, Copies]]:
        """The copies in the functions' calls that it has timed, by thread, like `Timed`. After `read`."""
        return ()

    def collectives(self, ended: Ended) -> CallTable | None:
        """Calls of communication libraries, with their arguments. After `read`."""
        return None

    def answers(self) -> Sequence[AskedValues]:
        """Answers to what the user asked about the calls. After `read`."""
        return ()

    def functions(self) -> frozenset[tuple[str, str]]:
        """The functions whose calls it times, as (path of the file, name). After `read`."""
        return frozenset()

    def spans(self) -> CallSpans | None:
        """The calls one by one, for the timeline; None if it does not record them. After `read`."""
        return None

    def shared(self) -> Sequence[SharedCall]:
        """Calls in which several processes were at the same time. After `read`."""
        return ()

    def losses(self) -> Mapping[str, int]:
        """Number of losses by kind, zeros included. After `read`."""
        return {}

    def lost_so_far(self, counters: Mapping[str, int]) -> int:
        """Losses so far, for the progress line. ``counters``: those of the probes."""
        return 0

    def remarks(self) -> Iterable[str]:
        """Sentences that the reader should know. After `read`."""
        return ()


def rows_of(measures: Iterable[Collector], ended: Ended) -> list[Row]:
    """The rows of all measures, with values for `columns_of`; 0 in columns that a measure lacks."""
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
