"""A thread that finds tables in the cache or has them compiled, one file after another."""

from __future__ import annotations

import contextlib
import os
import select
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from ..images.elf import ElfError, ElfFile, FileSource
from .cache import TableCache
from .compiler import UnwindError
from .pool import Answer, Job, Pool
from .rows import UnwindTable
from .sections import find_sections

_PATIENCE = 0.5
"""Seconds to wait for the thread at the end of a trace."""
_STEP = 0.25
"""Interval in seconds at which the compiling processes are polled."""


@dataclass(eq=False)
class Request:
    """A file whose table is requested."""

    elf: ElfFile
    path: str = ""
    processes: int = 1
    """Number of processes that map it, as far as is known."""
    waits: bool = False
    """Whether it has been requested and there is no answer yet."""
    was_compiled: bool = False
    """Whether its table was not in the cache and had to be compiled."""


class State(NamedTuple):
    """Progress of the compilation."""

    asked: int
    ready: int
    at_work: str
    """Path of a file that is being compiled; "" when none is."""


R = TypeVar("R", bound=Request)
T = TypeVar("T")


class Compiling(Generic[R, T]):
    """Methods must be called from one thread, not the worker's. ``ready`` becomes readable when there is a result."""

    def __init__(self, cache: TableCache, finish: Callable[[UnwindTable], T], pool: Pool[R] | None = None) -> None:
        """``finish`` runs in the worker thread and turns a table into what `take` returns."""
        self.ready = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self.uncached = cache.problem
        """Reason why tables cannot be kept for the next time; "" while they can."""
        self._cache = cache
        self._finish = finish
        self._pool: Pool[R] = Pool(cache.folder) if pool is None else pool
        self._todo: deque[R] = deque()
        self._hasty: deque[R] = deque()
        self._done: deque[tuple[R, T | str]] = deque()
        self._lock = threading.Lock()
        self._news = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._stopping = False
        self._asked = self._finished = self._handed_on = 0
        self._thread = threading.Thread(target=self._run, name="unwind tables", daemon=True)
        self._thread.start()

    def put(self, request: R, *, urgent: bool) -> None:
        """Requests a table; ``urgent``: before all others."""
        with self._lock:
            if not request.waits:
                request.waits = True
                self._asked += 1
                (self._todo.appendleft if urgent else self._todo.append)(request)
            elif urgent and request in self._todo:
                self._todo.remove(request)
                self._todo.appendleft(request)
            elif urgent:
                self._hasty.append(request)
        os.eventfd_write(self._news, 1)

    def take(self) -> tuple[R, T | str] | None:
        """A file with the result made from its table, or with the reason why there is none."""
        if not self._done:
            return None
        request, result = self._done.popleft()
        request.waits = False
        return request, result

    def heard(self) -> None:
        """Clears ``ready`` until the next result."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self.ready)

    def wait(self, seconds: float) -> None:
        """Waits until there is a result."""
        poll = select.poll()
        poll.register(self.ready, select.POLLIN)
        poll.poll(max(seconds, 0) * 1000)

    @property
    def idle(self) -> bool:
        """Nothing is left to do, and no result is left to take."""
        with self._lock:
            return not self._done and self._asked == self._finished

    @property
    def compiles_only(self) -> bool:
        """All cached tables have been taken: every outstanding request is being compiled."""
        with self._lock:
            return not self._done and self._asked == self._finished + self._handed_on

    @property
    def state(self) -> State:
        """Progress, for display."""
        at_work = self._pool.at_work
        return State(self._asked, self._finished, at_work[0].path if at_work else "")

    @property
    def pids(self) -> set[int]:
        """The processes that compile for us, or did."""
        return self._pool.all_pids

    def close(self, patience: float = _PATIENCE) -> None:
        """Stops the thread after its current file; the compiling processes finish theirs."""
        if self.ready < 0:
            return
        self._stopping = True
        os.eventfd_write(self._news, 1)
        self._thread.join(patience)
        if not self._thread.is_alive():  # else it ends with the command: nobody waits for a large file's table
            self._cache.close()
            os.close(self.ready)
            os.close(self._news)
            self.ready = self._news = -1

    def _run(self) -> None:
        while not self._stopping:
            with self._lock:
                request = self._todo.popleft() if self._todo else None
                hasty, self._hasty = self._hasty, deque()
            for each in hasty:
                self._pool.hasten(each)
            if request is not None:
                self._look_up(request)
            for answer in (*self._pool.collect(), *self._pool.feed()):
                self._answered(answer)
            self._pool.hurry()
            if request is None:
                self._sleep()
        self._pool.close()

    def _sleep(self) -> None:
        poll = select.poll()
        for fd in (self._news, *self._pool.fds):
            poll.register(fd, select.POLLIN)
        poll.poll(None if self._pool.idle else _STEP * 1000)
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._news)

    def _look_up(self, request: R) -> None:
        """Answers the request, or hands it to the compiling processes."""
        with self._refusing(request):
            if not isinstance(request.elf.source, FileSource):  # the vdso: small, and from the kernel
                self._answer(request, self._finish(self._cache.table(request.elf)))
                return
            sections = find_sections(request.elf)
            entry = self._cache.entry(request.elf, sections)
            table = self._cache.find(entry)
            if table is not None:
                self._answer(request, self._finish(table))
                return
            request.was_compiled = True
            size = sum(len(section.data) for section in sections.found)
            with self._lock:
                self._handed_on += 1
            self._pool.put(Job(request, request.elf.source.fd, entry, size, request.processes))

    def _answered(self, answer: Answer[R]) -> None:
        with self._lock:
            self._handed_on -= 1
        self.uncached = answer.uncached or self.uncached
        found = answer.found
        with self._refusing(answer.token):
            self._answer(answer.token, found if isinstance(found, str) else self._finish(found))

    @contextlib.contextmanager
    def _refusing(self, request: R) -> Iterator[None]:
        """Turns an error caused by the file into the answer for it."""
        try:
            yield
        except (UnwindError, ElfError) as error:
            self._answer(request, str(error))
        except MemoryError:
            self._answer(request, "not enough memory")
        except Exception as error:  # a bug triggered by one file must not end the trace
            self._answer(request, f"{type(error).__name__}: {error}")

    def _answer(self, request: R, result: T | str) -> None:
        with self._lock:
            self._done.append((request, result))
            self._finished += 1
        os.eventfd_write(self.ready, 1)
