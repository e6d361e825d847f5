"""The records and map values of the BPF programs, mirroring bpf/include/records.h.

All times are CLOCK_MONOTONIC nanoseconds. tests/tracers/kernel/test_records.py compares the layouts with the header.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ...converters.model import processes, states
from .ended import EndedThreads
from .stack_store import StackStore

MAX_FRAMES = 127
STACK_WORDS = 512
"""Words of a stack: frames, and Python functions behind them."""

STATES = ("preempted", *states.BLOCKED, "new")
"""enum wait_state, in its order."""
PREEMPTED, OTHER, NEW = STATES.index("preempted"), STATES.index("other"), STATES.index("new")

RUNNING = len(STATES)
"""The state of a thread that was sampled on a CPU."""
SLICE_DOUBLED_SHIFT, SLICE_SHIFT = 8, 16
"""Bits of the state in the key of a sum of waits from which on it says in which slice of the trace they were."""

ON_CPU, BLOCKED, RUNNABLE = range(3)
"""enum phase."""

RECORD_STACK, RECORD_EXEC, RECORD_EXIT, RECORD_CUT, RECORD_IOCTL, RECORD_CHAIN, RECORD_LOCK, RECORD_STEP = range(1, 9)
RECORD_OBJECT = 9

COUNTERS = (
    "lost_stacks",
    "lost_waits",
    "lost_threads",
    "lost_records",
    "stack_table_full",
    "stacks_failed",
    *("missed_ins", "missed_outs", "missed_waits"),
    "memo_hits",
    "memo_checks",
    "memo_wrong",
    "user_memo_hits",
    "user_memo_checks",
    "user_memo_wrong",
    "late_stacks",
    "new_threads",
    "new_waits",
    "new_samples",
    "new_calls",
    "new_stacks",
    "new_ioctls",
    "lost_wakeups",
    "new_wakeups",
    "new_locks",
    "new_events",
    "python_stacks_cut",
    "python_stacks_failed",
    "new_gil_waits",
    "lost_objects",
    "lost_makers",
    "lost_refusals",
    "lost_retransmissions",
)
"""enum counter, in its order."""

ORIGIN = struct.Struct("<QQQIIII")
WAIT_SUM = struct.Struct("<7Q")
_THREAD = struct.Struct(f"<8Q8QQ{processes.LATENCY_BUCKETS * 4}s40s40s56sQQQQBBBBI8xII56xQ")
_WAKER = struct.Struct("<QQ5I4x")
_CHAIN_HEAD = struct.Struct("<IIQ")
_LATENCIES = struct.Struct(f"<{processes.LATENCY_BUCKETS}I")
_EXEC = struct.Struct("<IIQQII")
_THREAD_RECORD_HEAD = struct.Struct("<IIQ16s")
_SEED = struct.Struct("<II")
THREAD_SIZE = _THREAD.size
THREAD_RECORD_SIZE = _THREAD_RECORD_HEAD.size + _THREAD.size

OTHER_STACKS, LOST, STACK_SHED = 2, 4, 6
"""Ids of user stacks that stand for rare stacks, put together, for what was lost, and for stacks that the probes did
not take because of the budget (STACK_SHED of bpf/include/records.h). Those of the probes are odd."""


class Origin(NamedTuple):
    """Place and thread of something that happened; the key of all counts. ``ustack``, ``kstack``: a stack's id, 0 for
    none. ``object``: of a wait, the id of the file or socket that it is on (`kernel.objects`); 0: not known.

    ``life``: a number of the thread since its last exec, which no other has had, though its ids may come back; 0:
    unknown. ``state``: index into STATES, or `RUNNING`.
    """

    ustack: int
    kstack: int
    object: int
    tid: int
    tgid: int
    life: int
    state: int


WAKER_CONTEXTS = BY_THREAD, BY_SOFTIRQ, BY_DEVICE, BY_TIMER, BY_CORE, BY_UNKNOWN, BY_NOBODY = range(7)
"""enum waker_context, and two of ours: nobody knows; nobody has, so far."""


class Waker(NamedTuple):
    """Waker that ended a wait; struct waker."""

    ustack: int
    kstack: int
    tid: int
    """0, like ``tgid``: it is no thread, but an interrupt."""
    tgid: int
    life: int
    """See `Origin`; 0: it is not traced."""
    number: int
    """Number of the device's interrupt, or of the softirq."""
    context: int
    """Kind of the waker, one of `WAKER_CONTEXTS`."""


class WaitSum(NamedTuple):
    """Times in ns. Every wait counts in both parts; a preempted thread was blocked for 0 ns."""

    waits: int
    blocked: int
    blocked_min: int
    blocked_max: int
    runnable: int
    runnable_min: int
    runnable_max: int

    def __add__(self, other: object) -> WaitSum:
        """The sum of both."""
        if not isinstance(other, WaitSum):
            return NotImplemented
        return WaitSum(
            self.waits + other.waits,
            self.blocked + other.blocked,
            min(self.blocked_min, other.blocked_min),
            max(self.blocked_max, other.blocked_max),
            self.runnable + other.runnable,
            min(self.runnable_min, other.runnable_min),
            max(self.runnable_max, other.runnable_max),
        )


class Thread(NamedTuple):
    """Accounting of one thread; see struct thread."""

    start: int
    since: int
    out: int
    woken: int
    on_cpu: int
    runnable: int
    blocked: tuple[int, ...]
    switches: int
    latencies: tuple[int, ...]
    """Waits for a core that have ended, by `processes.latency_bucket`."""
    key: Origin
    sum_key: Origin
    sum: WaitSum
    phase: int
    creator: int
    """The thread that created it while it was traced; 0: nobody did."""
    cut: int = 0
    """Beginning of the interval in which its last event was; 0: the first one."""
    exiting: bool = False
    """Whether it has begun to exit; what it does from then on is not included."""
    lived: int = 0
    """Beginning of ``key.life``."""
    first: int = 0
    """First life of the thread, which identifies it."""
    made_in: int = 0
    """Id of the user stack of the thread that created it, of the same process; 0: not known."""


class ThreadRecord(NamedTuple):
    """The final record of a thread: from its exit, or from the end of the trace."""

    end: int
    comm: bytes
    thread: Thread
    exited: bool
    number: int = 1
    """Number of threads whose times are added up; if there are several, their thread id is 0."""
    main: bool = False
    """Whether they were main threads."""

    @property
    def on_cpu(self) -> int:
        """ns on a CPU, including the interval that had not ended."""
        thread = self.thread
        return thread.on_cpu + (self.end - thread.since if thread.phase == ON_CPU and not self.exited else 0)


class ExecRecord(NamedTuple):
    """A traced thread's ``life``, which began at ``lived``, ended at ``time`` when it executed another program."""

    tgid: int
    time: int
    lived: int
    life: int
    first: int


ENDS = (
    "complete",
    "too deep",
    "no unwind table",
    "no unwind rule",
    "memory not readable",
    "lost its way",
    "32-bit code",
    "not read in time",
)
"""enum walk_end, in its order: why a stack walk ended."""


def parse_record(data: bytes) -> ExecRecord | ThreadRecord:
    """One record of the ring buffer, of which `StackStore` takes the stacks. ValueError: not a known type."""
    kind = int.from_bytes(data[:4], "little")
    if kind == RECORD_EXEC:
        return ExecRecord(*_EXEC.unpack_from(data)[1:])
    if kind == RECORD_EXIT:
        return parse_thread_record(data, exited=True)
    if kind == RECORD_CUT:
        return parse_thread_record(data, exited=False)
    raise ValueError(f"record of unknown type {kind}")


def parse_chain(data: bytes) -> tuple[int, tuple[Waker, ...]]:
    """The id of a chain, and its links; the one that ended the wait first."""
    _, count, number = _CHAIN_HEAD.unpack_from(data)
    first = _CHAIN_HEAD.size
    return number, tuple(Waker(*_WAKER.unpack_from(data, first + i * _WAKER.size)) for i in range(count))


def parse_thread_record(data: bytes, *, exited: bool) -> ThreadRecord:
    _, _, end, comm = _THREAD_RECORD_HEAD.unpack_from(data)
    thread = parse_thread(data[_THREAD_RECORD_HEAD.size :])
    # A switch that had begun when the trace was stopped may have been counted after the end.
    return ThreadRecord(max(end, thread.since), comm.split(b"\0")[0], thread, exited)


def parse_thread(data: bytes) -> Thread:
    """A ``struct thread``."""
    fields = _THREAD.unpack_from(data)
    start, since, out, woken, _exec_runtime, _kernel_switches, on_cpu, runnable = fields[:8]
    blocked, switches = fields[8:16], fields[16]
    latencies, key, sum_key, total = fields[17:21]
    late_out, late_ustack, cut, lived, phase, _end, _late_end, exiting, creator, first = fields[21:31]
    wait = Origin(*ORIGIN.unpack(key))
    if late_out and late_out == out:
        wait = wait._replace(ustack=late_ustack)
    return Thread(
        start,
        since,
        out,
        woken,
        on_cpu,
        runnable,
        blocked,
        switches,
        _LATENCIES.unpack(latencies),
        wait,
        Origin(*ORIGIN.unpack(sum_key)),
        WaitSum(*WAIT_SUM.unpack(total)),
        phase,
        creator,
        cut,
        bool(exiting),
        lived,
        first,
        made_in=fields[-1],
    )


def pack_thread(ids: tuple[int, int], life: int, state: str, phase: int, now: int) -> bytes:
    """A new ``struct thread``, like new_thread() in thread.bpf.h, in ``state`` (of STATES) since ``now``.

    ``ids``: tid and tgid.
    """
    key = ORIGIN.pack(0, 0, 0, *ids, life, STATES.index(state))
    latencies, sums = bytes(_LATENCIES.size), (bytes(ORIGIN.size), bytes(WAIT_SUM.size))
    figures = (*[0] * 5, *[0] * len(STATES), 0)
    rest = (0, 0, 0, now, phase, 0, 0, 0, 0, life, 0, 0)
    return _THREAD.pack(now, now, now, *figures, latencies, key, *sums, *rest)


def parse_seeds(data: bytes) -> list[tuple[int, int]]:
    """Parses the seeding iterator's output: (tid, tgid) of each thread in scope."""
    return list(_SEED.iter_unpack(data))


NO_WAITS = WaitSum(*[0] * 7)


def since_boundary(record: ThreadRecord, boundary: int, began: int) -> ThreadRecord:
    """The part of a thread's account since ``began``, when an interval did, at ``boundary``.

    A thread without an event since then was not cut there: all that it had before is in the account.
    """
    thread = record.thread
    if thread.cut == boundary:
        return record
    off = thread.phase != ON_CPU and thread.out
    return record._replace(
        thread=thread._replace(
            start=began,
            since=began,
            out=began if off else 0,
            woken=began if off and thread.woken else 0,
            on_cpu=0,
            runnable=0,
            blocked=(0,) * len(STATES),
            switches=0,
            latencies=(0,) * processes.LATENCY_BUCKETS,
            sum=NO_WAITS,
            cut=boundary,
        )
    )


class RecordSink:
    """Collects the records of the ring buffer. ``others`` see all but stacks first, and take those of the measures."""

    def __init__(self, others: Iterable[Callable[[bytes], bool]] = ()) -> None:
        self._others = tuple(others)
        self.stacks = StackStore()
        self.ended = EndedThreads()
        self._cut: list[ThreadRecord] = []
        self._new_execs: list[ExecRecord] = []
        self.execs: list[ExecRecord] = []
        """Executions of programs in the present interval."""
        self.on_python: Callable[[bytes], None] = lambda _record: None
        """Gets the records of stacks with Python functions, too."""
        self.on_object: Callable[[bytes], None] = lambda _record: None
        """Gets those of files and sockets on which waits are."""

    def __call__(self, data: bytes) -> None:
        """Takes one record. ValueError: unknown type."""
        if data[:1] == b"\x01":  # RECORD_STACK: most of them
            self.stacks.add(data)
            if data[7]:  # STACK_HAS_PYTHON, in the second byte of `end`
                self.on_python(data)
            return
        if data[:1] == b"\x09":  # RECORD_OBJECT
            self.on_object(data)
            return
        if any(take(data) for take in self._others):
            return
        if data[:1] == b"\x03":  # RECORD_EXIT
            self.ended.add(data)
            return
        record = parse_record(data)
        if isinstance(record, ThreadRecord):
            self._cut.append(record)
        else:
            self._new_execs.append(record)
            self.execs.append(record)

    def threads(self, remaining: list[ThreadRecord]) -> list[ThreadRecord]:
        """The threads that exited, and those ``remaining`` at the end, some of which may be exiting."""
        there = {(record.thread.first, record.thread.start) for record in remaining}
        return [parse_thread_record(data, exited=True) for data in self.ended.others(there)] + remaining

    def take_interval(self, began: int, boundary: int, uncut: list[ThreadRecord]) -> list[ThreadRecord]:
        """The threads of the interval from ``began`` to ``boundary``, which are forgotten. ``uncut``: without an event
        since then, from the iterator."""
        remaining = self._remaining(began, uncut)
        later = self.ended.split(boundary)
        found = self.threads(remaining)
        self.ended = later
        return found

    def take_rest(self, began: int, left: list[ThreadRecord]) -> list[ThreadRecord]:
        """The threads that had not exited when the trace ended. ``left``: those that still existed a moment later."""
        return self._remaining(began, left)

    def _remaining(self, began: int, there: list[ThreadRecord]) -> list[ThreadRecord]:
        """Threads in an interval from ``began`` that sent their part of it, or that the iterator found ``there``."""
        # A thread that was cut after the iterator had reported it is in the interval before.
        cut = [record for record in self._cut if record.end > began]
        self._cut = []
        return list({(r.thread.first, r.thread.start): r for r in (*there, *cut)}.values())

    @property
    def exiting(self) -> int:
        """Number of threads that have begun to exit, and have not been switched out for the last time."""
        return self.ended.exiting

    def take_execs(self) -> list[ExecRecord]:
        """Execs since the last call."""
        taken, self._new_execs = self._new_execs, []
        return taken
