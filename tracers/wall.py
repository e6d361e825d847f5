"""``trace-wall``: all of the time of threads, on a CPU and off it, in one picture."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..converters import graph_options
from ..converters.base import cli
from .command import options
from .command.collective_option import collective_option, with_collectives
from .command.engine_options import engine_options
from .command.run import run
from .command.step_options import make_steps, step_option
from .measures.commands import WALL
from .measures.wakeup import WakeUp


@cli.command(
    "trace-wall",
    examples=[
        ("sudo trace-wall -p 4711 -d 10", "all of the time of one process, for 10 seconds"),
        ("sudo trace-wall -n train -d 10 --per-thread", "each thread of the processes called train"),
        ("sudo trace-wall -o run.pb.gz -- ./train --epochs 1", "a command from its first instruction to its end"),
    ],
    epilog=options.EXIT_STATUS,
)
@options.scope_options
@options.frequency_option
@options.wakers_option
@options.timeline_options
@step_option
@collective_option
@options.naming_options
@engine_options
@options.output_options
@graph_options.options
def main(**given: Any) -> int:
    """Shows where the wall-clock time of threads goes: running, blocked, or waiting for a core.

    A thread's stacks sum to its whole time. The label "state" of each says what the thread does: with `trace-convert
    --root state` it is at the bottom of the picture. The trace ends after -d SECONDS, with the traced processes, or by
    Ctrl-C."""
    scope = options.make_scope(given)
    wakers = (WakeUp(alone=False),) if given["wakers"] else ()
    waits, running = WALL
    running = replace(running, frequency=given["frequency"], one_by_one=bool(given["steps"]))
    measures = with_collectives(given, (waits, running, *wakers, *make_steps(given)))
    return run(given, scope, measures, stem="wall", what="Wall-clock time")
