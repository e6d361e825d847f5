"""Form in which the answer of a trace was shown: saved with it, so that it can be shown again in the same way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from .next_step import NextStep

By = Literal["function", "process", "thread"]
BY: tuple[By, ...] = get_args(By)


@dataclass(frozen=True)
class CallsView:
    """Form of the table of calls. ``sort`` is one of `summary.calls_view.SORTS`; ``rows`` None: as many as the
    summary has room for."""

    sort: str = "self"
    by: By = "function"
    rows: int | None = None
    histograms: int | None = None
    """Number of calls whose latencies are shown as a histogram; None: as many as the summary has room for."""
    places: bool = False
    """Whether each function is shown with the places that call it."""


USUAL = CallsView()


@dataclass(frozen=True, slots=True)
class Display:
    """Wishes of the user beside the measurement, and the command that was recommended."""

    view: CallsView = USUAL
    shows_idle: bool = False
    """Waits of idle threads were shown one by one."""
    next_step: NextStep | None = None
    """The command, as this user and the engine of the trace could run it; None if there was none. Hostile in a file."""
