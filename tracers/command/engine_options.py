"""``--engine``, and the options that say how an engine works."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...converters.base.errors import StallscopeError
from ..engines.auto import Auto
from ..engines.bcc.engine import Bcc
from ..engines.ebpf.engine import Ebpf
from ..engines.ebpf.probes import ProbeOptions
from ..engines.eu_stack.engine import EuStack
from ..engines.perf.engine import Perf
from ..engines.perf.options import MOST_STACK, STACK, How
from ..engines.protocol import Engine
from ..engines.stap.engine import How as StapHow
from ..engines.stap.engine import Stap
from .options import Decorator, apply
from .stap_options import require_elf, stap_options

if TYPE_CHECKING:
    _Mode = click.ParamType[str]
else:
    _Mode = click.ParamType

AUTO = "auto"
_IN_TURN = ("libbpf", "bcc", "stap", "perf")
"""The order in which ``auto`` tries them. It never chooses one that stops processes."""
_ONLY: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "-K": ("kernel_only", _IN_TURN),
    "--call-graph": ("call_graph", ("perf",)),
    "--btf": ("btf", ("libbpf",)),
    "--stap-module": ("stap_module", ("stap",)),
    "--stap-compile-only": ("stap_compile_only", ("stap",)),
    "--stap-build": ("stap_build", ("stap",)),
    "--stap-symbols": ("stap_files", ("stap",)),
}
"""Options that not every engine has: their key among the values, and the engines that have them."""


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
            default=ProbeOptions.memory >> 20,
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


def all_engines(btf: Path | None = None) -> list[Engine]:
    """Every engine, for those who want to know what it can do."""
    return [Ebpf(btf=btf), Bcc(), Stap(), Perf(), EuStack()]


def make_engine(given: Mapping[str, Any]) -> Engine:
    """The engine, from the values of `engine_options`. Usage error when no stacks would be left, StallscopeError for an
    option that the engine does not have. ``auto`` takes only engines that have all of the options."""
    if given["user_only"] and given["kernel_only"]:
        raise click.UsageError("-U leaves out the kernel's stacks and -K the user's: give at most one of them")
    chosen = given["engine"]
    if chosen != AUTO:
        if lacking := _lacking(chosen, given):
            raise StallscopeError(
                f"the engine {chosen} does not have {lacking[0]}", f"leave out {lacking[0]} or --engine", exit_code=2
            )
        return ENGINES[chosen](given)
    able = [name for name in _IN_TURN if not _lacking(name, given)]
    if not able:
        options = [option for option, (key, _) in _ONLY.items() if given[key]]
        raise click.UsageError(f"no engine has {' and '.join(options)}: leave out one of them")
    if len(able) == 1:  # the only one that an option is for: if the option is wrong, that is the answer
        return ENGINES[able[0]](given)
    never = () if _lacking(EuStack.name, given) else (EuStack(),)
    return Auto(tuple(ENGINES[name](given) for name in able), never)


def _lacking(engine: str, given: Mapping[str, Any]) -> list[str]:
    """Options that were given and that the engine does not have."""
    return [option for option, (key, engines) in _ONLY.items() if given[key] and engine not in engines]


def _libbpf(given: Mapping[str, Any]) -> Engine:
    return Ebpf(
        user_stacks=not given["kernel_only"],
        kernel_stacks=not given["user_only"],
        btf=given["btf"],
        table_entries=given["table_size"],
        buffer_bytes=int(given["buffer_mb"]) << 20,
        unwind_bytes=given["unwind_mb"] << 20,
        memory=given["memory_mb"] << 20,
        python=given["python"] != "no" or given["native_python"],
    )


def _bcc(given: Mapping[str, Any]) -> Engine:
    return Bcc(not given["kernel_only"], not given["user_only"], given["table_size"])


def _perf(given: Mapping[str, Any]) -> Engine:
    mode, _, stack = (given["call_graph"] or "dwarf").partition(",")
    size = int(given["buffer_mb"]) << 20
    return Perf(How(not given["kernel_only"], not given["user_only"], mode == "dwarf", size, int(stack or STACK)))


def _stap(given: Mapping[str, Any]) -> Engine:
    require_elf(given["stap_files"])
    return Stap(
        StapHow(
            user_stacks=not given["kernel_only"],
            kernel_stacks=not given["user_only"],
            module=given["stap_module"],
            write=given["stap_compile_only"],
            build=given["stap_build"],
            files=tuple(given["stap_files"]),
        )
    )


def _eu_stack(_: Mapping[str, Any]) -> Engine:
    return EuStack()


ENGINES: dict[str, Callable[[Mapping[str, Any]], Engine]] = {
    "libbpf": _libbpf,
    "bcc": _bcc,
    "stap": _stap,
    "perf": _perf,
    "eu-stack": _eu_stack,
}
"""By name: how an engine is made from the options."""
