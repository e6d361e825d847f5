"""Options that say which functions' calls are traced."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any

import click

from ...converters.base.errors import StallscopeError
from ...converters.base.text import printable, shortened
from ..images.files import HOST
from ..probe_targets.collectives import Collectives
from ..probe_targets.wanted import Library, Wanted, is_safe

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
_LONGEST = 80
"""Characters of a C++ name."""


def api_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """--api --launches --lib --sym: what `make_wanted` is made from."""
    decorators: list[Decorator] = [
        click.option("--api", metavar="REGEX", help="Also trace these functions of CUDA's runtime and driver."),
        click.option("--launches", is_flag=True, help="Also trace launches of kernels: there are many."),
        click.option(
            "--lib",
            "libraries",
            multiple=True,
            metavar="PATH",
            help="Also trace functions of this library or program (repeatable; a name without a folder is any file of "
            "that name). Needs --sym.",
        ),
        click.option(
            "--sym",
            "symbols",
            metavar="REGEX",
            help="The functions of --lib, of a C API: an exception that leaves one, or a change of stacks in one "
            "(greenlets, coroutines), ends the program; a thread that is cancelled in one has no cleanup.",
        ),
    ]
    for decorator in reversed(decorators):
        function = decorator(function)
    return function


def collective_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """--lib --collective-limit: what `make_collectives` is made from."""
    decorators: list[Decorator] = [
        click.option(
            "--lib",
            "libraries",
            multiple=True,
            metavar="PATH",
            help="Also look for NCCL's and MPI's functions in this library or program (repeatable; a name without a "
            "folder is any file of that name).",
        ),
        click.option(
            "--collective-limit",
            type=click.IntRange(1),
            metavar="N",
            default=2_000_000,
            show_default=True,
            help="Calls that are kept at most, the first ones.",
        ),
    ]
    for decorator in reversed(decorators):
        function = decorator(function)
    return function


def make_collectives(given: Mapping[str, Any]) -> Collectives:
    """Functions of collectives from the values of `collective_options`. StallscopeError for a library that is not
    there."""
    return Collectives(libraries=tuple(find_library(path, None) for path in given["libraries"]))


def make_wanted(given: Mapping[str, Any]) -> Wanted:
    """Wanted functions from the values of `api_options`. Usage errors, and StallscopeError for a library without such
    functions."""
    if bool(given["libraries"]) != bool(given["symbols"]):
        raise click.UsageError("--lib PATH and --sym REGEX go together: give both")
    api, symbols = _expression("--api", given["api"]), _expression("--sym", given["symbols"])
    return Wanted(api, given["launches"], tuple(find_library(path, symbols) for path in given["libraries"]), symbols)


def _expression(option: str, text: str | None) -> re.Pattern[str] | None:
    try:
        return re.compile(text) if text else None
    except (re.error, OverflowError, RecursionError) as error:
        raise click.BadParameter(f"{text!r} is not a regular expression: {error}", param_hint=f"'{option}'") from None


def find_library(path: str, symbols: re.Pattern[str] | None) -> Library:
    """A library that the user named. StallscopeError if there is none, or if it has no such functions."""
    if not path:
        raise click.BadParameter("a path, or the name of a file, is missing", param_hint="'--lib'")
    try:
        library = Library.at(path)
    except OSError as error:
        raise StallscopeError(
            f"there is no library {printable(path)}: {error.strerror}",
            "give a path, or the name of a file that processes map: grep -o '/.*[.]so.*' /proc/PID/maps",
            exit_code=2,
        ) from None
    if library.identity and symbols:
        _check_symbols(library.path, symbols)
    return library


def _check_symbols(path: str, symbols: re.Pattern[str]) -> None:
    """StallscopeError if the file has no such function."""
    from ..images.elf import ElfError, ElfFile, FileSource
    from ..images.functions import function_names, is_of_go

    shown = printable(path)
    try:
        fd = HOST.open_regular(path)
        try:
            elf = ElfFile(FileSource(fd))
            names, of_go = function_names(elf), is_of_go(elf)
        finally:
            os.close(fd)
    except (OSError, ValueError, ElfError) as error:
        why = getattr(error, "strerror", None) or error
        raise StallscopeError(f"{shown}: {why}", "give a shared library or a program", exit_code=2) from None
    if not elf.is_64:
        raise StallscopeError(f"{shown} is 32-bit code, which is not traced", "give a 64-bit library", exit_code=2)
    if of_go:
        raise StallscopeError(
            f"Go made {shown}, and a probe on the return of a function could end the program",
            "give a library that was not built with Go",
            exit_code=2,
        )
    matching = [name for name in names if symbols.search(name)]
    if any(map(is_safe, matching)):
        return
    if matching:
        from ...converters.names.demangle import Demangler

        name = printable(shortened(Demangler().demangle(matching[:1])[matching[0]], _LONGEST))
        raise StallscopeError(
            f"{shown}: a probe on the return of {name} could end the program",
            "choose functions with C names that return once: not those of C++, Rust or Go, nor setjmp and its like",
            exit_code=2,
        )
    nearest = Wanted(symbols=symbols).nearest(filter(is_safe, names))
    has = f"it has {', '.join(map(printable, nearest))}" if nearest else f"`nm -D {shown}` lists what it has"
    raise StallscopeError(f"{shown} has no function that {symbols.pattern!r} matches", has, exit_code=2)
