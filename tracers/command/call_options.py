"""Options of the table of calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from ...converters.model.display import CallsView

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
SORTS = ("self", "total", "ratio", "calls", "min", "max", "ave", "p50", "p99", "cpu", "blocked", "queued", "errors")
BY = ("function", "process", "thread")


def call_options(what: str) -> Decorator:
    """--sort --by --rows --histograms: for `make_view`. ``what``: what a row is of, such as a function."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        decorators: list[Decorator] = [
            click.option(
                "--sort",
                type=click.Choice(SORTS),
                default=SORTS[0],
                show_default=True,
                metavar="COLUMN",
                help=f"Sort the table of calls by this column, the largest first: {', '.join(SORTS)}.",
            ),
            click.option(
                "--by",
                type=click.Choice(BY),
                default=BY[0],
                show_default=True,
                help=f"A row of the table per {what}, or also per process, or per thread.",
            ),
            click.option(
                "--rows", type=click.IntRange(1), metavar="N", help="Maximum number of rows of the table; 15."
            ),
            click.option(
                "--histograms",
                type=click.IntRange(0),
                metavar="N",
                help=f"Print the latencies as a histogram for the first N {_several(what)} by time; 2, where they fit.",
            ),
        ]
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


def _several(what: str) -> str:
    return "functions" if what == "function" else "calls"


def make_view(given: Mapping[str, Any]) -> CallsView | None:
    """View from the values of `call_options`; None of a command that has no such options."""
    if "sort" not in given:
        return None
    from ...converters.model.display import CallsView

    return CallsView(given["sort"], given["by"], given["rows"], given["histograms"], bool(given.get("over")))
