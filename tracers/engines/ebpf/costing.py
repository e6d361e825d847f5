"""Cost of a trace: measured while it runs, kept within a budget, told at its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ....converters.model.remarks import Comment, TraceCost
from .probes import Probes

if TYPE_CHECKING:
    from .metering import Meter

_MILLION = 1_000_000


class Costing:
    """Cost of the probes of an engine, if there is a budget."""

    def __init__(self, engine: Probes, budget: float, helpers: Callable[[], Iterable[int]]) -> None:
        """``budget``: share of the traced threads' time; 0: the cost is not measured. ``helpers``: the tracer's other
        processes."""
        self._engine, self._budget = engine, budget
        collectors = engine.options.collectors
        self._meter: Meter | None = None
        self.told: list[Comment] = []
        """Remarks on the trace, or on the interval of it that has ended last: its cost, and what was left out."""
        if budget:
            from .metering import Meter
            from .shedding import Shedder

            self._meter = Meter(engine.object, helpers, lambda: sum(each.stepped_calls() for each in collectors))
            self._shedder = Shedder(budget, engine.object, collectors)

    def begin(self) -> None:
        """The trace begins."""
        if self._meter:
            self._meter.begin()

    def poll(self) -> None:
        """Looks whether the trace costs too much, and leaves something out then. Called several times a second."""
        if self._meter and (window := self._meter.poll()):
            before = len(self._shedder.done)
            self._shedder.judge(window, time.monotonic_ns() - self._engine.began)
            if len(self._shedder.done) > before:
                self._meter.forget()
            if self._shedder.is_pressing:
                self._meter.hurry()
                self._meter.poll()

    def finish(self) -> None:
        """The trace ends; its programs still run."""
        if self._meter:
            self._meter.finish()

    def cut(self, at: int) -> None:
        """The trace, or an interval of it, ended at ``at``, CLOCK_MONOTONIC ns. `told` becomes what is to be said of
        it."""
        self.told = self._said(self._meter, at) if self._meter else []

    def _said(self, meter: Meter, at: int) -> list[Comment]:
        """Cost of the interval, and what was left out."""
        from .shedding import cost_parts

        spent, shed = meter.cut(), self._shedder.cut(at - self._engine.began)
        if meter.problem:
            return [f"the cost of the trace is not known: {meter.problem}"]
        if not meter.measured or not spent.traced:
            return [*shed]
        parts = cost_parts(spent.parts)
        whole = sum(ns for _, ns in parts)
        return [TraceCost(whole, spent.traced, parts, round(self._budget * _MILLION), spent.length), *shed]
