"""Options of ``--engine stap``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from .options import Decorator, apply


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
