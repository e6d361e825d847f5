"""A whole trace in one call: what every tracer does between its options and its profile."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from . import privilege
from .engine import Engine, EngineOptions
from .interrupts import Interrupts
from .launch import Launch
from .records import RecordSink

if TYPE_CHECKING:
    from .session import Capture


def record(options: EngineOptions, command: tuple[str, ...], duration: float | None, *, quiet: bool = False) -> Capture:
    """Traces ``options.scope`` (and ``command``, started for it) for ``duration`` seconds or until it ends.

    ``quiet``: standard output is for our own data, the command's goes to standard error.
    StallscopeError when the scope is not there or the machine does not allow it. Whatever happens, no probe stays,
    and a command that still runs gets SIGTERM.
    """
    privilege.require()
    privilege.require_host_pids()
    with Interrupts() as interrupts:
        launch = Launch(list(command), quiet=quiet) if command else None
        try:
            options.scope.resolve()
            return _run(options, launch, duration, interrupts)
        finally:
            if launch:
                launch.stop()


def _run(options: EngineOptions, launch: Launch | None, duration: float | None, interrupts: Interrupts) -> Capture:
    sink = RecordSink()
    engine = Engine(options, sink)
    try:
        # numpy's BLAS, which nobody uses here, would start a thread per core.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        # What is needed only from here on is imported only here: the first probe is attached by now.
        from .progress import Progress
        from .session import Session

        _allow_many_files()
        _give_memory_back()
        session = Session(engine, launch, duration)
        with Progress(duration) as progress:
            return session.run(
                sink, lambda t, s, lost: progress.update(threads=t, stacks=s, lost=lost), interrupts=interrupts
            )
    finally:
        engine.close()


def _allow_many_files() -> None:
    """Mapped files are held open so that processes that ended keep their names: up to the hard limit."""
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = min(hard, 1 << 16) if hard != resource.RLIM_INFINITY else 1 << 16
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(limit, os.sysconf("SC_OPEN_MAX")), hard))


def _give_memory_back() -> None:
    """What is freed goes back to the kernel at once: unwind tables are compiled by the megabyte, in a thread."""
    import ctypes

    m_mmap_threshold, m_arena_max = -3, -8  # malloc.h of glibc; other C libraries have no mallopt()
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(m_mmap_threshold, 1 << 18)
        mallopt(m_arena_max, 1)
