"""Options of a scan that goes on: --watch --keep --keep-bytes --when --pause --live."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from .options import Decorator, Duration, apply

REFRESH = 2.0
"""Seconds of an interval of --live."""

if TYPE_CHECKING:
    _Bytes = click.ParamType[int]
else:
    _Bytes = click.ParamType


class Size(_Bytes):
    """``500M`` or ``2G``: a number of bytes."""

    name = "SIZE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Bytes. Usage error for anything else."""
        match = re.fullmatch(r"([0-9]{1,9})([KMGT])B?", str(value))
        if not match or not int(match[1]):
            self.fail(f"{value!r} is not a size such as 500M or 2G", param, ctx)
        return int(match[1]) << {"K": 10, "M": 20, "G": 30, "T": 40}[match[2]]


def watch_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """--watch --live --when --pause --keep --keep-bytes: what `prepare` reads."""
    options: list[Decorator] = [
        click.option(
            "--watch",
            type=Duration(),
            metavar="DURATION",
            help="Go on, and print a line of verdicts for each interval of so many seconds (60s, 5m), until Ctrl-C. "
            "With -o, each interval is kept: give -o a name with a time in it, -o 'scan-%Y%m%d-%H%M%S.d'.",
        ),
        click.option(
            "--live",
            is_flag=True,
            help="Go on, and show the verdicts on a screen that refreshes, like top: every 2 s, or as --watch says.",
        ),
        click.option(
            "--when",
            metavar="CONDITION",
            help="Keep only intervals in which this holds for a process, such as 'blocked(main) > 50%': "
            "docs/scan.md describes it.",
        ),
        click.option(
            "--pause",
            type=Duration(),
            default="60s",
            show_default=True,
            metavar="DURATION",
            help="Minimum time between two intervals that --when keeps.",
        ),
        click.option(
            "--keep",
            type=click.IntRange(1, 100_000),
            default=20,
            show_default=True,
            metavar="N",
            help="Number of intervals that are kept: the oldest go first.",
        ),
        click.option(
            "--keep-bytes",
            type=Size(),
            default="2G",
            show_default=True,
            metavar=Size.name,
            help="Bytes that kept intervals may take together: the oldest go first.",
        ),
    ]
    return apply(options, function)


def prepare(given: dict[str, Any]) -> bool:
    """Sets ``every``, the seconds of an interval, if the scan goes on; returns whether it does. Usage errors."""
    if given["every"]:
        raise click.UsageError("trace-scan has --watch in place of --every: it also prints a line for each interval")
    if not (given["watch"] or given["live"]):
        if given["when"]:
            raise click.UsageError("--when judges the intervals of a scan that goes on: add --watch 10s, or --live")
        return False
    if given["live"] and given["as_json"]:
        raise click.UsageError("--live is a screen, --json is for programs: leave out one of them")
    given["every"] = given["watch"] or REFRESH
    return True
