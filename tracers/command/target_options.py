"""The functions of a command line: ``TARGET... [options] [-- COMMAND...]``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click

from ...converters.base import cli
from ...converters.base.errors import StallscopeError
from ...converters.base.text import printable
from ..apis.targets import Target, Targets

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
_END = "--"


class TargetsCommand(cli.ExamplesCommand):
    """A command whose arguments are ``targets``, those after ``--`` being the ``command`` of `scope_options`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = args.index(_END) if _END in args else len(args)
        left = super().parse_args(ctx, args[:end])
        ctx.params["targets"] = ctx.params["command"]
        ctx.params["command"] = tuple(args[end + 1 :])
        return left

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return ["TARGET...", "[OPTIONS]", "[-- COMMAND...]"]


def target_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """--cpp --list."""
    decorators: list[Decorator] = [
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
    """From the arguments and `target_options`. Usage errors, and StallscopeError for a file that is not there."""
    if not given["targets"]:
        raise cli.MissingScope("say which functions to trace: FILE:FUNCTION, such as libc.so.6:getenv")
    return Targets.of(map(_target, given["targets"]), returns=given["cpp"])


def _target(text: str) -> Target:
    try:
        return Target.parse(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="'TARGET'") from None
    except OSError as error:
        raise StallscopeError(
            f"there is no file {printable(text.partition(':')[0])}: {error.strerror}",
            "give a path, or the name of a file that processes map: grep -o '/.*[.]so.*' /proc/PID/maps",
            exit_code=2,
        ) from None
