"""``trace-offcpu``: where threads wait, for how long, and for what."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from ..converters import graph_options
from ..converters.base import cli
from ..converters.model.states import BLOCKED, RUNNABLE_STATES
from .command import options
from .command.engine_options import engine_options
from .command.run import run
from .command.step_options import make_steps, step_option
from .measures.commands import OFFCPU
from .measures.wakeup import WakeUp

_GROUPS = {
    "blocked": BLOCKED,
    "runnable": RUNNABLE_STATES,
}
_STATE_NAMES = (*_GROUPS, *_GROUPS["blocked"], *_GROUPS["runnable"])


@cli.command(
    "trace-offcpu",
    examples=[
        ("sudo trace-offcpu -p 4711 -d 10", "where one process waits, for 10 seconds"),
        ("sudo trace-offcpu -a -d 5 -o host.svg", "every process of the host"),
        ("sudo trace-offcpu -o run.pb.gz -- ./train --epochs 1", "a command from its first instruction to its end"),
    ],
    epilog=options.EXIT_STATUS,
)
@options.scope_options
@click.option("--min-block", type=float, metavar="US", help="Leave out waits shorter than this many microseconds.")
@click.option("--max-block", type=float, metavar="US", help="Leave out waits longer than this many microseconds.")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(_STATE_NAMES),
    metavar="STATE",
    help=f"Count only waits in this state (repeatable): {', '.join(_STATE_NAMES)}.",
)
@options.wakers_option
@options.timeline_options
@step_option
@options.naming_options
@engine_options
@options.output_options
@graph_options.options
def main(**given: Any) -> int:
    """Counts every interval that a thread spends off the CPU, blocked or waiting for a core, with its user and kernel
    stack, and draws where the time went.

    The trace ends after -d SECONDS, with the traced processes, or by Ctrl-C. A COMMAND that still runs by then is
    terminated. An output that ends in .pb.gz keeps everything for later conversion."""
    scope = options.make_scope(given)
    shortest, longest = options.waits_between(given)
    states = frozenset(state for name in given["states"] for state in _GROUPS.get(name, (name,)))
    measure = replace(OFFCPU, shortest=shortest, longest=longest, states=states or None)
    wakers = (WakeUp(1, shortest, longest, states or None, alone=False),) if given["wakers"] else ()
    return run(given, scope, (measure, *wakers, *make_steps(given)), stem="offcpu", what="Off-CPU time")
