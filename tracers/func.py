"""``trace-func``: how long functions that the user names take, and whether they ran or waited."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from ..converters.base import cli
from ..converters.writers.output import is_stdout
from .base.scope import Scope
from .command import options
from .command.call_options import call_options
from .command.engine_options import engine_options
from .command.question_options import make_asked, question_options
from .command.run import run
from .command.target_options import TargetsCommand, make_targets, target_options
from .expressions.asked import Asked
from .measures.calls import KernelCalls
from .measures.commands import FUNC
from .measures.events import Events
from .probe_targets.events import Chosen
from .probe_targets.events import Events as Wanted


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
@question_options
@call_options("function")
@options.span_options
@options.naming_options
@engine_options
@options.output_options
def main(**given: Any) -> int:
    """Times calls of any function of a program or library: how often, how long, and whether the thread ran, was blocked
    or waited for a core meanwhile.

    A TARGET is FILE:FUNCTION. FILE is a path, or the name of a library or program that traced processes map. FUNCTION
    is a name, a pattern such as 'read*', or an expression: '/^read/' or 're:^read'. Names of C++ and Rust are matched
    without mangling, with or without their arguments.

    Only counted, with their stacks, are: functions with --count; USDT probes, u:FILE:NAME or u:FILE:PROVIDER:NAME;
    and tracepoints, t:SYSTEM:EVENT. Functions of the kernel, k:FUNCTION, are timed where it has kprobes.

    The trace ends after -d SECONDS, with the traced processes, or by Ctrl-C."""
    from .command import event_list, target_list  # they need numpy

    targets, asked = make_targets(given), make_asked(given)
    if given["lists"]:
        if given["as_json"]:
            raise click.UsageError("--list prints text: leave out --json")
        whose = _given_scope(given), given["command"]
        for line in (
            event_list.lines(targets, *whose) if isinstance(targets, Wanted) else target_list.lines(targets, *whose)
        ):
            print(line)
        return 0
    scope, spans = options.make_scope(given), options.make_spans(given)
    if isinstance(targets, Wanted):
        if given["over"]:
            raise click.UsageError("--over is about the time of calls, which is not known of what is only counted")
        if spans:
            raise click.UsageError("a timeline shows calls with their ends, which are not known of what is counted")
        return _of_events(given, scope, targets, event_list.check(targets), asked)
    target_list.check(targets)
    target_list.check_mapped(targets, options.make_scope(given), given["command"])
    calls = replace(FUNC, wanted=targets, spans=spans, over=given["over"] or 0)
    if asked:
        from .command.asking import make_calls

        calls = make_calls(targets, asked, quiet=_is_quiet(given), spans=spans, over=given["over"] or 0)
    measures = calls, *options.make_timeline(given)
    return run(given, scope, measures, stem="func", what="Time in calls")


def _of_events(given: dict[str, Any], scope: Scope, targets: Wanted, chosen: Chosen, asked: Asked) -> int:
    """Functions of the kernel alone are timed, all else is counted."""
    if given["counts"] or not targets.are_of_kernel:
        if asked:
            from .command.asking_events import make_events

            measure = make_events(targets, asked, chosen, quiet=_is_quiet(given))
            return run(given, scope, (measure,), stem="func", what="Events")
        return run(given, scope, (Events(targets, chosen),), stem="func", what="Events")
    if asked:
        raise click.UsageError("questions are not for functions of the kernel that are timed: add --count")
    if given["every"]:
        raise click.UsageError("--every does not time functions of the kernel: add --count, or leave it out")
    return run(given, scope, (KernelCalls(chosen.functions),), stem="func", what="Time in calls")


def _is_quiet(given: dict[str, Any]) -> bool:
    """Whether standard output is for data."""
    return given["as_json"] or any(map(is_stdout, given["outputs"]))


def _given_scope(given: dict[str, Any]) -> Scope | None:
    """The scope, if there is one: functions can be listed without it."""
    try:
        return options.make_scope(given)
    except cli.MissingScope:
        return None
