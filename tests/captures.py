"""Hand-made captures and the profiles that are assembled of them; names come from a table instead of files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stallscope.converters.model import Frame, Labels, Module, Profile
from stallscope.tracers.engines.ebpf.assemble import profile_of
from stallscope.tracers.engines.ebpf.capture import Capture
from stallscope.tracers.engines.ebpf.lives import Lives
from stallscope.tracers.engines.ebpf.measures.offcpu import OffCpuCollector
from stallscope.tracers.engines.ebpf.measures.protocol import Ended, rows_of
from stallscope.tracers.kernel.records import (
    COUNTERS,
    ON_CPU,
    STATES,
    ExecRecord,
    Origin,
    Thread,
    ThreadRecord,
    WaitSum,
)
from stallscope.tracers.measures.offcpu import OffCpu
from stallscope.tracers.symbols.process import ProcessSpaces
from stallscope.tracers.symbols.symboliser import UNMAPPED

SLEEP, DISK, STOPPED = (STATES.index(state) for state in ("interruptible", "uninterruptible", "stopped"))
KERNEL = 1 << 63
NAMES = {
    1: "main", 2: "work", 3: "read", 12: "__clone", 9: UNMAPPED, 10: "[libx.so+0x1a]", 11: "[anon]",
    13: "[libx.so!fn_0x10]",
    KERNEL + 1: "entry_SYSCALL_64", KERNEL + 2: "schedule", KERNEL + 3: "__schedule", KERNEL + 4: "__traceiter_sched",
    KERNEL + 5: "bpf_prog_1", KERNEL + 6: "__bpf_get_stack", KERNEL + 7: "do_work",
}  # fmt: skip
NO_SUM = WaitSum(0, 0, 0, 0, 0, 0, 0)
END = 10_000


class Table:
    """Stands for the symboliser: frames by address, those of epoch 1 with a mark."""

    def __init__(self, *_: object) -> None:
        self.problems: list[str] = []

    def kernel_stacks(self, stacks: Sequence[tuple[int, ...]]) -> list[tuple[Frame, ...]]:
        return [tuple(Frame(NAMES[a], "kernel") for a in reversed(stack)) for stack in stacks]

    def user_stacks(self, requests: Sequence[tuple[int, int, tuple[int, ...]]]) -> list[tuple[Frame, ...]]:
        marks = {0: "", 1: "'", -1: "?"}
        module = Module("/usr/lib/libx.so")
        return [
            tuple(
                Frame(NAMES[a] + (marks[epoch] if a < 9 else ""), module=module if a == 10 else None)
                for a in reversed(stack)
            )
            for _, epoch, stack in requests
        ]


def key(state: int = SLEEP, *, user: int = 0, kernel: int = 0, tid: int = 8, tgid: int = 7, life: int = 0) -> Origin:
    """Origin by which a row is counted; the ids of stacks are keys of ``stacks``."""
    return Origin(user, kernel, 0, tid, tgid, life or tid, state)


def thread(tid: int = 8, **given: Any) -> Thread:
    """An account of a thread, all zero but for what is given."""
    fields: dict[str, Any] = dict.fromkeys(("start", "since", "out", "woken", "on_cpu", "runnable", "switches"), 0)
    fields |= {"latencies": (0,) * 24, "creator": 0}
    fields |= {"blocked": (0,) * 8, "key": key(tid=tid), "sum_key": key(tid=tid), "sum": NO_SUM, "phase": ON_CPU}
    fields |= given
    return Thread(**{"first": fields["key"].life} | fields)


def remaining(comm: bytes = b"worker", **given: Any) -> ThreadRecord:
    """The account of a thread that is still there at the end."""
    return ThreadRecord(END, comm, thread(**given), exited=False)


def capture(measure: OffCpuCollector | None = None, **given: Any) -> Capture:
    """A capture of one measure; ``waits``, ``execs``, ``counters`` and ``losses`` are what their names say."""
    measure = measure or OffCpuCollector(OffCpu())
    measure._waits = dict(given.pop("waits", []))
    counters = dict.fromkeys(COUNTERS, 0) | given.pop("counters", {})
    losses = dict(measure.losses()) | given.pop("losses", {})
    fields: dict[str, Any] = {
        "began": 1000, "stopped": END, "wall_ns": 5, "threads": [], "stacks": {}, "lost_process_events": 0,
        "spaces": ProcessSpaces(fd_budget=0),
    }  # fmt: skip
    execs = given.pop("execs", None)
    if execs is None:  # every thread that has rows is known, as a rule
        execs = [ExecRecord(w.tgid, 0, 0, w.life, w.life) for w in measure._waits if not given.get("threads")]
    fields |= given
    lives = fields["lives"] = Lives(fields["threads"], execs, fields["spaces"])
    fields["threads"] = lives.records(fields["threads"])
    rows = lives.rows(rows_of([measure], Ended(1000, END, fields["threads"], lives.threads)))
    return Capture(**fields, columns=measure.columns, rows=rows, losses=losses, counters=counters)


def profile(measure: OffCpuCollector | None = None, **given: Any) -> Profile:
    """The profile of such a capture."""
    return profile_of(capture(measure, **given), "Off-CPU time")


def labels(state: str, *, tid: int = 8, **more: str) -> Labels:
    """Labels of a sample of a process without a name."""
    shared: dict[str, str | int] = {
        "pid": 7, "process": "[unknown]", "state": state, "thread": "[unknown]", "tid": tid
    }  # fmt: skip
    return tuple(sorted((shared | more).items()))


def states(made: Profile) -> list[tuple[str, tuple[int, ...], bool]]:
    """(state, values, whether open) of each sample."""
    return [(str(s.label("state")), s.values, s.label("open") == "yes") for s in made.samples]


def frames(made: Profile) -> list[list[str]]:
    """Names of the frames of each sample, the outermost first."""
    return [[frame.name for frame in sample.stack] for sample in made.samples]
