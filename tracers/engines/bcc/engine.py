"""A whole trace with programs that bcc compiles, from a command's options to its profile."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ....converters.base.errors import StallscopeError
from ...base import capabilities, descriptors, privilege
from ...base.interrupts import Interrupts
from ...base.launch import Launch, ending
from ...kernel.sampled_events import CLOCK
from ...measures.offcpu import OffCpu
from ...measures.oncpu import OnCpu
from ...measures.protocol import Measure, find
from ..named_rows import NamedRows, refuse
from ..protocol import Engine, EngineUnavailable, Outcome, Request

_ENTRIES = 1 << 16


@dataclass(frozen=True)
class Bcc(Engine):
    """Tracepoints and frame pointers, for kernels with BPF but without type information (BTF)."""

    user_stacks: bool = True
    kernel_stacks: bool = True
    table_entries: int = _ENTRIES
    name: str = "bcc"

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Bcc:
        """Makes the engine from the values of a command's options."""
        return cls(not given["kernel_only"], not given["user_only"], given["table_size"])

    def refusals(self, measures: Sequence[Measure]) -> Mapping[str, str]:
        refused = {
            measure.name: f"the engine bcc takes only waits and samples, no {measure.name}"
            for measure in measures
            if type(measure) not in (OffCpu, OnCpu)
        }
        samples = find(measures, OnCpu)
        if samples and not samples.by_clock:
            refused[samples.name] = f"the engine bcc samples by {CLOCK} only"
        return refused

    def missing(self, measures: Sequence[Measure]) -> StallscopeError | None:
        from .programs import make
        from .source import Choice

        try:
            _require()
            make(Choice(samples=True))
        except StallscopeError as error:
            return error
        return None

    def trace(self, request: Request) -> Outcome:
        from ..ebpf.engine import get_ready
        from .programs import Attached, make
        from .source import Choice
        from .tables import Tables

        refuse(self.name, request)
        scope = request.scope
        waits = find(request.measures, OffCpu)
        samples = find(request.measures, OnCpu)
        choice = Choice(
            waits is not None,
            samples is not None,
            self.user_stacks,
            self.kernel_stacks,
            scope.everything,
            scope.children,
            *((waits.shortest, waits.longest) if waits else ()),
        )
        with contextlib.ExitStack() as stack:
            interrupts = stack.enter_context(Interrupts())
            stack.enter_context(descriptors.told())
            launch = Launch(list(request.command), quiet=request.quiet) if request.command else None
            if launch:
                stack.callback(launch.stop)
            with _unavailable():
                _require()
                made = make(choice)
                tables = Tables(self.table_entries, waits=choice.waits, samples=choice.samples)
                stack.callback(tables.close)
                attached = Attached(made, tables.descriptors, samples.frequency if samples else 0)
                stack.callback(attached.close)
            if request.gives_up:
                capabilities.give_up_all_but(capabilities.DURING)
            scope.resolve()
            get_ready()
            from ..asleep import Asleep
            from .session import Session

            asleep = Asleep(self.user_stacks, self.kernel_stacks)
            stack.callback(asleep.close)
            session = Session(request, tables, made.letters, launch, asleep)
            taken = session.run(interrupts)
            scope.check_met()
            return _outcome(request, taken, None if interrupts.requested or not launch else launch.poll(), made.version)


def _outcome(request: Request, taken: NamedRows, status: int | None, version: str) -> Outcome:
    profile = taken.profile(request.measures, request.what)
    if status:
        profile.comments.insert(0, ending(status))
    return Outcome(profile, (f"bcc {version}",), status)


def _require() -> None:
    privilege.require()
    privilege.require_host_pids()
    privilege.require_bpf()


@contextlib.contextmanager
def _unavailable() -> Iterator[None]:
    """Raises EngineUnavailable for what fails inside because of the machine: another engine may do."""
    try:
        yield
    except EngineUnavailable:
        raise
    except StallscopeError as error:
        raise EngineUnavailable(error.cause, error.remedy, exit_code=error.exit_code, details=error.details) from error
