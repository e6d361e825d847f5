"""A whole trace in one call: what comes between a command's options and its profile."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...base import privilege
from ...base.interrupts import Interrupts
from ...base.launch import Launch
from ...kernel.records import RecordSink
from ...measures.protocol import Measure
from ..protocol import Engine, Outcome, Request
from .probes import ProbeOptions, Probes

if TYPE_CHECKING:
    from .session import Capture


@dataclass(frozen=True)
class Ebpf(Engine):
    """CO-RE BPF programs through libbpf. See `ProbeOptions` for the fields."""

    user_stacks: bool = True
    kernel_stacks: bool = True
    btf: Path | None = None
    table_entries: int = ProbeOptions.table_entries
    buffer_bytes: int = ProbeOptions.buffer_bytes
    unwind_bytes: int = ProbeOptions.unwind_bytes
    name: str = "ebpf"

    def refusals(self, measures: Sequence[Measure]) -> Mapping[str, str]:  # noqa: ARG002
        return {}

    def trace(self, request: Request) -> Outcome:
        capture = self._capture(request)
        from .assemble import Naming, profile_of
        from .remarks import details

        try:
            profile = profile_of(capture, request.what, Naming(request.lines, request.container_pids))
            return Outcome(profile, details(capture))
        finally:
            capture.spaces.close()

    def _capture(self, request: Request) -> Capture:
        privilege.require()
        privilege.require_host_pids()
        with Interrupts() as interrupts:
            launch = Launch(list(request.command), quiet=request.quiet) if request.command else None
            try:
                request.scope.resolve()
                return self._run(request, launch, interrupts)
            finally:
                if launch:
                    launch.stop()

    def _run(self, request: Request, launch: Launch | None, interrupts: Interrupts) -> Capture:
        sink = RecordSink(measure.on_record for measure in request.measures)
        probes = Probes(self._options(request), sink)
        try:
            get_ready()
            # What is needed only from here on is imported only here: the first probe is attached by now.
            from ...base.progress import Progress
            from .session import Session

            session = Session(probes, launch, request.duration)
            with Progress(request.duration) as progress:
                return session.run(
                    sink,
                    lambda t, s, lost: progress.update(threads=t, stacks=s, lost=lost),
                    interrupts,
                    progress,
                    wait=request.wait,
                )
        finally:
            probes.close()

    def _options(self, request: Request) -> ProbeOptions:
        return ProbeOptions(
            request.scope,
            request.measures,
            user_stacks=self.user_stacks,
            kernel_stacks=self.kernel_stacks,
            btf=self.btf,
            table_entries=self.table_entries,
            buffer_bytes=self.buffer_bytes,
            unwind_bytes=self.unwind_bytes,
        )


def get_ready() -> None:
    """Before numpy is imported, and many files are opened."""
    # numpy's BLAS, which nobody uses here, would start a thread per core.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    _allow_many_files()
    _give_memory_back()


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
