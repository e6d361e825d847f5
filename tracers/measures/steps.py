"""Steps: calls of functions that the user named, one by one with their times. What a thread does in them is known from
the scheduler's events: they need `Timeline` in the same trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from .protocol import Measure

if TYPE_CHECKING:
    from ..probe_targets.python_steps import PythonFunction
    from ..probe_targets.steps import StepFunctions
    from .span_options import SpanOptions


@dataclass(frozen=True)
class Steps(Measure):
    """Functions of libraries and programs. Not for a trace that has `Calls`, too."""

    name: ClassVar[str] = "steps"
    functions: StepFunctions
    spans: SpanOptions


@dataclass(frozen=True)
class PythonSteps(Measure):
    """Functions of Python."""

    name: ClassVar[str] = "python_steps"
    functions: Sequence[PythonFunction]
    spans: SpanOptions
