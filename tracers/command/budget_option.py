"""``--budget``: what a trace may cost."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    _Share = click.ParamType[float]
else:
    _Share = click.ParamType

DEFAULT = 0.05
"""Share of the traced threads' time."""


class Budget(_Share):
    """``3%``: a share, as a fraction of 1. It is above 0 and at most 1."""

    name = "PERCENT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        given = str(value)
        number = given.strip().removesuffix("%").rstrip()
        if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", number, re.ASCII):
            self.fail(f"{given!r} is not a share such as 3%", param, ctx)
        share = float(number) / 100
        if not 0 < share <= 1 or not math.isfinite(share):
            self.fail(f"{given!r} is not above 0% and at most 100%", param, ctx)
        return share


budget_option = click.option(
    "--budget",
    type=Budget(),
    help="What tracing may cost, as a share of the time that the traced threads run: if it costs more, samples get "
    f"rarer, then hot probes leave, and the report says which and when. [default: {DEFAULT:.0%}]",
)


def of(given: Mapping[str, Any]) -> float:
    """The budget that was given, or else `DEFAULT`."""
    budget: float | None = given["budget"]
    return budget or DEFAULT
