"""Steps in a scan: what --step adds to its measures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import click

from ..measures.calls import Calls
from ..measures.oncpu import OnCpu
from ..measures.protocol import Measure
from ..measures.steps import Steps
from ..measures.timeline import LIMIT
from .step_options import make_steps

_EVENT_MB = "64"


def with_steps(given: Mapping[str, Any], measures: tuple[Measure, ...]) -> tuple[Measure, ...]:
    """The measures of a scan with those of --step and the scheduler's events, which tell what a step does. Usage errors
    for a scan that goes on, and for what cannot be measured beside it; StallscopeError like `make_steps`."""
    if given["watch"] is not None or given["live"] or given["when"]:
        raise click.UsageError("--step tells of a whole scan: leave out --watch, --live and --when")
    kept = {"timeline": False, "max_events": (LIMIT, "newest"), "event_mb": _EVENT_MB}
    steps = make_steps({**given, **kept, "outputs": ()})
    if any(isinstance(each, Steps) for each in steps) and any(isinstance(each, Calls) for each in measures):
        raise click.UsageError(
            "--step of a library's or a program's function takes the probes of calls: add --without calls"
        )
    timed = (replace(each, one_by_one=True) if isinstance(each, OnCpu) else each for each in measures)
    return (*timed, *steps)
