"""``trace-scan``: what holds each process of the host up, because of whom, and what to look at next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import click

from ..converters import graph_options
from ..converters.base import cli
from .command import budget_option as budgets
from .command import options
from .command.collective_option import collective_option, with_collectives
from .command.engine_options import engine_options
from .command.run import Shown, traced
from .command.scan_results import ScanResults, needs_events, show_again
from .command.step_options import step_option
from .command.watch_options import prepare, watch_options
from .measures.commands import SCAN
from .measures.offcpu import OffCpu
from .measures.oncpu import OnCpu
from .measures.protocol import Measure
from .measures.timeline import Timeline

SECONDS = 10.0
"""Length of a scan of processes that run already."""
SLICES = 10
"""Number of slices in which a scan shows what each process did."""
FIRST_SLICE = 100_000_000
"""ns of a slice at the beginning of a scan whose length is not known."""
LEAST_SLICE = 1_000_000
"""ns of the shortest slice: what is shorter is over before a thread has switched."""
LEFT_OUT = {"samples": "oncpu", "wakers": "wakeup", "locks": "locks", "ioctls": "ioctl", "calls": "calls"}
"""Names of measures by what --without takes."""


@cli.command(
    "trace-scan",
    examples=[
        ("sudo trace-scan", "the whole host, for 10 seconds"),
        ("sudo trace-scan -n train -d 30 -o scan.d", "the ranks of a job; scan.d keeps all of it"),
        ("sudo trace-scan --watch 60s --when 'blocked(main) > 50%'", "a line a minute; what matters is kept"),
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
@click.option("--no-peers", is_flag=True, help="Trace only what was chosen, not also what it waits for.")
@budgets.budget_option
@click.option(
    "--from",
    "kept",
    metavar="FOLDER",
    help="Show the report of a folder that -o has written; with -o x.html, write its page. Traces nothing.",
)
@click.option(
    "--compare",
    "compared",
    nargs=2,
    multiple=True,
    metavar="BEFORE AFTER",
    help="Compare runs: folders or captures that -o has written. From three of each on, noise is told from change: "
    "--compare A1,A2,A3 B1,B2,B3. Traces nothing.",
)
@click.option(
    "--nvml",
    is_flag=True,
    help="Ask NVIDIA's driver once a second what its GPUs do. Its calls take locks of the driver; their cost is told.",
)
@step_option
@collective_option
@watch_options
@options.naming_options
@engine_options
@options.output_options
@graph_options.options
def main(**given: Any) -> int:
    """Shows what holds each process up, because of whom, and what to look at next: where threads run, wait, or want a
    core, who ends their waits, which locks they wait for and which ioctls and CUDA calls they are in, all at once.

    Without a choice of processes it is the whole host, for 10 seconds; with --watch or --live it goes on."""
    if given["compared"]:
        from .command.comparing import show_comparison

        return show_comparison(given["compared"], given)
    if given["kept"]:
        return show_again(given["kept"], given)
    goes_on = prepare(given)
    if given["nvml"] and (goes_on or given.get("every")):
        raise click.UsageError("--nvml is for one scan: leave out --nvml, --watch, --live and --every")
    if not any(given[name] for name in ("pids", "tids", "name", "cgroup", "command")):
        given["everything"] = True
    if given["duration"] is None and not given["command"] and not goes_on:
        given["duration"] = SECONDS
    scope = options.make_scope(given)
    scope.peers = not given["no_peers"]
    measures = _measures({LEFT_OUT[each] for each in given["without"]})
    if not goes_on and not given.get("every"):
        measures = _sliced(measures, given["duration"])
    measures = with_collectives(given, _recorded(given, measures))
    if not goes_on:
        return traced(given, scope, measures, Shown("scan", "Wall-clock time", ScanResults, budgets.of(given)))
    from .command.watching import WatchResults

    shown = Shown("scan", "Wall-clock time", WatchResults, budgets.of(given))
    if not given["live"]:
        return traced(given, scope, measures, shown)
    from .command.live_screen import on_screen

    return on_screen(given, scope, lambda: traced(given, scope, measures, shown))


def _measures(left_out: set[str]) -> tuple[Measure, ...]:
    return tuple(each for each in SCAN if each.name not in left_out)


def _sliced(measures: tuple[Measure, ...], seconds: float | None) -> tuple[Measure, ...]:
    """The measures, with the times of waits in slices: their number of a trace of so many ``seconds``; short ones,
    which become longer, if it is not known how long it will take."""
    length = max(round(seconds * 1e9 / SLICES), LEAST_SLICE) if seconds else FIRST_SLICE
    return tuple(replace(each, slice=length) if isinstance(each, OffCpu) else each for each in measures)


def _recorded(given: Mapping[str, Any], measures: tuple[Measure, ...]) -> tuple[Measure, ...]:
    """The measures, with the events that outputs and options need one by one."""
    if given["steps"]:
        from .command.scan_steps import with_steps

        return with_steps(given, measures)
    if any(map(needs_events, given["outputs"])) or given["when"]:
        return _with_events(measures, every_switch=given["everything"])
    return measures


def _with_events(measures: tuple[Measure, ...], *, every_switch: bool) -> tuple[Measure, ...]:
    """The measures, and the scheduler's events with the samples between them: they show threads over time."""
    timed = (replace(each, one_by_one=True) if isinstance(each, OnCpu) else each for each in measures)
    return (*timed, Timeline(every_switch=every_switch))
