"""Processes that compile unwind tables for us: few, low in priority, and replaced when they end."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import time
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Generic, TypeVar

from ...converters.base import helpers
from .cache import MAX_TABLE, Entry, decode
from .rows import UnwindTable

if TYPE_CHECKING:
    import subprocess

MODULE = __package__ + ".worker"
MOST = 4
"""Maximum number of processes at the same time."""
_TRIES = 2
"""Attempts per file: the process may have been killed from outside."""
_ENDING = 0.1
"""Maximum time in seconds between the closing of a process's descriptors and its end."""
_SMALL = 256 << 10
"""Bytes of frame records that compile in about ten milliseconds: these run at normal priority."""
_NICE, _LESS_NICE = 19, 10
_AFTER, _LONG_AFTER = 1.0, 3.0
"""Seconds after which a process short of CPU time gets a lower niceness, and then the tracer's own."""

Token = TypeVar("Token")


@dataclass(frozen=True)
class Job(Generic[Token]):
    """A file to compile. ``fd`` stays the caller's; ``size`` is that of its frame records; ``share`` is the number of
    processes that map it. Small files, and files mapped by many, come first."""

    token: Token
    fd: int
    entry: Entry
    size: int
    share: int = 1
    tries: int = 0
    """Number of processes that have ended while compiling it."""

    @property
    def rank(self) -> float:
        """Lower ranks are compiled earlier."""
        return self.size / max(self.share, 1)


@dataclass(frozen=True)
class Answer(Generic[Token]):
    """A file's table, or why there is none; ``uncached``: why the table was not kept for the next time."""

    token: Token
    found: UnwindTable | str
    uncached: str = ""


@dataclass(eq=False)
class _Worker(Generic[Token]):
    process: subprocess.Popen[bytes]
    channel: socket.socket
    job: Job[Token] | None = None
    since: float = 0.0
    cpu: float = 0.0
    """CPU seconds that the process had used when it was given the job."""
    nice: int = 0


@dataclass
class Pool(Generic[Token]):
    """Pool of processes that compile, for use from one thread. ``folder`` is the cache's."""

    folder: str
    most: int = field(default_factory=lambda: min(MOST, len(os.sched_getaffinity(0))))
    pids: set[int] = field(default_factory=set)
    """All current and former processes."""
    _below: set[int] = field(default_factory=set)
    """Processes that the compiling ones have forked."""
    _waiting: list[Job[Token]] = field(default_factory=list)
    _urgent: list[Job[Token]] = field(default_factory=list)
    _workers: list[_Worker[Token]] = field(default_factory=list)
    _ended: list[subprocess.Popen[bytes]] = field(default_factory=list)
    """Ended but not waited for, so that nobody else gets their process ids while we are traced."""

    @property
    def all_pids(self) -> set[int]:
        """Pids of these processes, and of those without rights that compile for them."""
        for worker in self._workers:
            self._look_below(worker)
        return self.pids | self._below

    def _look_below(self, worker: _Worker[Token]) -> None:
        self._below.update(_below(worker.process.pid))

    @property
    def fds(self) -> list[int]:
        """Descriptors; one of them becomes readable when `collect` has something to do."""
        return [worker.channel.fileno() for worker in self._workers]

    @property
    def at_work(self) -> list[Token]:
        """Tokens of the files that are being compiled."""
        return [worker.job.token for worker in self._workers if worker.job]

    @property
    def idle(self) -> bool:
        """Nothing is left to do."""
        return not (self._waiting or self._urgent or self.at_work)

    def put(self, job: Job[Token], *, urgent: bool = False) -> None:
        """Queues a file; ``urgent``: before all others."""
        (self._urgent if urgent else self._waiting).append(job)

    def hasten(self, token: Token) -> None:
        """Makes a queued file urgent."""
        for job in self._waiting:
            if job.token is token:
                self._waiting.remove(job)
                self._urgent.append(job)
                return

    def feed(self) -> Iterator[Answer[Token]]:
        """Hands jobs to processes. Yields answers only for jobs that cannot be done."""
        while self._waiting or self._urgent:
            idle = next((worker for worker in self._workers if worker.job is None), None)
            if idle is None and len(self._workers) >= self.most:
                return
            urgent = bool(self._urgent)
            job = self._urgent.pop(0) if urgent else min(self._waiting, key=lambda job: job.rank)
            with contextlib.suppress(ValueError):
                self._waiting.remove(job)
            if idle is not None and job.tries:  # whatever killed its process may have killed this one, too
                self._retire(idle)
                idle = None
            try:
                worker = idle or self._start()
            except OSError as error:
                yield Answer(job.token, f"no process to compile it: {error.strerror}")
                continue
            worker.job, worker.since, worker.cpu = job, time.monotonic(), _cpu_time(worker.process.pid)
            worker.nice = _at_least(0 if job.size <= _SMALL else _LESS_NICE if urgent else _NICE)
            try:
                socket.send_fds(worker.channel, [b"%d" % worker.nice], [job.fd])
            except OSError:
                yield from self._gone(worker)

    def collect(self) -> Iterator[Answer[Token]]:
        """Yields the answers that have arrived."""
        for worker in list(self._workers):
            try:
                text, fds = receive(worker.channel, socket.MSG_DONTWAIT)
            except BlockingIOError:
                continue
            except OSError:
                text, fds = b"", []
            job = worker.job
            if not text or job is None:
                yield from self._gone(worker)
                continue
            worker.job = None
            self._look_below(worker)
            problem, uncached = json.loads(text)
            yield Answer(job.token, problem or _table(fds, job.entry), uncached)

    def hurry(self) -> None:
        """Raises the priority of processes that have long had little CPU time: somebody may be waiting for them."""
        now = time.monotonic()
        for worker in self._workers:
            age = now - worker.since
            wanted = _at_least(_NICE if age < _AFTER else _LESS_NICE if age < _LONG_AFTER else 0)
            if worker.job and wanted < worker.nice and _cpu_time(worker.process.pid) - worker.cpu < age / 2:
                with contextlib.suppress(OSError):  # needs root
                    os.setpriority(os.PRIO_PGRP, worker.process.pid, wanted)
                worker.nice = wanted

    def close(self, patience: float = 0.0) -> None:
        """Lets the processes finish and cache their current file; waits for at most ``patience`` seconds."""
        end = time.monotonic() + patience
        for worker in list(self._workers):
            self._retire(worker)
        for process in self._ended:
            helpers.wait(process, max(end - time.monotonic(), 0))
        self._ended = [process for process in self._ended if process.returncode is None]

    def _start(self) -> _Worker[Token]:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            command = helpers.python_module(MODULE, self.folder)
            process = helpers.start(command, stdin=theirs.fileno(), environment={"OPENBLAS_NUM_THREADS": "1"})
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        worker: _Worker[Token] = _Worker(process, ours)
        self._workers.append(worker)
        self.pids.add(process.pid)
        return worker

    def _retire(self, worker: _Worker[Token]) -> None:
        self._look_below(worker)
        worker.channel.close()
        self._workers.remove(worker)
        self._ended.append(worker.process)

    def _gone(self, worker: _Worker[Token]) -> Iterator[Answer[Token]]:
        """The process has ended: its job is tried once more."""
        self._retire(worker)
        job = worker.job
        if job is None:
            return
        if job.tries + 1 < _TRIES:
            self._urgent.append(replace(job, tries=job.tries + 1))
            return
        yield Answer(job.token, f"the process that compiled it ended ({_why(worker.process.pid)})")


def receive(channel: socket.socket, flags: int = 0) -> tuple[bytes, list[int]]:
    """A message with its descriptors: socket.recv_fds() before Python 3.13 does not pass flags on."""
    fds = array("i")
    text, parts, _, _ = channel.recvmsg(1 << 14, socket.CMSG_SPACE(fds.itemsize), flags | socket.MSG_CMSG_CLOEXEC)
    for level, kind, data in parts:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            fds.frombytes(data[: len(data) // fds.itemsize * fds.itemsize])
    return text, list(fds)


def _table(fds: list[int], entry: Entry) -> UnwindTable | str:
    if not fds:
        return "no table came"
    with open(fds[0], "rb") as file:
        file.seek(0)
        content = file.read(MAX_TABLE)
    return decode(content, entry.digest) or "changed while it was compiled"


def _why(pid: int) -> str:
    """Text on how a process that has not been waited for ended."""
    until = time.monotonic() + _ENDING
    try:
        # A process's descriptors are closed a moment before it can be waited for.
        while (ended := os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)) is None:
            if time.monotonic() >= until:
                break
            time.sleep(0.002)
    except OSError:
        return "unknown why"
    if ended is None:
        return "it hung up"
    if ended.si_code == os.CLD_EXITED:
        return f"status {ended.si_status}"
    return signal.Signals(ended.si_status).name


def _cpu_time(pid: int) -> float:
    """CPU seconds since the process started, with those of the one that compiles for it."""
    used = 0
    for each in (pid, *_below(pid)):
        with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{each}/schedstat") as file:
            used += int(file.read().split()[0])
    return used / 1e9


def _below(pid: int) -> list[int]:
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(word) for word in file.read().split()]
    except (OSError, ValueError):
        return []


def _at_least(nice: int) -> int:
    """Nobody who compiles for a tracer is less nice than the tracer itself."""
    return max(nice, os.getpriority(os.PRIO_PROCESS, 0))
