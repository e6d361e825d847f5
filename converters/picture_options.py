"""The options of ``trace-convert`` for the look of a picture (SVG, HTML)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import click

from .writers.base.options import WriteOptions
from .writers.colors.background import TINTS
from .writers.colors.palette import PALETTES

_DEFAULT = WriteOptions()
GROUP = [
    "--subtitle", "--note", "--unit", "--palette", "--inverted", "--reverse", "--flamechart", "--negate", "--total",
    "--factor", "--background", "--width", "--min-width", "--font", "--font-size", "--height",
]  # fmt: skip
"""`options`, as the help shows them."""


def _least(ctx: click.Context, param: click.Parameter, value: str) -> tuple[float, float]:
    """``0.5``: px; ``1%``: of the whole. The value is (px, share), one of them 0."""
    is_share = value.endswith("%")
    try:
        number = float(value.removesuffix("%"))
    except ValueError:
        number = math.nan
    if not 0 <= number <= (100 if is_share else math.inf) or math.isinf(number):
        text = f"{value!r} is no width: 0.5 is half a pixel, 1% a hundredth of the whole"
        raise click.BadParameter(text, ctx, param)
    return (0.0, number / 100) if is_share else (number, 0.0)


_OPTIONS = [
    click.option("--subtitle", default="", metavar="TEXT", help="The line under the title."),
    click.option("--note", "notes", multiple=True, metavar="TEXT", help="A line of text (repeatable)."),
    click.option(
        "--unit",
        default="",
        metavar="UNIT",
        help="The unit of the values, such as samples or pages; nanoseconds and bytes are scaled.",
    ),
    click.option(
        "--palette",
        type=click.Choice(PALETTES),
        metavar="NAME",
        help=f"What the colours show. Default: what suits the measured quantity. One of {', '.join(PALETTES)}.",
    ),
    click.option("--inverted", is_flag=True, help="Icicles, the roots on top."),
    click.option(
        "--reverse", is_flag=True, help="Like --callers, but for all processes together: they become the leaves."
    ),
    click.option(
        "--flamechart",
        is_flag=True,
        help="svg: the x axis is time: calls of inputs with times, or folded lines in their order.",
    ),
    click.option("--negate", is_flag=True, help="With --diff: blue has grown, red has shrunk."),
    click.option(
        "--total",
        type=float,
        default=0.0,
        metavar="N",
        help="svg: the value that the full width represents. Default: the sum.",
    ),
    click.option(
        "--factor",
        type=float,
        default=1.0,
        metavar="F",
        help="svg: multiply the printed values by F, and name their unit with --unit.",
    ),
    click.option("--background", default="", metavar="NAME", help=f"svg: {', '.join(TINTS)}, or #rrggbb."),
    click.option(
        "--width",
        type=int,
        default=_DEFAULT.width,
        metavar="PX",
        help="svg: the width in viewers that do not run scripts; 1200.",
    ),
    click.option(
        "--min-width",
        callback=_least,
        default=str(_DEFAULT.min_width),
        metavar="PX|%",
        help="svg, table: leave out narrower frames; 0.1, or 0.5% of the whole (table: always %).",
    ),
    click.option("--font", default="", metavar="NAME", help="svg: the font of names. Default: a monospaced one."),
    click.option(
        "--font-size", type=int, default=_DEFAULT.font_size, metavar="PX", help="svg: the font size of names; 12."
    ),
    click.option(
        "--height",
        type=int,
        default=0,
        metavar="PX",
        help="svg: the height of a row. Default: what the names need, 18.",
    ),
]


def options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: the options that `wanted` understands."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def wanted(given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `WriteOptions` that the options ask for."""
    names = (
        "subtitle", "notes", "unit", "inverted", "reverse", "flamechart", "negate", "total", "factor", "background",
        "width", "font", "font_size", "height",
    )  # fmt: skip
    px, part = given["min_width"]
    fields = {name: given[name] for name in names}
    return {**fields, "palette": given["palette"] or "", "min_width": px, "min_share": part}
