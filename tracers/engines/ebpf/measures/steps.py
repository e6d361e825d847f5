"""Steps: calls of functions that the user named, one by one with their times. What a thread does in them is known from
the scheduler's events, which `Timeline` records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from ....apis.steps import StepFunctions, title
from ....kernel.uprobes import Way
from ....measures.span_options import SpanOptions
from .calls import Calls
from .protocol import Ended, Row, Timed

if TYPE_CHECKING:
    from .spans import CallSpans


class Steps(Calls):
    """Has no rows: its result is the spans. Not for a trace that has `Calls`, too, whose programs it uses."""

    name = "steps"
    columns = ()

    def __init__(self, functions: StepFunctions, spans: SpanOptions, *, way: Way | None = None) -> None:
        super().__init__(functions, way=way, spans=spans)
        self.modules = tuple(library.path for library in functions.libraries)

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

    def remarks(self) -> Iterable[str]:
        """Those of the calls, but for what is not in the picture."""
        return (remark for remark in super().remarks() if not remark.endswith(self.IN_THE_PICTURE))

    def _name(self, function: int) -> str:
        assert self.probed
        probe = self.probed.functions[function]
        return title(probe.path, probe.name)
