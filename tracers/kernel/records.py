"""The records and map values of the BPF programs, mirroring bpf/include/records.h.

All times are CLOCK_MONOTONIC nanoseconds. tests/tracers/kernel/test_records.py compares the layouts with the header.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ...converters.model import processes, states
from .stack_store import StackStore

MAX_FRAMES = 127

STATES = ("preempted", *states.BLOCKED, "new")
"""enum wait_state, in its order."""
PREEMPTED, OTHER, NEW = STATES.index("preempted"), STATES.index("other"), STATES.index("new")

RUNNING = len(STATES)
"""The state of a thread that was sampled on a CPU."""

ON_CPU, BLOCKED, RUNNABLE = range(3)
"""enum phase."""

RECORD_STACK, RECORD_EXEC, RECORD_EXIT, RECORD_CUT, RECORD_IOCTL = 1, 2, 3, 4, 5

COUNTERS = (
    "lost_stacks",
    "lost_waits",
    "lost_threads",
    "lost_records",
    "stack_table_full",
    "stacks_failed",
    "missed_ins",
    "missed_outs",
    "missed_waits",
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
)
"""enum counter, in its order."""

ORIGIN = struct.Struct("<QQQIIII")
WAIT_SUM = struct.Struct("<7Q")
_THREAD = struct.Struct(f"<8Q8QQ{processes.LATENCY_BUCKETS * 4}s40s40s56sQQQBBBBI8x")
_LATENCIES = struct.Struct(f"<{processes.LATENCY_BUCKETS}I")
_EXEC = struct.Struct("<IIQII")
_THREAD_RECORD_HEAD = struct.Struct("<IIQ16s")
_SEED = struct.Struct("<II")
THREAD_SIZE = _THREAD.size
THREAD_RECORD_SIZE = _THREAD_RECORD_HEAD.size + _THREAD.size
_START = _END = struct.Struct("<Q")
_TID = struct.Struct("<I")
_END_OFFSET, _TID_OFFSET, _EXITING_OFFSET = 8, 288, THREAD_RECORD_SIZE - 13
"""Of ``end``, ``thread.key.tid`` and ``thread.exiting`` in a struct thread_record."""


OTHER_STACKS, LOST = 2, 4
"""Ids of user stacks that stand for rare stacks, put together, and for what was lost. Those of the probes are odd."""


class Origin(NamedTuple):
    """Where something happened; the key of all counts. ``ustack``, ``kstack``, ``python``: a stack's id, 0 for none.

    ``execs``: how many execs of the process had been seen. ``state``: index into STATES, or `RUNNING`.
    """

    ustack: int
    kstack: int
    python: int
    tid: int
    tgid: int
    execs: int
    state: int


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
    """It has begun to exit; what it does from then on is not included."""


class ThreadRecord(NamedTuple):
    """The final record of a thread: from its exit, or from the end of the trace."""

    end: int
    comm: bytes
    thread: Thread
    exited: bool

    @property
    def on_cpu(self) -> int:
        """ns on a CPU, including the interval that had not ended."""
        thread = self.thread
        return thread.on_cpu + (self.end - thread.since if thread.phase == ON_CPU and not self.exited else 0)


class ExecRecord(NamedTuple):
    """A traced process executed another program: its ``execs``-th since it has been traced."""

    tgid: int
    time: int
    execs: int


ENDS = (
    "complete",
    "too deep",
    "no unwind table",
    "no unwind rule",
    "memory not readable",
    "lost its way",
    "32-bit code",
)
"""enum walk_end, in its order: why a stack walk ended."""


def parse_record(data: bytes) -> ExecRecord | ThreadRecord:
    """One record of the ring buffer, of which `StackStore` takes the stacks. ValueError: not a known type."""
    kind = int.from_bytes(data[:4], "little")
    if kind == RECORD_EXEC:
        _, tgid, time, execs, _ = _EXEC.unpack_from(data)
        return ExecRecord(tgid, time, execs)
    if kind == RECORD_EXIT:
        return parse_thread_record(data, exited=True)
    if kind == RECORD_CUT:
        return parse_thread_record(data, exited=False)
    raise ValueError(f"record of unknown type {kind}")


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
    late_out, late_ustack, cut, phase, _end, _late_end, exiting, creator = fields[21:]
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
    )


def pack_thread(tid: int, tgid: int, state: str, phase: int, now: int) -> bytes:
    """A new ``struct thread``, like new_thread() in thread.bpf.h, in ``state`` (of STATES) since ``now``."""
    key = ORIGIN.pack(0, 0, 0, tid, tgid, 0, STATES.index(state))
    latencies, sums = bytes(_LATENCIES.size), (bytes(ORIGIN.size), bytes(WAIT_SUM.size))
    return _THREAD.pack(
        now, now, now, *[0] * 5, *[0] * len(STATES), 0, latencies, key, *sums, 0, 0, 0, phase, 0, 0, 0, 0
    )


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
        self._exited: dict[tuple[int, int], bytes] = {}
        """By thread id and start of the account; not parsed, for there may be very many."""
        self._cut: list[ThreadRecord] = []
        self._execs: list[ExecRecord] = []
        self._exiting: set[int] = set()

    def __call__(self, data: bytes) -> None:
        """Takes one record. ValueError: unknown type."""
        if data[:1] == b"\x01":  # RECORD_STACK: most of them
            self.stacks.add(data)
            return
        if any(take(data) for take in self._others):
            return
        if data[:1] == b"\x03":  # RECORD_EXIT
            # Sent when it begins to exit, and again at its last switch: the later record has more.
            tid, start = _TID.unpack_from(data, _TID_OFFSET)[0], _START.unpack_from(data, _THREAD_RECORD_HEAD.size)[0]
            self._exited[tid, start] = data
            (self._exiting.add if data[_EXITING_OFFSET] else self._exiting.discard)(tid)
            return
        record = parse_record(data)
        if isinstance(record, ThreadRecord):
            self._cut.append(record)
        else:
            self._execs.append(record)

    def threads(self, remaining: list[ThreadRecord]) -> list[ThreadRecord]:
        """The threads that exited, and those ``remaining`` at the end, some of which may be exiting."""
        there = {(record.thread.key.tid, record.thread.start) for record in remaining}
        ended = [data for key, data in self._exited.items() if key not in there]
        return [parse_thread_record(data, exited=True) for data in ended] + remaining

    def take_interval(self, began: int, boundary: int, uncut: list[ThreadRecord]) -> list[ThreadRecord]:
        """The threads of the interval from ``began`` to ``boundary``, which are forgotten. ``uncut``: without an event
        since then, from the iterator."""
        # A thread that was cut after the iterator had reported it is in the interval before.
        self._cut = [record for record in self._cut if record.end > began]
        remaining = list({(r.thread.key.tid, r.thread.start): r for r in (*uncut, *self._cut)}.values())
        later = {key: data for key, data in self._exited.items() if _END.unpack_from(data, _END_OFFSET)[0] >= boundary}
        self._exited = {key: data for key, data in self._exited.items() if key not in later}
        found = self.threads(remaining)
        self._exited, self._cut = later, []
        return found

    @property
    def exiting(self) -> int:
        """How many threads have begun to exit, and have not been switched out for the last time."""
        return len(self._exiting)

    @property
    def reused(self) -> int:
        """How often a thread id was reused by another thread."""
        return len(self._exited) - len({tid for tid, _ in self._exited})

    def take_execs(self) -> list[ExecRecord]:
        taken, self._execs = self._execs, []
        return taken
