"""A whole trace with eu-stack, from a command's options to its profile."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ....converters.base.errors import StallscopeError
from ...base.interrupts import Interrupts
from ...base.launch import Launch, ending
from ...measures.offcpu import OffCpu
from ...measures.oncpu import OnCpu
from ...measures.protocol import Measure, find
from ..named_rows import refuse
from ..protocol import Engine, EngineUnavailable, Outcome, Request
from .access import require_access
from .sampling import Sampling
from .walker import Walker, find_eu_stack


@dataclass(frozen=True)
class EuStack(Engine):
    """Runs eu-stack at the rate of the samples, but no more than half of the time."""

    name: str = "eu-stack"

    @classmethod
    def of(cls, _: Mapping[str, Any]) -> EuStack:
        """Makes the engine from the values of a command's options: it has none."""
        return cls()

    def refusals(self, measures: Sequence[Measure]) -> Mapping[str, str]:
        names = [measure.name for measure in measures]
        if sorted(names) == [OffCpu.name, OnCpu.name]:
            return {}
        why = "the engine eu-stack looks at threads now and then: it serves trace-wall only, without its other options"
        return dict.fromkeys(names, why)

    def missing(self, measures: Sequence[Measure]) -> StallscopeError | None:
        try:
            find_eu_stack()
        except EngineUnavailable as error:
            return error
        return None

    def trace(self, request: Request) -> Outcome:
        refuse(self.name, request)
        path = find_eu_stack()
        if request.scope.everything:
            raise EngineUnavailable(
                "the engine eu-stack does not trace whole hosts", "choose processes with -p PID or -n REGEX"
            )
        samples = find(request.measures, OnCpu)
        assert samples, "it takes nothing else"
        walker = Walker(path)
        with Interrupts() as interrupts, contextlib.closing(walker):
            walker.is_over = lambda: bool(interrupts.requested)
            launch = Launch(list(request.command), quiet=request.quiet) if request.command else None
            try:
                request.scope.resolve()
                require_access(request.scope)
                sampling = Sampling(request, launch, walker, 1 / samples.frequency)
                if launch and not interrupts.requested:
                    launch.go()
                taken = sampling.run(interrupts)
                request.scope.check_met()
                profile = taken.profile(request.measures, request.what)
                status = None if interrupts.requested or not launch else launch.poll()
                if status:
                    profile.comments.insert(0, ending(status))
                return Outcome(profile, (f"eu-stack: {path}",), status)
            finally:
                if launch:
                    launch.stop()
