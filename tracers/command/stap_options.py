"""Options of ``--engine stap``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

from ...converters.base.errors import StallscopeError
from ...converters.base.text import printable
from .options import Decorator, apply

_ELF = b"\x7fELF"


def stap_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """--stap-module --stap-compile-only --stap-build --stap-symbols."""
    options: list[Decorator] = [
        click.option(
            "--stap-module",
            type=click.Path(path_type=Path),
            metavar="KO",
            help="With --engine stap: a module that --stap-compile-only has written for this kernel.",
        ),
        click.option(
            "--stap-compile-only",
            type=click.Path(path_type=Path),
            metavar="KO",
            help="With --engine stap: write the module to this file, and trace nothing.",
        ),
        click.option(
            "--stap-build",
            type=click.Path(path_type=Path),
            metavar="DIR",
            help="With --stap-compile-only: build folder of the other kernel, from its package of headers.",
        ),
        click.option(
            "--stap-symbols",
            "stap_files",
            type=click.Path(exists=True, dir_okay=False),
            multiple=True,
            metavar="FILE",
            help="With --engine stap: one more program or library whose functions stacks can show (repeatable).",
        ),
    ]
    return apply(options, function)


def require_elf(files: Iterable[str]) -> None:
    """StallscopeError if one of the files of --stap-symbols is no program and no library."""
    for path in files:
        try:
            with open(path, "rb") as file:
                is_elf = file.read(len(_ELF)) == _ELF
        except OSError as error:
            raise StallscopeError(
                f"cannot read {printable(path)}: {error.strerror}",
                "give --stap-symbols a file that you may read",
                exit_code=2,
            ) from None
        if not is_elf:
            raise StallscopeError(
                f"{printable(path)} is not an ELF file: it has no functions and tables",
                "give --stap-symbols a program or a library; of a script, its interpreter (readlink -f)",
                exit_code=2,
            )
