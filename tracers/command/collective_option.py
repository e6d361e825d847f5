"""The option that joins collectives over ranks, of commands that measure something else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import click

from ..measures.argument_options import ArgumentOptions
from ..measures.calls import Calls
from ..measures.oncpu import OnCpu
from ..measures.protocol import Measure
from ..measures.timeline import Timeline
from ..probe_targets.collectives import Collectives, WithCuda

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
collective_option: Decorator = click.option(
    "--collectives",
    is_flag=True,
    help="Join the collectives of NCCL, MPI and Gloo over ranks, as trace-nccl does: who comes late, and what it does.",
)


def with_collectives(given: Mapping[str, Any], measures: tuple[Measure, ...]) -> tuple[Measure, ...]:
    """The measures with calls of collectives, and with the scheduler's events, which tell what ranks do between two.
    Usage errors for a trace that is cut into intervals."""
    if not given["collectives"]:
        return measures
    if any(given.get(name) for name in ("every", "watch", "live")):
        raise click.UsageError("--collectives tells of a whole trace: leave out --every, --watch and --live")
    if not any(isinstance(each, Calls) for each in measures):
        measures = *measures, Calls(Collectives(), arguments=ArgumentOptions())
    else:
        measures = tuple(_with_arguments(each) if isinstance(each, Calls) else each for each in measures)
    # What a late rank runs between two meetings is known by the times of samples.
    measures = tuple(replace(each, one_by_one=True) if isinstance(each, OnCpu) else each for each in measures)
    if any(isinstance(each, Timeline) for each in measures):
        return measures
    return *measures, Timeline(every_switch=given["everything"])


def _with_arguments(calls: Calls) -> Calls:
    return replace(calls, wanted=WithCuda(), arguments=ArgumentOptions())
