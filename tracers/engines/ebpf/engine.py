"""A whole trace in one call, from a command's options to its profile."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....converters.base.errors import StallscopeError
from ...base import capabilities, descriptors, privilege
from ...base.interrupts import Interrupts
from ...base.launch import Launch
from ...base.priority import while_the_user_waits
from ...kernel.records import RecordSink
from ...measures.protocol import Measure
from ..protocol import Engine, EngineUnavailable, Outcome, Request
from .measures import registry
from .probes import ProbeOptions, Probes

if TYPE_CHECKING:
    from ....converters.model import Profile
    from ...base.progress import Progress
    from .assemble import Naming
    from .capture import Capture

_PROBES = 110
"""Descriptors of maps, programs and links; a measure needs one more per core."""


@dataclass(frozen=True)
class Ebpf(Engine):
    """CO-RE BPF programs through libbpf. See `ProbeOptions` for the fields."""

    user_stacks: bool = True
    kernel_stacks: bool = True
    btf: Path | None = None
    table_entries: int = ProbeOptions.table_entries
    buffer_bytes: int = ProbeOptions.buffer_bytes
    unwind_bytes: int = ProbeOptions.unwind_bytes
    memory: int = ProbeOptions.memory
    python: bool = True
    name: str = "libbpf"

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Ebpf:
        """Makes the engine from the values of a command's options."""
        return cls(
            user_stacks=not given["kernel_only"],
            kernel_stacks=not given["user_only"],
            btf=given["btf"],
            table_entries=given["table_size"],
            buffer_bytes=int(given["buffer_mb"]) << 20,
            unwind_bytes=given["unwind_mb"] << 20,
            memory=given["memory_mb"] << 20,
            python=given["python"] != "no" or given["native_python"],
        )

    def refusals(self, measures: Sequence[Measure]) -> Mapping[str, str]:
        return registry.refusals(measures)

    def missing(self, measures: Sequence[Measure]) -> StallscopeError | None:
        from ...kernel import libbpf
        from .probes import KERNEL_BTF

        try:
            privilege.require()
            privilege.require_host_pids()
            privilege.require_bpf()
            libbpf.version()
        except StallscopeError as error:
            return error
        path = self.btf or KERNEL_BTF
        return None if path.exists() else StallscopeError(f"there is no type information (BTF) in {path}", "give --btf")

    def trace(self, request: Request) -> Outcome:
        capture, status, failed = self._capture(request)
        from .assemble import profile_of
        from .remarks import details

        try:
            request.scope.check_met()
            with while_the_user_waits():
                profile = profile_of(capture, request.what, _naming(request))
            return Outcome(profile, details(capture), status, failed)
        finally:
            capture.spaces.close()

    def _capture(self, request: Request) -> tuple[Capture, int | None, int]:
        """Captures, and returns the command's exit status, too, if it ended by itself, and how many intervals were not
        written."""
        with _unavailable():
            privilege.require()
            privilege.require_host_pids()
            privilege.require_bpf()
        with Interrupts() as interrupts, descriptors.told():
            launch = Launch(list(request.command), quiet=request.quiet) if request.command else None
            try:
                descriptors.allow_many()  # not for the command, which was forked before
                require_descriptors(len(request.measures))
                request.scope.resolve()
                capture, failed = self._run(request, launch, interrupts)
                return capture, None if interrupts.requested else capture.exit_status, failed
            finally:
                if launch:
                    launch.stop()

    def _run(self, request: Request, launch: Launch | None, interrupts: Interrupts) -> tuple[Capture, int]:
        with _unavailable():
            options = self._options(request)
            sink = RecordSink(collector.on_record for collector in options.collectors)
            probes = Probes(options, sink)
        try:
            if request.gives_up:
                capabilities.give_up_all_but(capabilities.DURING)
            if request.every and probes.shape.raw:
                named = request.every_option
                raise StallscopeError(f"{named} needs the kernel's own type information", f"leave out {named} or --btf")
            get_ready()
            # Modules that are needed only from here on are imported after the probes are attached.
            from ...base.neighbours import Neighbours
            from ...base.pressure import HostTimes
            from ...base.progress import Progress
            from .session import Session

            scope = request.scope
            session = Session(probes, launch, request.duration, budget=request.budget)
            with Progress(request.duration) as progress:
                if request.every and request.publish:
                    from .intervals import Intervals

                    publish = _publisher(request, request.publish, progress)
                    session.cut_into(Intervals(probes, request.every, request.writers), publish)
                    if request.prepare:
                        from . import assemble  # noqa: F401

                        request.prepare()

                def show(threads: int, stacks: int, lost: int) -> None:
                    if scope.waits and scope.name is not None:
                        progress.wait_for(scope.name.pattern)
                    else:
                        progress.update(threads=threads, stacks=stacks, lost=lost)

                neighbours = None if scope.everything else Neighbours()
                host = HostTimes()
                capture = session.run(sink, show, interrupts, progress, wait=request.wait)
                host.end()
                capture.pressure = [*host.pressure, *capture.pressure]
                capture.interrupts = host.interrupts
                if neighbours:
                    neighbours.end()
                    capture.neighbours = neighbours
                return capture, session.intervals.failed if session.intervals else 0
        finally:
            probes.close()
            if request.gives_up:
                capabilities.give_up_all_but(capabilities.AFTERWARDS)

    def _options(self, request: Request) -> ProbeOptions:
        has_python = self.python and self.user_stacks
        return ProbeOptions(
            request.scope,
            registry.collectors(registry.with_gil(request.measures) if has_python else request.measures),
            user_stacks=self.user_stacks,
            kernel_stacks=self.kernel_stacks,
            btf=self.btf,
            table_entries=self.table_entries,
            buffer_bytes=self.buffer_bytes,
            unwind_bytes=self.unwind_bytes,
            memory=self.memory,
            python=self.python,
            intervals=request.every is not None,
            knobs={"has_budget": 1} if request.budget else {},
        )


@contextlib.contextmanager
def _unavailable() -> Iterator[None]:
    """Raises EngineUnavailable for what fails inside because of the machine: another engine may do."""
    try:
        yield
    except EngineUnavailable:
        raise
    except StallscopeError as error:
        raise EngineUnavailable(error.cause, error.remedy, exit_code=error.exit_code, details=error.details) from error


def _publisher(request: Request, publish: Callable[[Profile], None], progress: Progress) -> Callable[[Capture], None]:
    def publish_capture(capture: Capture) -> None:
        from .assemble import profile_of

        profile = profile_of(capture, request.what, _naming(request))
        progress.clear()
        publish(profile)

    return publish_capture


def _naming(request: Request) -> Naming:
    from .assemble import Naming
    from .pythonic import Python

    python = Python(only=request.python_only, machinery=request.native_python)
    return Naming(request.lines, request.container_pids, python, request.kernel_addresses)


def require_descriptors(measures: int) -> None:
    """StallscopeError where the limit of open files is too low for so many measures."""
    descriptors.require(_PROBES + measures * (os.cpu_count() or 1))


def get_ready() -> None:
    """Prepares this process, before numpy is imported and many files are opened."""
    # numpy's BLAS, which is not used here, would start a thread per core.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    descriptors.allow_many()
    _give_memory_back()


def _give_memory_back() -> None:
    """Returns freed memory to the kernel at once: unwind tables are compiled by the megabyte, in a thread."""
    import ctypes

    m_mmap_threshold, m_arena_max = -3, -8  # malloc.h of glibc; other C libraries have no mallopt()
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(m_mmap_threshold, 1 << 18)
        mallopt(m_arena_max, 1)
