"""``trace-func``: how long functions that the user names take, and whether they ran or waited."""

from __future__ import annotations

from typing import Any

import click

from ..converters.base import cli
from .base.scope import Scope
from .command import options
from .command.call_options import call_options
from .command.run import run
from .command.target_options import TargetsCommand, make_targets, target_options
from .measures.calls import Calls


@cli.command(
    "trace-func",
    cls=TargetsCommand,
    examples=[
        ("sudo trace-func libssl.so.3:SSL_read -p 4711 -d 10", "one function of one process, for 10 seconds"),
        ("sudo trace-func 'libc.so.6:pthread_mutex_*lock' --by thread -- ./train", "of a command, by thread"),
        ("sudo trace-func 'libtorch_cpu.so:at::native::topk*' --list", "what matches, without a trace"),
    ],
    epilog=options.EXIT_STATUS,
)
@options.scope_options
@target_options
@call_options("function")
@options.span_options
@options.naming_options
@options.engine_options
@options.output_options
def main(**given: Any) -> int:
    """Times calls of any function of a program or library: how often, how long, and whether the thread ran, was blocked
    or waited for a core meanwhile.

    A TARGET is FILE:FUNCTION. FILE is a path, or the name of a library or program that traced processes map. FUNCTION
    is a name, a pattern such as 'read*', or an expression: '/^read/' or 're:^read'. Names of C++ and Rust are matched
    without mangling, with or without their arguments.

    The trace ends after -d SECONDS, with the traced processes, or by Ctrl-C."""
    from .command import target_list  # needs numpy

    targets = make_targets(given)
    if given["lists"]:
        if given["as_json"]:
            raise click.UsageError("--list prints text: leave out --json")
        for line in target_list.lines(targets, _given_scope(given), given["command"]):
            print(line)
        return 0
    scope, spans = options.make_scope(given), options.make_spans(given)
    target_list.check(targets)
    measures = Calls(targets, spans=spans), *options.make_timeline(given)
    return run(given, scope, measures, stem="func", what="Time in calls")


def _given_scope(given: dict[str, Any]) -> Scope | None:
    """The scope, if there is one: functions can be listed without it."""
    try:
        return options.make_scope(given)
    except cli.MissingScope:
        return None
