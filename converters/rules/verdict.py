"""A verdict: what is judged to be wrong with some threads, and what that rests on, as data."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..facts import file_locks
from ..facts.wait_causes import DRIVERS_CALL
from ..facts.wait_functions import COLLECTIVE, LOADER, LOCK_OF_FILE, OF_DATABASES, STARTED, TAKE_GIL
from ..facts.wait_kinds import CHILD, EVENTS, HALTED, HELD, LOCK, PEER, SLEEP, THREAD
from ..facts.wait_sums import Place
from .finding import CPU, Finding, sleeps_again

DEADLOCK, DATABASE_LOCK, FILE_LOCK, GIL = "deadlock", "database-lock", "file-lock", "gil"
DRIVER, GPU, IO, MEMORY = "driver", "gpu", "io", "memory"
CORES, QUOTA, POOL_ANEW, HERD, STILL = "cores", "quota", "pool-anew", "herd", "still"
POLLING, UNCLEAR, IDLE = "polling", "unclear", "idle"
PROCESSES_ANEW = "processes-anew"
NETWORK = "network"
SLOW_LOADER, SLOW_STEP, LATE_RANK = "slow-loader", "slow-step", "late-rank"
LATE_MESSAGES = "late-messages"
KINDS = {
    DEADLOCK: "threads that hold locks of each other, and never move",
    LOCK: "waits for a lock of the program or of the kernel",
    DATABASE_LOCK: "waits for a lock of a database",
    FILE_LOCK: "waits for a lock on a file",
    GIL: "waits for Python's interpreter lock",
    DRIVER: "blocked in an ioctl of a driver, by its locks, too",
    GPU: "waits until the GPU has done something",
    IO: "blocked in a file system or on a disk",
    MEMORY: "blocked in page faults, or while memory is reclaimed",
    HELD: "blocked in the kernel elsewhere",
    PEER: "waits for another process: one of this host, or it is not known where it is",
    NETWORK: "waits for another host, over TCP or UDP",
    COLLECTIVE: "waits for other ranks of its job",
    SLOW_LOADER: "waits for the next batch of its loader of data",
    SLOW_STEP: "some steps of a loop take much longer than the others",
    LATE_RANK: "ranks come late to collectives, in which all others wait for them",
    LATE_MESSAGES: "a rank comes late to messages, for which others wait",
    CHILD: "waits for a process to end",
    THREAD: "waits for another thread of the process",
    EVENTS: "waits for one of several events",
    SLEEP: "sleeps until a timer ends it",
    HALTED: "stopped by a signal, a debugger or a freezer",
    CORES: "more threads want to run than there are cores for them",
    QUOTA: "stopped by the CPU quota of a control group",
    POOL_ANEW: "threads are created and end all the time",
    PROCESSES_ANEW: "processes are started and end all the time",
    HERD: "threads are woken in vain",
    CPU: "runs on a core",
    POLLING: "asks again and again whether something has happened, with a core or in short sleeps",
    STILL: "did not move",
    IDLE: "hardly runs, and waits for events",
    UNCLEAR: "it is not known where threads were",
}
"""Meaning of each kind of verdict."""
_MEMORY = ("page fault", "mmap", "munmap", "mprotect", "brk")


@dataclass(frozen=True)
class Verdict:
    """Times in ns."""

    rule: str
    """The id of the rule that found it."""
    kind: str
    """Kind of the verdict: one of `KINDS`."""
    time: int
    """Time that would be saved at most."""
    confidence: float
    """Part of ``time`` that is believed to be saved, from 0 to 1."""
    pids: frozenset[int]
    """Processes that it explains."""
    finding: Finding | None = None
    """Threads whose time it is, and where it is spent."""
    cause: Finding | None = None
    """Work of those who keep them waiting."""
    effect: Finding | None = None
    """Waits of others that it causes."""
    detail: object = None
    """Figures of its rule."""
    is_effect: bool = False
    """Whether the verdict tells of waits that others end."""
    is_told: bool = False
    """The sentence of another verdict tells of it."""
    most: float = field(default=float("inf"), compare=False)
    """Limit on the score, set if something else explains the verdict's time."""

    @property
    def score(self) -> float:
        """ns that are believed to be saved."""
        return min(self.time * self.confidence, self.most)

    @property
    def wait_kind(self) -> str:
        """Kind of the wait, one of `wait_kinds`, or `CPU`; "" if it is of no single wait."""
        return self.finding.kind if self.finding else ""


def kind_of(finding: Finding) -> str:
    """The kind of a verdict on these waits, or on threads that run."""
    first = finding.places[0] if finding.places else None
    if first and (found := _of_a_job(first)):
        return found
    if sleeps_again(finding):
        return POLLING
    if finding.kind == PEER and finding.on and finding.on.is_remote:
        return NETWORK
    return _kind(finding.kind, first) if first else finding.kind


def kind_of_wait(place: Place) -> str:
    """The kind of a verdict on the waits in one place."""
    return _of_a_job(place) or _kind(place.kind, place)


def _of_a_job(place: Place) -> str:
    """The kind of a wait for a GPU, or for other parts of a job; "" for others."""
    if place.wait.gpu:
        return GPU
    job = place.wait.job
    return {LOADER: SLOW_LOADER, STARTED: CHILD}.get(job, COLLECTIVE) if job else ""


def _kind(kind: str, place: Place) -> str:
    if kind not in (LOCK, HELD):
        return kind
    return _lock_kind(place) if kind == LOCK else _held_kind(place)


def _lock_kind(place: Place) -> str:
    wait = place.wait
    if wait.lock == TAKE_GIL:
        return GIL
    if wait.lock in OF_DATABASES:
        return DATABASE_LOCK
    if wait.lock == LOCK_OF_FILE:
        return FILE_LOCK
    if wait.call == DRIVERS_CALL and not wait.lock:
        return DRIVER
    return FILE_LOCK if wait.call in file_locks.CALLS else LOCK


def _held_kind(place: Place) -> str:
    call = place.wait.call
    if call == DRIVERS_CALL:
        return DRIVER
    if call in _MEMORY:
        return MEMORY
    return IO if call else HELD
