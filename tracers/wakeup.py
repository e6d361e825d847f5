"""``trace-wakeup``: who ends the waits of threads, and who had made that one wait."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from ..converters import graph_options
from ..converters.base import cli
from .command import options
from .command.critical_options import critical_option, make_events
from .command.engine_options import engine_options
from .command.run import run
from .measures.commands import WAKEUP
from .measures.wakeup import MAX_DEPTH


@cli.command(
    "trace-wakeup",
    examples=[
        ("sudo trace-wakeup -p 4711 -d 10", "who makes one process wait, for 10 seconds"),
        ("sudo trace-wakeup -a -d 5 -o host.svg", "the whole host: chains across processes"),
        (
            "sudo trace-wakeup --critical command -o path.svg -- ./train",
            "what a command's time went to, through others",
        ),
    ],
    epilog=options.EXIT_STATUS,
)
@options.scope_options
@click.option("--min-block", type=float, metavar="US", help="Leave out waits shorter than this many microseconds.")
@click.option("--max-block", type=float, metavar="US", help="Leave out waits longer than this many microseconds.")
@click.option(
    "--depth",
    type=click.IntRange(1, MAX_DEPTH),
    default=WAKEUP[0].depth,
    show_default=True,
    metavar="N",
    help="Maximum number of threads in a chain: who ended the wait, who had ended a wait of that one, and so on.",
)
@critical_option
@click.option("--no-locks", is_flag=True, help="Do not tell which locks threads wait for, and who has them.")
@options.naming_options
@engine_options
@options.output_options
@graph_options.options
def main(**given: Any) -> int:
    """Tells for every interval that a thread is blocked who ended it: the thread's stack, then the stack and the
    process of the one that woke it.

    If that one had itself been waiting meanwhile, that part of the time goes on to the one that had woken it: a chain,
    through threads that are traced (-a: all). Timers, interrupts and softirqs are told as such. The trace ends after -d
    SECONDS, with the traced processes, or by Ctrl-C."""
    scope = options.make_scope(given)
    shortest, longest = options.waits_between(given)
    wakers, locks = WAKEUP
    wakers = replace(wakers, depth=given["depth"], shortest=shortest, longest=longest)
    measures = wakers, *(() if given["no_locks"] else (locks,)), *make_events(given)
    return run(given, scope, measures, stem="wakeup", what="Blocked time by waker")
