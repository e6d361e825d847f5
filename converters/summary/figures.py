"""What an off-CPU profile says, as plain data: who was traced, where the time went, the waits, what was lost.

`converters.summarize.summarize` makes a `Summary`; `Summary.to_json` is what ``--json`` prints,
`converters.summary_text.render` what a person reads.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

SCHEMA_VERSION = 1
STATES = ("interruptible", "uninterruptible", "stopped", "traced", "idle", "other")
"""Blocked states, in the order in which they are reported."""
RUNNABLE = "runnable-"
"""Begins the states of a thread that could run and waits for a core: runnable-woken, runnable-preempted."""
IDLE_PERCENT = 99
"""A thread that spends this share of its time in one wait that others end is called idle."""


_NUMBER = re.compile(r"(?<=[-_./:# ])\d+$|(?<=\D)\d{2,}$")


def thread_pattern(name: str, main: bool) -> str:
    """What a person calls threads of this name: ``pool-*`` for ``pool-17``, ``main`` for main threads."""
    return "main" if main else _NUMBER.sub("*", name)


@dataclass(frozen=True, slots=True)
class Process:
    """Processes of one name."""

    name: str
    pids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Times:
    """Scheduler times of a set of threads, summed, in ns."""

    threads: int = 0
    wall: int = 0
    on_cpu: int = 0
    runnable: int = 0
    blocked: dict[str, int] = field(default_factory=dict)
    """By state, in the order of `STATES`, zeros included."""

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
    """They are the main threads (tid = pid)."""
    processes: int
    threads: int

    @property
    def pattern(self) -> str:
        """See `thread_pattern`."""
        return thread_pattern(self.thread, self.main)


@dataclass(frozen=True, slots=True)
class Wait:
    """All intervals in which threads waited in the same place in the same state. Times in ns."""

    state: str
    """One of `STATES`, runnable-woken or runnable-preempted."""
    frames: tuple[str, ...]
    """See `converters.waits.Site`."""
    kernel: str
    time: int
    count: int
    min: int
    max: int
    open_time: int
    """The part of ``time`` of intervals that the end of the trace cut off."""
    open_count: int
    idle: bool
    """Each of these threads spends nearly all its time here, until somebody else has something for it."""
    told_by_others: bool
    processes: int
    threads: int
    threads_wall: int
    """Wall time of exactly these threads; 0 when that of any is unknown."""
    threads_alike: int
    """How many traced threads are called like them (see `thread_pattern`), waiting here or not."""
    who: tuple[Who, ...]
    """The thread with the most time here first."""

    @property
    def runnable(self) -> bool:
        """Whether it waited for a core only."""
        return self.state.startswith(RUNNABLE)

    @property
    def mean(self) -> int:
        return self.time // self.count if self.count else 0


@dataclass(frozen=True, slots=True)
class Summary:
    """Names are as the traced system has them: hostile, to be escaped where they are shown."""

    title: str
    host: str
    start_ns: int
    duration_ns: int
    answer: tuple[str, ...]
    """Where the time goes, in one or two sentences (`converters.answer`)."""
    processes: tuple[Process, ...]
    """Most processes first."""
    times: Times
    active: Times
    """The same of the threads that are not idle (see `Wait.idle`)."""
    waits: tuple[Wait, ...]
    """Longest first, those of idle threads after all others."""
    lost: dict[str, int]
    comments: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        r"""Plain data for ``json.dumps``. Times in ns, shares as fractions of 1, null when unknown.

        Names stand as they are; a byte that is not UTF-8 (a lone surrogate in Python) as the text
        ``\xNN``, because parsers refuse or change lone surrogates.
        """
        return {
            "version": SCHEMA_VERSION,
            "title": _json_text(self.title),
            "host": _json_text(self.host),
            "start_ns": self.start_ns,
            "duration_ns": self.duration_ns,
            "answer": [_json_text(sentence) for sentence in self.answer],
            "processes": [{"name": _json_text(p.name), "pids": list(p.pids)} for p in self.processes],
            "times": _times_json(self.times),
            "active": _times_json(self.active),
            "waits": [_wait_json(wait, self.times.wall) for wait in self.waits],
            "lost": {_json_text(kind): count for kind, count in self.lost.items()},
            "comments": [_json_text(comment) for comment in self.comments],
        }


def _times_json(times: Times) -> dict[str, Any]:
    return {
        "threads": times.threads,
        "wall_ns": times.wall,
        "on_cpu_ns": times.on_cpu,
        "runnable_ns": times.runnable,
        "blocked_ns": sum(times.blocked.values()),
        "blocked_by_state_ns": {_json_text(state): time for state, time in times.blocked.items()},
        "unaccounted_ns": times.unaccounted,
    }


def _wait_json(wait: Wait, wall: int) -> dict[str, Any]:
    return {
        "state": _json_text(wait.state),
        "frames": [_json_text(frame) for frame in wait.frames],
        "kernel_wait": _json_text(wait.kernel),
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
        "told_by_others": wait.told_by_others,
        "processes": wait.processes,
        "threads": wait.threads,
        "threads_wall_ns": wait.threads_wall,
        "threads_alike": wait.threads_alike,
        "who": [
            {
                "process": _json_text(who.process),
                "thread": _json_text(who.thread),
                "main": who.main,
                "processes": who.processes,
                "threads": who.threads,
            }
            for who in wait.who
        ],
    }


def _fraction(part: int, whole: int) -> float | None:
    return round(part / whole, 6) if whole else None


def _json_text(name: str) -> str:
    try:
        return name.encode(errors="surrogateescape").decode(errors="backslashreplace")
    except UnicodeEncodeError:
        # A surrogate that stands for no byte.
        return name.encode(errors="backslashreplace").decode()
