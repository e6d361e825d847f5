"""The functions of a command line: ``TARGET... [options] [-- COMMAND...]``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from ...converters.base import cli
from ...converters.base.errors import StallscopeError
from ...converters.base.text import printable
from ..probe_targets.events import Events, EventTarget, is_event
from ..probe_targets.targets import Target, Targets
from .options import Length

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
_Target = TypeVar("_Target", Target, EventTarget)
_END = "--"


class TargetsCommand(cli.ExamplesCommand):
    """A command whose arguments are ``targets``, those after ``--`` being the ``command`` of `scope_options`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = args.index(_END) if _END in args else len(args)
        left = super().parse_args(ctx, args[:end])
        ctx.params["targets"] = ctx.params["command"]
        ctx.params["command"] = tuple(args[end + 1 :])
        return left

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return ["TARGET...", "[OPTIONS]", "[-- COMMAND...]"]


def target_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """--count --over --cpp --list."""
    decorators: list[Decorator] = [
        click.option(
            "--count",
            "counts",
            is_flag=True,
            help="Count entries of functions, with their stacks, and time nothing: safe for every function.",
        ),
        click.option(
            "--over",
            type=Length(),
            metavar=Length.name,
            default="0us",
            help="Only calls that take longer count, such as 5ms; of the others, the number is told.",
        ),
        click.option(
            "--cpp",
            is_flag=True,
            help="Also time functions of C++ and Rust. An exception or a panic that leaves one ends the program.",
        ),
        click.option(
            "--list",
            "lists",
            is_flag=True,
            help="Print the functions that match, and what a probe on each costs, and trace nothing.",
        ),
    ]
    for decorator in reversed(decorators):
        function = decorator(function)
    return function


def make_targets(given: Mapping[str, Any]) -> Targets:
    """Targets from the arguments and `target_options`: `Events` if they are to be counted. Usage errors, and
    StallscopeError for a file that is not there."""
    if not given["targets"]:
        raise cli.MissingScope("say which functions to trace: FILE:FUNCTION, such as libc.so.6:getenv")
    events = [text for text in given["targets"] if is_event(text)]
    functions = [text for text in given["targets"] if not is_event(text)]
    if given["cpp"] and (given["counts"] or not functions):
        raise click.UsageError("--cpp is about returns, which are not watched here: leave it out")
    if events and functions and not given["counts"]:
        raise click.UsageError(
            f"{events[0]} is counted, {functions[0]} is timed: add --count to count both, or trace one of them"
        )
    parsed = [_parsed(Target.parse, text) for text in functions]
    if events or given["counts"]:
        return Events.all_of(parsed, [_parsed(EventTarget.parse, text) for text in events])
    return Targets.of(parsed, returns=given["cpp"])


def _parsed(parse: Callable[[str], _Target], text: str) -> _Target:
    try:
        return parse(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="'TARGET'") from None
    except OSError as error:
        raise StallscopeError(
            f"there is no file {printable(text.removeprefix('u:').partition(':')[0])}: {error.strerror}",
            "give a path, or the name of a file that processes map: grep -o '/.*[.]so.*' /proc/PID/maps",
            exit_code=2,
        ) from None
