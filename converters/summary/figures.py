"""The figures of a scheduler profile as plain data: threads, times, waits, work, losses.

`summarize.summarize` makes a `Summary`; ``--json`` prints `Summary.to_json`,
`render.render` prints it for people.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..base.text import json_text
from ..facts.contention import Contention
from ..facts.file_locks import file_lock_json
from ..facts.gil import GilShare
from ..facts.group_limits import limit_json
from ..facts.identity import kernel_ids
from ..facts.locks import lock_json, ranked
from ..facts.thread_names import thread_pattern
from ..facts.wait_kinds import CORE
from ..facts.wait_objects import On, on_json
from ..facts.wakers import WokenBy, waker_json
from ..model import Stack, ValueType
from ..model.asked_values import AskedValues
from ..model.copies import Copies
from ..model.display import USUAL, CallsView
from ..model.file_locks import FileLock
from ..model.group_limits import GroupLimit
from ..model.locks import LockTimes
from ..model.next_step import NextStep
from ..model.remarks import Comment, plain
from ..phrases.next_steps import tells
from ..phrases.remarks import worded
from . import asked_values, copies
from .call_time import CallTime
from .calls import Calls
from .collective_sentences import collectives_json
from .core_takers import Takers
from .critical import Critical
from .events import Counted
from .outliers import Group
from .sharing import Shared
from .step_sentences import steps_json
from .verdicts import NOT_JUDGED, Judged, stack_json, thresholds_json
from .waits_for import Blocking

if TYPE_CHECKING:
    from ..model.collectives import Collectives
    from ..model.steps import Steps

SCHEMA_VERSION = 3


NAMELESS = "[unknown]"
"""The name of processes that ended before their name was known."""


@dataclass(frozen=True, slots=True)
class Process:
    """Processes of one name."""

    name: str
    pids: tuple[int, ...]
    in_kernel: bool = False
    """Kernel threads, if others were traced, too."""
    command: str = ""
    """Name without what an interpreter runs, if ``name`` has that (`scripts.with_scripts`)."""
    ended: int = 0
    """Number of further processes, which ended and whose ids were not kept."""

    @property
    def number(self) -> int:
        """Number of processes, with those that ended."""
        return len(self.pids) + self.ended


@dataclass(frozen=True, slots=True)
class Times:
    """Scheduler times of a set of threads, summed, in ns."""

    threads: int = 0
    wall: int = 0
    on_cpu: int = 0
    runnable: int = 0
    blocked: dict[str, int] = field(default_factory=dict)
    """Blocked time by state, in the order of `states.BLOCKED`, zeros included."""

    @property
    def off_cpu(self) -> int:
        """Runnable and blocked."""
        return self.runnable + sum(self.blocked.values())

    @property
    def unaccounted(self) -> int:
        """Wall time that is neither on-CPU nor off-CPU; 0 when the accounting is exact."""
        return self.wall - self.on_cpu - self.off_cpu


@dataclass(frozen=True, slots=True)
class Who:
    """Threads of one name in processes of one name."""

    process: str
    thread: str
    main: bool
    """Main threads (tid = pid)."""
    processes: int
    threads: int
    tids: tuple[int, ...] = ()
    """The first ones, at most `thresholds.TIDS_KEPT`."""

    @property
    def pattern(self) -> str:
        """See `thread_pattern`."""
        return thread_pattern(self.thread, self.main)


@dataclass(slots=True)  # not frozen: there may be very many, and a frozen one takes three times as long to make
class Wait:
    """All intervals in which threads waited in the same place in the same state. Times in ns."""

    state: str
    """One of `states.BLOCKED`; "runnable" for all waits for a core of threads of one name, in any place."""
    kind: str
    """Kind of what is waited for: see `wait_kinds`."""
    frames: tuple[str, ...]
    """See `wait_sites.Site`."""
    kernel: str
    time: int
    count: int
    min: int
    max: int
    open_time: int
    """The part of ``time`` in intervals cut off by the end of the trace."""
    open_count: int
    idle: bool
    """Workers of a pool, or threads of the kernel, that wait for work (`thread_roles.ThreadRoles`)."""
    still: bool
    """None of these threads moved during the trace."""
    in_kernel: bool
    """Kernel threads, if others were traced, too."""
    told_by_others: bool
    processes: int
    threads: int
    threads_wall: int
    """Total wall time of these threads; 0 if unknown for any of them."""
    threads_alike: int
    """Number of traced threads with these names (see `thread_pattern`), waiting here or not."""
    who: tuple[Who, ...]
    """The thread with the most time here first."""
    takers: Takers | None = None
    """Takers of the cores that these threads waited for, if they are known."""
    mostly: tuple[tuple[str, ...], int] = ((), 0)
    """Place where threads that wait for a core lost it most often (functions), and the ns of waits that began there."""
    woken_by: tuple[WokenBy, ...] = ()
    """Wakers that ended the waits, if they were recorded; longest first."""
    idle_by: str = ""
    """Evidence that these threads are idle: a kind of `idle_evidence`; "" if nobody knows who ends their waits."""
    stack: Stack = ()
    """All frames of the stack with most of the time, if the row is of one place."""
    on: On | None = None
    """File, socket or pipe that most of the time is on; None if it is not known."""

    @property
    def runnable(self) -> bool:
        """Whether it is a wait for a core."""
        return self.kind == CORE

    @property
    def mean(self) -> int:
        return self.time // self.count if self.count else 0


@dataclass(frozen=True, slots=True)
class Running:
    """All samples of threads doing the same work. ``weight``: ns on a CPU, or events (`Summary.weight`)."""

    frames: tuple[str, ...]
    """See `hot_sites.HotSite`."""
    in_kernel: bool
    weight: int
    samples: int
    processes: int
    threads: int
    threads_weight: int
    """Total weight of these threads."""
    threads_alike: int
    """Number of traced threads with these names."""
    who: tuple[Who, ...]
    """The thread with the most weight here first."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Names are unchanged from the traced system: hostile, to be escaped for display."""

    title: str
    host: str
    start_ns: int
    duration_ns: int
    answer: tuple[str, ...]
    """Sentences on where the time goes, one or two, and one on what did not move (`answer.answer`)."""
    processes: tuple[Process, ...]
    """Processes by name; names of most processes first."""
    times: Times
    active: Times
    """Times without quiet threads: those with nearly all their time in one wait that others end."""
    waits: tuple[Wait, ...]
    """Longest first; idle threads after all others, processes that did not move last."""
    running: tuple[Running, ...]
    """Places where threads run, by weight; empty without on-CPU samples."""
    weight: ValueType | None
    """Type of `Running.weight`; None without on-CPU samples."""
    lost: dict[str, int]
    comments: tuple[Comment, ...]
    """Caveats are among the sentences of `answer`, too."""
    judged: Judged = NOT_JUDGED
    """Verdicts of which `answer` is made, and what is told elsewhere."""
    trouble: tuple[str, ...] = ()
    """Problems with threads and cores, in sentences (rules `quota`, `crowd`, `pool-anew`)."""
    untold: tuple[str, ...] = ()
    """Sentences of ``trouble`` of which `answer` does not tell."""
    contention: tuple[Contention, ...] = ()
    """See `contention.contention_of`."""
    calls: tuple[Calls, ...] = ()
    """Calls that were timed one by one, by time."""
    events: tuple[Counted, ...] = ()
    inner_calls: tuple[Calls, ...] = ()
    """Calls whose time is part of that of others: ioctls of functions' calls."""
    outside_ioctls: tuple[tuple[str, int], ...] = ()
    """Ioctls among `inner_calls` that no function made: frames, and their time in ns."""
    call_times: tuple[CallTime, ...] = ()
    """Waits of the calling threads, by process."""
    copies: tuple[Copies, ...] = ()
    answers: tuple[AskedValues, ...] = ()
    """Answers to what the user asked about calls."""
    shared: tuple[Shared, ...] = ()
    """Calls in which several processes were at the same time, by their time together."""
    locks: tuple[LockTimes, ...] = ()
    """Locks that were waited for, by time."""
    gil: tuple[GilShare, ...] = ()
    file_locks: tuple[FileLock, ...] = ()
    group_limits: tuple[GroupLimit, ...] = ()
    critical: Critical | None = None
    """The critical path of a thread, if it was requested."""
    kernel_threads: int = 0
    """Number of kernel threads, if others were traced, too."""
    alike: tuple[Group, ...] = ()
    """Processes of one program, such as the ranks of a job, compared with each other."""
    next_step: NextStep | None = None
    """A command that would show more."""
    view: CallsView = USUAL
    """The table of calls."""
    blocking: Blocking | None = None
    """Wait-for graph: who blocks whom; None if it was not recorded."""
    steps: tuple[Steps, ...] = ()
    collectives: tuple[Collectives, ...] = ()
    """Steps that the user named, by function and thread."""
    shows_idle: bool = False
    """Waits of idle threads are printed one by one, even if it was recorded who ends them."""

    def to_json(self) -> dict[str, Any]:
        r"""Plain data for ``json.dumps``. Times in ns, shares as fractions of 1, null when unknown.

        Names are unchanged; a byte that is not UTF-8 (a lone surrogate in Python) becomes the text
        ``\xNN``, because parsers refuse or change lone surrogates.
        """
        return {
            "version": SCHEMA_VERSION,
            "title": json_text(self.title),
            "host": json_text(self.host),
            "start_ns": self.start_ns,
            "duration_ns": self.duration_ns,
            "answer": [json_text(sentence) for sentence in self.answer],
            "verdicts": self.judged.to_json(),
            "thresholds": thresholds_json(),
            "trouble": [json_text(sentence) for sentence in self.trouble],
            "next": self.next_step
            and {"command": json_text(self.next_step.command), "tells": json_text(tells(self.next_step))},
            "processes": [
                {"name": json_text(p.name), "pids": kernel_ids(p.pids), "ended": p.ended} for p in self.processes
            ],
            "times": _times_json(self.times),
            "active": _times_json(self.active),
            "kernel_threads": self.kernel_threads,
            "waits": [_wait_json(wait, self.times.wall) for wait in self.waits],
            "running": [_running_json(each, sum(r.weight for r in self.running)) for each in self.running],
            "running_value": {"name": self.weight.name, "unit": self.weight.unit} if self.weight else None,
            "calls": [entry for each in (*self.calls, *self.inner_calls) for entry in each.to_json()],
            **({"events": [entry for each in self.events for entry in each.to_json()]} if self.events else {}),
            "call_times": [each.to_json() for each in self.call_times],
            "copies": copies.to_json(self.copies),
            **({"answers": asked_values.to_json(self.answers)} if self.answers else {}),
            "alike": [group.to_json() for group in self.alike],
            "shared_calls": [each.to_json() for each in self.shared],
            "locks": [lock_json(lock) for lock in ranked(self.locks)],
            **({"file_locks": [file_lock_json(lock) for lock in self.file_locks]} if self.file_locks else {}),
            **({"group_limits": [limit_json(limit) for limit in self.group_limits]} if self.group_limits else {}),
            **({"gil": [each.to_json() for each in self.gil]} if self.gil else {}),
            **({"critical_path": self.critical.to_json()} if self.critical else {}),
            "contention": [each.to_json() for each in self.contention],
            **({"steps": [steps_json(each) for each in self.steps]} if self.steps else {}),
            **({"collectives": list(map(collectives_json, self.collectives))} if self.collectives else {}),
            **({"waits_for": self.blocking.to_json()} if self.blocking else {}),
            "lost": {json_text(kind): count for kind, count in self.lost.items()},
            "comments": [json_text(text) for text in worded(self.comments)],
            "remarks": [each for each in plain(self.comments, json_text) if not isinstance(each, str)],
        }


def _times_json(times: Times) -> dict[str, Any]:
    return {
        "threads": times.threads,
        "wall_ns": times.wall,
        "on_cpu_ns": times.on_cpu,
        "runnable_ns": times.runnable,
        "blocked_ns": sum(times.blocked.values()),
        "blocked_by_state_ns": {json_text(state): time for state, time in times.blocked.items()},
        "unaccounted_ns": times.unaccounted,
    }


def _wait_json(wait: Wait, wall: int) -> dict[str, Any]:
    return {
        "state": json_text(wait.state),
        "kind": wait.kind,
        "frames": [json_text(frame) for frame in wait.frames],
        "kernel_wait": json_text(wait.kernel),
        "stack": stack_json(wait.stack),
        "on": on_json(wait.on),
        "time_ns": wait.time,
        "share": _fraction(wait.time, wall),
        "threads_share": _fraction(wait.time, wait.threads_wall),
        "count": wait.count,
        "mean_ns": wait.mean,
        "min_ns": wait.min,
        "max_ns": wait.max,
        "open_ns": wait.open_time,
        "open_count": wait.open_count,
        "idle": wait.idle,
        "still": wait.still,
        "kernel_threads": wait.in_kernel,
        "told_by_others": wait.told_by_others,
        "processes": wait.processes,
        "threads": wait.threads,
        "threads_wall_ns": wait.threads_wall,
        "threads_alike": wait.threads_alike,
        "who": _who_json(wait.who),
        **(_core_json(wait) if wait.runnable else {}),
        **({"idle_by": wait.idle_by} if wait.idle_by else {}),
        **({"woken_by": [waker_json(waker, time) for waker, time in wait.woken_by]} if wait.woken_by else {}),
    }


def _core_json(wait: Wait) -> dict[str, Any]:
    return {
        "cores_had_by": wait.takers and wait.takers.to_json(),
        "mostly_in": [json_text(frame) for frame in wait.mostly[0]],
        "mostly_ns": wait.mostly[1],
    }


def _running_json(running: Running, total: int) -> dict[str, Any]:
    return {
        "frames": [json_text(frame) for frame in running.frames],
        "in_kernel": running.in_kernel,
        "value": running.weight,
        "share": _fraction(running.weight, total),
        "threads_share": _fraction(running.weight, running.threads_weight),
        "samples": running.samples,
        "processes": running.processes,
        "threads": running.threads,
        "threads_alike": running.threads_alike,
        "who": _who_json(running.who),
    }


def _who_json(who: tuple[Who, ...]) -> list[dict[str, Any]]:
    return [
        {
            "process": json_text(entry.process),
            "thread": json_text(entry.thread),
            "main": entry.main,
            "processes": entry.processes,
            "threads": entry.threads,
            "tids": kernel_ids(entry.tids),
        }
        for entry in who
    ]


def _fraction(part: int, whole: int) -> float | None:
    return round(part / whole, 6) if whole else None
