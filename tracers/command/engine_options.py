"""``--engine``, and the options that say how an engine works."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...converters.base.errors import StallscopeError
from ..engines.auto import Auto
from ..engines.limits import MEMORY, MOST_STACK, STACK
from ..engines.protocol import Engine
from .engines import ENGINES, LIMITED, OnDemand, made
from .options import Decorator, apply
from .stap_options import stap_options

if TYPE_CHECKING:
    _Mode = click.ParamType[str]
else:
    _Mode = click.ParamType

AUTO = "auto"


class CallGraph(_Mode):
    """``fp``, ``dwarf`` or ``dwarf,SIZE``, as perf record has it."""

    name = "MODE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        given = str(value)
        mode, comma, size = given.partition(",")
        if mode not in ("dwarf", "fp") or (comma and (mode == "fp" or not re.fullmatch(r"[0-9]{1,9}", size))):
            self.fail(f"{given!r} is not one of dwarf, dwarf,SIZE and fp", param, ctx)
        if comma and (not 8 <= int(size) <= MOST_STACK or int(size) % 8):
            self.fail(f"{size} is not a multiple of 8 from 8 to {MOST_STACK}", param, ctx)
        return given


def engine_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """--engine -U -K --btf --table-size --buffer --memory --unwind-memory --no-wait: how the probes work."""
    options: list[Decorator] = [
        click.option(
            "--engine",
            type=click.Choice((AUTO, *ENGINES)),
            default=AUTO,
            show_default=True,
            metavar="ENGINE",
            help=f"What captures: {', '.join(ENGINES)}; auto: the first of them that can. trace-doctor lists them.",
        ),
        click.option(
            "--call-graph",
            type=CallGraph(),
            help="How --engine perf takes user stacks: dwarf, by programs' tables (default), dwarf,SIZE, from so many "
            f"bytes of stack instead of {STACK}, or fp, by frame pointers: cheaper.",
        ),
        click.option("-U", "--user-stacks-only", "user_only", is_flag=True, help="No kernel stacks."),
        click.option("-K", "--kernel-stacks-only", "kernel_only", is_flag=True, help="No user stacks."),
        click.option(
            "--btf",
            type=click.Path(path_type=Path),
            help="Type information (BTF) of this kernel, if it has none itself.",
        ),
        click.option(
            "--table-size",
            type=click.IntRange(1024, 1 << 22),
            default=1 << 16,
            show_default=True,
            help="Distinct waits, and distinct stacks, that the kernel side can hold until they are read.",
        ),
        click.option(
            "--buffer",
            "buffer_mb",
            type=click.Choice(["1", "2", "4", "8", "16", "32", "64", "128"]),
            default="8",
            show_default=True,
            help="MB of ring buffer for new stacks.",
        ),
        click.option(
            "--memory",
            "memory_mb",
            type=click.IntRange(128, 1 << 20),
            default=MEMORY >> 20,
            show_default=True,
            help="MB of memory that this command may take, about: what is rare beyond it becomes [other stacks].",
        ),
        click.option(
            "--unwind-memory",
            "unwind_mb",
            type=click.IntRange(0, 4096),
            default=256,
            show_default=True,
            help="Maximum MB of kernel memory for unwind tables; 0: walk user stacks by frame pointers.",
        ),
        click.option(
            "--no-wait",
            is_flag=True,
            help="Begin at once, even if unwind tables still have to be compiled: the first stacks may be cut short.",
        ),
    ]
    return stap_options(apply(options, function))


def make_engine(given: Mapping[str, Any]) -> Engine:
    """The engine, from the values of `engine_options`. Usage error when no stacks would be left, StallscopeError for an
    option that the engine does not have. ``auto`` takes only engines that have all of the options."""
    if given["user_only"] and given["kernel_only"]:
        raise click.UsageError("-U leaves out the kernel's stacks and -K the user's: give at most one of them")
    chosen = given["engine"]
    if chosen != AUTO:
        if lacking := ENGINES[chosen].lacking(given):
            raise StallscopeError(
                f"the engine {chosen} does not have {lacking[0]}", f"leave out {lacking[0]} or --engine", exit_code=2
            )
        return made(chosen, given)
    having = {name: entry for name, entry in ENGINES.items() if not entry.lacking(given)}
    able = [name for name, entry in having.items() if entry.in_turn]
    if not able:
        options = [option for option, key in LIMITED.items() if given.get(key)]
        raise click.UsageError(f"no engine has {' and '.join(options)}: leave out one of them")
    if len(able) == 1:  # the only one that an option is for: if the option is wrong, that is the answer
        return made(able[0], given)
    never = [name for name, entry in having.items() if not entry.in_turn]
    return Auto(OnDemand(able, given), OnDemand(never, given))
