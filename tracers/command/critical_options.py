"""The option for a critical path."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...converters.writers.output import is_graph
from ..measures.timeline import Timeline

if TYPE_CHECKING:
    _Type = click.ParamType[int]
else:
    _Type = click.ParamType


def critical_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """--critical: ``critical``, a thread's id or `COMMANDS_OWN`; None without."""
    option = click.option(
        "--critical",
        type=_Thread(),
        metavar=_Thread.name,
        help="Record switches and wake-ups one by one, and tell the critical path of this process or thread (command: "
        "of the COMMAND): what it did, or the thread that it waited for, and so on. The outputs show the path.",
    )
    return option(function)


COMMANDS_OWN = 0


class _Thread(_Type):
    """The id of a process or thread, or ``command``."""

    name = "ID|command"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Usage error for anything else."""
        if value == "command":
            return COMMANDS_OWN
        if not re.fullmatch(r"[1-9][0-9]{0,8}", str(value)):
            self.fail(f"{value!r} is not the id of a process or thread, nor 'command'", param, ctx)
        return int(value)


def make_events(given: Mapping[str, Any]) -> tuple[Timeline, ...]:
    """The measure of events, if --critical needs it. Usage errors where it cannot be told."""
    if given["critical"] is None:
        return ()
    if given["critical"] == COMMANDS_OWN and not given["command"]:
        raise click.UsageError("--critical command is for a COMMAND: give the id of a process or thread")
    if given["merge"]:
        raise click.UsageError("--merge puts processes together, a path goes through each: leave out one of them")
    if given.get("graph") or any(map(is_graph, given["outputs"])):
        raise click.UsageError("--critical shows a path, which has no wait-for graph: leave out one of them")
    if given["critical"] != COMMANDS_OWN and not Path(f"/proc/{given['critical']}").exists():
        raise click.UsageError(f"--critical: there is no process or thread {given['critical']}: has it ended?")
    return (Timeline(every_switch=given["everything"]),)
