"""``trace-offcpu``: where threads wait, for how long, and for what."""

from __future__ import annotations

from typing import Any

import click

from ..converters import cli
from .core import options
from .core.engine import OFF_CPU_PROBES
from .core.record import record
from .core.records import STATES
from .core.report import Report

_GROUPS = {
    "blocked": ("interruptible", "uninterruptible", "stopped", "traced", "idle", "other"),
    "runnable": ("runnable-woken", "runnable-preempted"),
}
_STATE_NAMES = (*_GROUPS, *_GROUPS["blocked"], *_GROUPS["runnable"])
_FOREVER = (1 << 64) - 1


@cli.command(
    "trace-offcpu",
    examples=[
        ("sudo trace-offcpu -p 4711 -d 10", "where one process waits, for 10 seconds"),
        ("sudo trace-offcpu -a -d 5 -o host.svg", "every process of the host"),
        ("sudo trace-offcpu -o run.pb.gz -- ./train --epochs 1", "a command from its first instruction to its end"),
    ],
)
@options.scope_options
@click.option("--min-block", type=float, metavar="US", help="Leave out waits shorter than so many microseconds.")
@click.option("--max-block", type=float, metavar="US", help="Leave out waits longer than so many microseconds.")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(_STATE_NAMES),
    metavar="STATE",
    help=f"Only waits in this state (repeatable): {', '.join(_STATE_NAMES)}.",
)
@options.naming_options
@options.engine_options
@options.output_options
def main(**given: Any) -> None:
    """Counts every interval that a thread spends off the CPU, blocked or waiting for a core, with its user and kernel
    stack, and draws where the time went.

    The trace ends after -d SECONDS, with the traced processes, or by Ctrl-C. A COMMAND that still runs by then is
    terminated. An output that ends in .pb.gz keeps everything for later conversion."""
    scope = options.make_scope(given)
    shortest = options.microseconds(given["min_block"], 0)
    longest = options.microseconds(given["max_block"], _FOREVER)
    if shortest > longest:
        raise click.UsageError("--min-block is above --max-block: no wait is that long and that short")
    states = frozenset(state for name in given["states"] for state in _GROUPS.get(name, (name,)))
    report = Report.plan("offcpu", given)
    lines = options.make_line_tool(given)
    knobs = {"min_wait": shortest, "max_wait": longest, "state_mask": _state_mask(states)}
    engine = options.make_engine_options(given, scope, OFF_CPU_PROBES, knobs)
    capture = record(engine, given["command"], given["duration"], quiet=report.uses_stdout)

    from .core.assemble import Filter, Naming, details, off_cpu_profile

    naming = Naming(lines, container_pids=given["container_pid"])
    profile = off_cpu_profile(capture, Filter(shortest, longest, states or None), naming)
    report.write(profile, details(capture))


def _state_mask(states: frozenset[str]) -> int:
    """The `enum wait_state` values that can lead to samples in ``states``; the finer choice is made on the samples."""
    if not states or "runnable-woken" in states:
        return (1 << 32) - 1
    names = {"preempted" if state == "runnable-preempted" else state for state in states}
    return sum(1 << i for i, state in enumerate(STATES) if state in names)
