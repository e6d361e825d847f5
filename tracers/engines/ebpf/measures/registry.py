"""Collector of each measure: the one list of both."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, cast

from ....measures.locks import Gil
from ....measures.offcpu import OffCpu
from ....measures.protocol import Measure, find
from ....measures.wakeup import WakeUp
from .protocol import Collector

COLLECTORS: dict[str, str | Callable[[Any], Collector]] = {
    "OffCpu": "offcpu",
    "OnCpu": "oncpu",
    "WakeUp": "wakeup",
    "Locks": "locks",
    "Gil": "gil",
    "Ioctl": "ioctl",
    "Calls": "calls",
    "AskedCalls": "asked_calls",
    "KernelCalls": "kernel_calls",
    "Events": "events",
    "AskedEvents": "asked_events",
    "Steps": "steps",
    "PythonSteps": "python_steps",
    "Timeline": "timeline",
}
"""Module here that has a measure's collector, by the name of the measure's class: ``OffCpuCollector`` for ``OffCpu``.
It is imported when a trace needs it."""


def refusals(measures: Iterable[Measure]) -> dict[str, str]:
    """Refusals of measures without a collector, by name."""
    return {
        measure.name: f"the engine libbpf does not measure {measure.name}"
        for measure in measures
        if type(measure).__name__ not in COLLECTORS
    }


def collectors(measures: Iterable[Measure]) -> tuple[Collector, ...]:
    """Collectors of these measures in one trace. StallscopeError for an option that this machine does not have."""
    made = tuple(_made(measure) for measure in measures)
    for each in made:
        each.beside(made)
    return made


def _made(measure: Measure) -> Collector:
    name = type(measure).__name__
    kind = COLLECTORS[name]
    if isinstance(kind, str):
        kind = cast(Callable[[Any], Collector], getattr(import_module(f"{__package__}.{kind}"), f"{name}Collector"))
    return kind(measure)


def has_waits(collectors: Iterable[Collector]) -> bool:
    """Whether it is measured what threads wait for."""
    return any(each.name in (OffCpu.name, WakeUp.name) for each in collectors)


def with_gil(measures: tuple[Measure, ...]) -> tuple[Measure, ...]:
    """Measures with `Gil` if there are waits among them."""
    return (*measures, Gil()) if find(measures, OffCpu) or find(measures, WakeUp) else measures
