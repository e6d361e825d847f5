"""``trace-oncpu``: what threads execute, by samples."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from ..converters.base import cli
from .command import options
from .command.engine_options import engine_options
from .command.run import run
from .kernel.sampled_events import CLOCK, EVENTS
from .measures.commands import ONCPU


@cli.command(
    "trace-oncpu",
    examples=[
        ("sudo trace-oncpu -p 4711 -d 10", "what one process computes, for 10 seconds"),
        ("sudo trace-oncpu -a -d 5 -F 49 -o host.svg", "every process of the host, 49 samples a second and core"),
        ("sudo trace-oncpu -o run.pb.gz -- ./train --epochs 1", "a command from its first instruction to its end"),
    ],
    epilog=options.EXIT_STATUS,
)
@options.scope_options
@options.frequency_option
@click.option(
    "--event",
    type=click.Choice(list(EVENTS)),
    default=CLOCK,
    show_default=True,
    metavar="EVENT",
    help=f"Sample by this event instead of a clock, if the machine has it: {', '.join(EVENTS)}.",
)
@options.naming_options
@engine_options
@options.output_options
def main(**given: Any) -> int:
    """Samples the user and kernel stacks of threads that are on a CPU, and draws where their time went.

    The samples divide a thread's on-CPU time among its stacks; the time itself is exact, from the scheduler. With
    --event, that event is counted instead. The trace ends after -d SECONDS, with the traced processes, or by Ctrl-C."""
    measure = replace(ONCPU, frequency=given["frequency"], event=given["event"])
    what = "On-CPU time" if measure.by_clock else f"{given['event']} on the CPU"
    return run(given, options.make_scope(given), (measure,), stem="oncpu", what=what)
