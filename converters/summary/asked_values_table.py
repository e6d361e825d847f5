"""Answers as tables: sums, values and how often each was there, and the distribution of values as bcc prints it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..base.text import printable, shortened
from ..base.units import count, share
from ..facts import thresholds
from ..model.asked_values import AskedValues
from .tables import table

if TYPE_CHECKING:
    from rich.console import RenderableType

_STARS = 40
"""Width of the longest bar, as in bcc."""
_LONGEST = 120
"""Characters of a function's name or an expression."""


def answer_blocks(answers: Sequence[AskedValues], top: int) -> list[RenderableType]:
    """The sums in one table, then a histogram for each of the ``top`` functions with most values, per question."""
    from rich.text import Text

    blocks: list[RenderableType] = []
    sums = sorted((each for each in answers if each.ask == "sum"), key=lambda each: -each.count)
    if sums:
        made = table("Count", "Sum", "Mean", last="Expression")
        for each in sums[:top]:
            made.add_row(count(each.count), f"{each.sum:,}", f"{each.mean:,.1f}", Text(_what(each)))
        if len(sums) > top:
            rest = sums[top:]
            made.add_row(count(sum(each.count for each in rest)), "", "", Text(f"of {len(rest)} more functions"))
        blocks += [Text(), made]
    hists = sorted((each for each in answers if each.ask == "hist"), key=lambda each: -each.count)
    for each in hists[:top]:
        blocks += [Text(), Text(f"{_what(each)}: mean {each.mean:,.1f}", style="bold"), _histogram(each)]
    if len(hists) > top:
        blocks.append(Text(f"histograms of {len(hists) - top} more functions: --json has them"))
    return [*blocks, *_count_blocks(answers, top)]


def _count_blocks(answers: Sequence[AskedValues], top: int) -> Iterator[RenderableType]:
    """A table of the most frequent values for each of the ``top`` functions, per question."""
    from rich.text import Text

    counts = sorted((each for each in answers if each.ask == "count-by"), key=lambda each: -each.count)
    for each in counts[:top]:
        made = table("Count", "Ratio", last="Value")
        shown = each.values[: max(top, thresholds.VALUES_SHOWN)]
        rest = each.count - sum(number for _, number in shown)
        rows = [(shortened(printable(value), _LONGEST), number) for value, number in shown]
        for value, number in [*rows, ("[others]", rest)] if rest else rows:
            made.add_row(count(number), share(number, each.count), Text(value))
        yield from (Text(), Text(f"{_what(each)}: how often each value", style="bold"), made)
    if len(counts) > top:
        yield Text(f"values of {len(counts) - top} more functions: --json has them")


def _what(each: AskedValues) -> str:
    expression, name = (printable(shortened(text, _LONGEST)) for text in (each.text, each.name))
    return f"{expression} of {name} {printable(each.library)}"


def _histogram(each: AskedValues) -> RenderableType:
    made = table("value", "count", last="distribution")
    most = max((number for _, _, number in each.buckets), default=0)
    for low, high, number in each.buckets:
        stars = "*" * (number * _STARS // most)
        made.add_row(f"{low}" if low == high else f"{low} -> {high}", count(number), f"|{stars:<{_STARS}}|")
    return made
