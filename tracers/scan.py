"""``trace-scan``: what holds each process of the host up, because of whom, and what to look at next."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from ..converters import graph_options
from ..converters.base import cli
from .command import budget_option as budgets
from .command import options
from .command.engine_options import engine_options
from .command.run import Shown, traced
from .command.scan_results import ScanResults, needs_events, show_again
from .measures.commands import SCAN
from .measures.oncpu import OnCpu
from .measures.protocol import Measure
from .measures.timeline import Timeline

SECONDS = 10.0
"""Length of a scan of processes that run already."""
LEFT_OUT = {"samples": "oncpu", "wakers": "wakeup", "locks": "locks", "ioctls": "ioctl", "calls": "calls"}
"""Names of measures by what --without takes."""


@cli.command(
    "trace-scan",
    examples=[
        ("sudo trace-scan", "the whole host, for 10 seconds"),
        ("sudo trace-scan -n train -d 30 -o scan.d", "the ranks of a job; scan.d keeps all of it"),
        ("trace-scan --from scan.d -o scan.html", "the page of that scan, without root"),
    ],
    epilog=options.EXIT_STATUS,
)
@options.scope_options
@click.option(
    "--without",
    multiple=True,
    type=click.Choice([*LEFT_OUT]),
    metavar="MEASURE",
    help=f"Leave out a measure (repeatable): {', '.join(LEFT_OUT)}.",
)
@budgets.budget_option
@click.option(
    "--from",
    "kept",
    metavar="FOLDER",
    help="Show the report of a folder that -o has written; with -o x.html, write its page. Traces nothing.",
)
@options.naming_options
@engine_options
@options.output_options
@graph_options.options
def main(**given: Any) -> int:
    """Shows what holds each process up, because of whom, and what to look at next: where threads run, wait, or want a
    core, who ends their waits, which locks they wait for and which ioctls and CUDA calls they are in, all at once.

    Without a choice of processes it is the whole host, for 10 seconds."""
    if given["kept"]:
        return show_again(given["kept"], given)
    if not any(given[name] for name in ("pids", "tids", "name", "cgroup", "command")):
        given["everything"] = True
    if given["duration"] is None and not given["command"]:
        given["duration"] = SECONDS
    scope = options.make_scope(given)
    measures = _measures({LEFT_OUT[each] for each in given["without"]})
    if any(map(needs_events, given["outputs"])):
        measures = _with_events(measures, every_switch=given["everything"])
    return traced(given, scope, measures, Shown("scan", "Wall-clock time", ScanResults, budgets.of(given)))


def _measures(left_out: set[str]) -> tuple[Measure, ...]:
    return tuple(each for each in SCAN if each.name not in left_out)


def _with_events(measures: tuple[Measure, ...], *, every_switch: bool) -> tuple[Measure, ...]:
    """The measures, and the scheduler's events with the samples between them: they show threads over time."""
    timed = (replace(each, one_by_one=True) if isinstance(each, OnCpu) else each for each in measures)
    return (*timed, Timeline(every_switch=every_switch))
