"""Threads whose waits are written down by hand: what each does one after the other, and who ends its waits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from scheduling_traces import rows
from stallscope.converters.model import Frame, Stack
from stallscope.converters.model.scheduling import (
    BLOCKED,
    INTERRUPT,
    NO_STACK,
    SWITCH,
    THREAD,
    WAKE_UP,
    Array,
    Scheduling,
)
from summary_profiles import EXE, LIBC, MS, READ, SLEEP, kernel, user

GET: Stack = (*user(EXE, "main", "next_batch"), *user(LIBC, "pthread_cond_wait"), *kernel("futex_wait"))
PUT: Stack = (*user(EXE, "loader", "put_batch"), *user(LIBC, "pthread_cond_wait"), *kernel("futex_wait"))
SYNC, TICK = READ, SLEEP
TAKE: Stack = (*user(EXE, "main", "take"), *user(LIBC, "pthread_mutex_lock"), *kernel("futex_wait"))
LOADER = "/v/lib/python3.11/site-packages/torch/utils/data/dataloader.py"
BATCH: Stack = (
    Frame("train", "python", file="train.py", line=5),
    Frame("_BaseDataLoaderIter.__next__", "python", file=LOADER, line=741),
    *user(LIBC, "poll"),
    *kernel("__x64_sys_poll", "do_sys_poll", "poll_schedule_timeout"),
)
NOWHERE: Stack = kernel("worker_thread")
STACKS = [GET, PUT, SYNC, TICK, TAKE, BATCH, NOWHERE]
TIMER, UNKNOWN = 0, -1


class Run(NamedTuple):
    """Time on a core, in ns."""

    time: float


class Wait(NamedTuple):
    """Blocked, until a thread wakes it: `TIMER` for an interrupt, `UNKNOWN` for nobody known. ``queued``: ns without a
    core after that."""

    stack: Stack
    time: float
    by: int = TIMER
    queued: float = 0


@dataclass
class Recording:
    """Threads that all begin with it, each on a core of its own."""

    changes: dict[str, list[tuple[Any, ...]]] = field(
        default_factory=lambda: {"switches": [], "blocked": [], "wakeups": [], "threads": []}
    )
    names: list[str] = field(default_factory=lambda: ["train", "loader"])
    end: int = 0

    def thread(self, tid: int, does: Iterable[Run | Wait], pid: int = 5) -> Recording:
        """Adds a thread; it is of process 5, if nothing else is said."""
        cpu, now = len(self.changes["threads"]), 0
        self.changes["threads"].append((tid, pid, 0, 0 if tid == pid else 1, 0))
        for each in does:
            if isinstance(each, Run):
                now += round(each.time)
                continue
            woken = now + round(each.time)
            back = woken + round(each.queued)
            stack = next((i for i, known in enumerate(STACKS) if known is each.stack), NO_STACK)
            self.changes["switches"] += [(now, cpu, 1, tid, 0, 120), (back, cpu, 0, 0, tid, 120)]
            self.changes["blocked"].append((now, woken, back, tid, stack, 1))
            if each.by != UNKNOWN:
                flags = INTERRUPT if each.by == TIMER else 0
                self.changes["wakeups"].append((woken, cpu, cpu, tid, each.by, 120, flags))
            now = back
        self.end = max(self.end, now)
        return self

    def events(self) -> Scheduling:
        """All of it."""
        kinds = {"switches": SWITCH, "blocked": BLOCKED, "wakeups": WAKE_UP, "threads": THREAD}
        arrays: dict[str, Array] = {}
        for name, dtype in kinds.items():
            key = 2 if name == "threads" else 0
            found = sorted(self.changes[name], key=lambda row: row[key])
            columns = zip(*found, strict=True) if found else [[] for _ in dtype.names or ()]
            arrays[name] = rows(dtype, **dict(zip(dtype.names or (), map(list, columns), strict=True)))
        return Scheduling(self.end, names=self.names, stacks=STACKS, **arrays)


def loop(lengths: Sequence[float], stack: Stack = GET, work: float = 0.5, by: int = 6) -> list[Run | Wait]:
    """Waits in one place, whose ends have these distances: for ``work`` of each it runs before."""
    steps = [(Run(work * length), Wait(stack, (1 - work) * length, by)) for length in lengths]
    return [Wait(stack, MS, by), *(each for step in steps for each in step)]


def steady(number: int, each: float = 10 * MS) -> list[float]:
    """Equal lengths."""
    return [each] * number
