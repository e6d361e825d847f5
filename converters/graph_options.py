"""Options for the wait-for graph, of trace-convert and of the commands that record who ends waits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from .base.errors import StallscopeError
from .base.rights import sudo_owner
from .writers import output
from .writers.base.options import WriteOptions

if TYPE_CHECKING:
    from .model import Profile

GROUP = ("--graph", "--by", "--idle")


def options(function: Callable[..., Any]) -> Callable[..., Any]:
    """--graph --by --idle: ``graph``, ``by``, ``idle``."""
    decorators = [
        click.option(
            "--graph",
            metavar="PATH",
            help="Also write who waits for whom as .svg (drawn by graphviz), .dot, .graphml or .graph.json.",
        ),
        click.option(
            "--by",
            type=click.Choice(["thread", "process"]),
            default="thread",
            show_default=True,
            help="A node of that graph is a thread, or a process.",
        ),
        click.option("--idle", is_flag=True, help="Also show threads that only wait for work, if wakers are recorded."),
    ]
    for decorator in reversed(decorators):
        function = decorator(function)
    return function


def critical_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """--critical, which commands that trace have: says why a saved profile cannot tell a path."""
    return click.option("--critical", hidden=True, expose_value=False, callback=_refuse_path)(function)


def _refuse_path(_context: click.Context, _parameter: click.Parameter, value: str | None) -> None:
    if value is not None:
        raise StallscopeError(
            "a saved profile has sums of waits, a critical path needs each switch and wake-up with its time",
            "record the path: trace-wakeup --critical ID -o path.pb.gz; trace-convert then shows that file's path",
        )


def check(given: Mapping[str, Any]) -> None:
    """StallscopeError if the graph could not be written."""
    if given.get("graph"):
        output.check_graph(given["graph"], force=given["force"])


def writing(profile: Profile, wanted: WriteOptions, given: Mapping[str, Any]) -> Sequence[Callable[[], None]]:
    """Function that writes the graph that ``given`` asks for, if it asks for one; StallscopeError if that fails."""
    if not given.get("graph"):
        return ()
    write = partial(output.write_graph, profile, given["graph"], wanted, force=given["force"], owner=sudo_owner())
    return (write,)
