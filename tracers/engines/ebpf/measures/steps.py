"""Steps: calls of functions that the user named, one by one with their times. What a thread does in them is known from
the scheduler's events, which `Timeline` records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from ....kernel.uprobes import Way
from ....measures.calls import Calls
from ....measures.steps import Steps
from ....probe_targets.steps import title
from ...rows import Row, Timed
from .calls import CallsCollector
from .protocol import Ended

if TYPE_CHECKING:
    from .spans import CallSpans


class StepsCollector(CallsCollector):
    """Has no rows: its result is the spans. Not for a trace that has `CallsCollector`, too, whose programs it uses."""

    name = Steps.name

    def __init__(self, measure: Steps, *, way: Way | None = None) -> None:
        super().__init__(Calls(measure.functions, spans=measure.spans), way=way)
        self.columns = measure.columns
        self.modules = tuple(library.path for library in measure.functions.libraries)

    def rows(self, ended: Ended) -> list[Row]:
        super().rows(ended)  # the cost of the probes is told as a share of the threads' time
        return []

    def calls(self, ended: Ended) -> list[Timed]:
        return []

    def functions(self) -> frozenset[tuple[str, str]]:
        return frozenset()

    def spans(self) -> CallSpans | None:
        found = super().spans()
        return found and replace(found, names=[name._replace(kind="step") for name in found.names])

    def _remarks_on_open(self) -> Iterator[str]:
        """No remarks: their time is not in the picture."""
        yield from ()

    def _name(self, function: int) -> str:
        assert self.probed
        probe = self.probed.functions[function]
        return title(probe.path, probe.name)
