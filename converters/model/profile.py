"""A set of samples, how they were taken, and what is missing. Saved as pprof (see `converters.pprof`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .asked_values import AskedValues
from .call_ioctls import CallIoctls
from .calls import CallTimes
from .collectives import Collectives, Watched
from .copies import Copies
from .critical import CriticalPath
from .details import Details
from .display import Display
from .file_locks import FileLock
from .gil import GilTimes
from .gpus import Gpu
from .group_limits import GroupLimit
from .locks import LockTimes
from .neighbours import Neighbour
from .origins import ProcessOrigin
from .pressure import CoreThread, Interrupts, Pressure
from .processes import ProcessTimes
from .remarks import Comment
from .samples import Sample, ValueType
from .sharing import SharedCall
from .slices import ThreadSlices
from .steps import Steps
from .timeline import Timeline
from .wait_objects import WaitObject

if TYPE_CHECKING:
    from .scheduling import Scheduling


@dataclass(slots=True)
class ThreadTimes:
    """Scheduler accounting of one thread, in ns: on_cpu + runnable + sum(blocked) = wall (end - start)."""

    pid: int
    process: str
    tid: int
    thread: str
    wall: int
    on_cpu: int
    runnable: int
    blocked: dict[str, int]
    """ns by state of `states.BLOCKED`."""
    switches: int = 0
    """Number of times it was switched out."""
    exited: bool = False
    creator: int = 0
    """The thread (tid) that created it during the trace, or 0; -1: created then, not known by which."""
    pid_life: int = 1
    """Number of the process among those that have had this pid during the trace, from 1."""
    tid_life: int = 1
    """Number of the thread among those of its process that have had this tid, from 1."""
    count: int = 1
    """Number of threads whose times are added up: 1, or threads that ended, and have one name. ``tid`` is then 0, and
    ``pid``, too, if they are of several processes. `pid_life` and `tid_life` then only tell groups apart."""
    made_in: tuple[str, ...] = ()
    """Functions in which another thread of its process created it, as in `Site.frames`; () if that is not known."""


@dataclass(slots=True)
class Profile:
    """A set of samples with what is known about how they were taken."""

    value_types: list[ValueType]
    samples: list[Sample] = field(default_factory=list)
    title: str = ""
    """Title that says what was measured, and on what: ``off-CPU time of 8 processes``."""
    host: str = ""
    start_ns: int = 0
    """Wall-clock time (Unix epoch) of the start; 0 when unknown."""
    duration_ns: int = 0
    threads: list[ThreadTimes] = field(default_factory=list)
    lost: dict[str, int] = field(default_factory=dict)
    """Number of missing items by kind, zeros included: ``{"lost events": 0, "stacks cut short": 3}``."""
    comments: list[Comment] = field(default_factory=list)
    timeline: Timeline | None = None
    """The times of calls, if the source has them; dropped when the samples are changed."""
    details: Details | None = None
    """Other data from another program's pprof file."""
    default_value: str = ""
    """Name of the value that is shown unless another is requested; "" is the first one that is a sum."""
    steps: list[Steps] = field(default_factory=list)
    """Steps of functions that the user named; dropped when samples are left out."""
    found_steps: list[Steps] = field(default_factory=list)
    """Steps that nobody named, see `Steps.found`; empty if they were not looked for."""
    collectives: list[Collectives] = field(default_factory=list)
    """Communicators whose ranks meet; dropped when samples are left out."""
    watched: list[Watched] = field(default_factory=list)
    """Processes whose calls of communication libraries were all seen; dropped when samples are left out."""
    scheduling: Scheduling | None = None
    """The scheduler's events, if recorded; dropped when the samples are changed."""
    calls: list[CallTimes] = field(default_factory=list)
    """Calls that were timed one by one; dropped when samples are left out."""
    shared: list[SharedCall] = field(default_factory=list)
    """Calls in which several processes were at the same time; dropped when samples are left out."""
    call_ioctls: list[CallIoctls] = field(default_factory=list)
    """Ioctls that the calls of functions among ``calls`` made; dropped with them."""
    copies: list[Copies] = field(default_factory=list)
    """Copies of memory that functions among ``calls`` made; dropped with them."""
    answers: list[AskedValues] = field(default_factory=list)
    """Answers to what the user asked about calls; dropped with them."""
    locks: list[LockTimes] = field(default_factory=list)
    """Locks that were waited for, most time first; dropped when samples are left out."""
    file_locks: list[FileLock] = field(default_factory=list)
    """Processes that were seen to wait for locks on files, and the owners; dropped when samples are left out."""
    gil: list[GilTimes] = field(default_factory=list)
    """Waits for Python's interpreter lock by process; dropped when samples are left out."""
    critical: CriticalPath | None = None
    """Critical path of one thread, through the threads of `scheduling`; dropped with it."""
    processes: list[ProcessTimes] = field(default_factory=list)
    """Empty if not recorded."""
    origins: list[ProcessOrigin] = field(default_factory=list)
    """Origins of the processes; empty if not recorded."""
    neighbours: list[Neighbour] = field(default_factory=list)
    """Processes that were not traced and used most of the cores' time; empty if not recorded."""
    objects: list[WaitObject] = field(default_factory=list)
    """Files and sockets on which samples' waits are; empty if not recorded."""
    pressure: list[Pressure] = field(default_factory=list)
    """Stalls of the host and of control groups of traced processes; empty if not recorded, or not known."""
    interrupts: list[Interrupts] = field(default_factory=list)
    """Interrupts on the host; empty if not recorded."""
    core_threads: list[CoreThread] = field(default_factory=list)
    """Threads that ran on cores from which interrupts take time; empty if not recorded."""
    gpus: list[Gpu] = field(default_factory=list)
    """GPUs as the driver tells of them; empty if it was not asked."""
    group_limits: list[GroupLimit] = field(default_factory=list)
    """Limits of the processes' control groups; empty if not recorded."""
    slices: list[ThreadSlices] = field(default_factory=list)
    """Times of threads by slices of the trace; empty if not recorded."""
    display: Display | None = None
    """Form in which the answer was shown; dropped when samples are left out or compared."""
    answered: Profile | None = None
    """Profile of which the answer told, if the samples show something else: a critical path, or merged processes.
    Dropped when samples are left out or compared."""

    def index(self, name: str) -> int:
        """Position of the value type called ``name``; KeyError when there is none."""
        for i, value_type in enumerate(self.value_types):
            if value_type.name == name:
                return i
        raise KeyError(name)

    def total(self, name: str) -> int:
        """Sum of one column."""
        i = self.index(name)
        return sum(sample.values[i] for sample in self.samples)
