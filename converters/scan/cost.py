"""Lines of a report on what the scan cost, and what was left out because of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from ..base.text import json_text
from ..base.units import share
from ..facts import thresholds
from ..model.remarks import Comment, Shed, TraceCost
from ..phrases.remarks import shed_in_words, shed_since

_MILLION = 1_000_000
_AT_LEAST = "What was left out was measured until then: its shares are at least those told."
_COVERED = {"waker stacks": "wakers"}
"""Things that are not told if something else that was left out at the same time includes them."""


def cost_lines(comments: Iterable[Comment]) -> list[str]:
    """Sentences on the cost, ``Tracing cost 2.1 % of the traced processes' time.``, and on what was left out and when;
    none if it was not measured."""
    comments = list(comments)
    lines = [f"{_told(each)}." for each in comments if isinstance(each, TraceCost) and each.whole]
    shed = [each for each in comments if isinstance(each, Shed)]
    at_least = "" if all(each.before for each in shed) else f" {_AT_LEAST}"
    return lines + [f"{text[:1].upper()}{text[1:]}.{at_least}" for text in _left_out(shed)]


def cost_notes(comments: Iterable[Comment]) -> list[str]:
    """Notes for a line on an interval: on a cost above the budget, and on what was left out and when."""
    comments = list(comments)
    costs = [_told(each) for each in comments if isinstance(each, TraceCost) and each.whole and not each.is_within]
    notes = [f"{each[:1].lower()}{each[1:]}" for each in costs]
    return notes + list(_left_out(each for each in comments if isinstance(each, Shed)))


def _told(cost: TraceCost) -> str:
    of = "of the traced processes' time" if cost.of >= cost.length else "of the time of one core"
    budget = "" if cost.is_within else f", more than the budget of {cost.budget / 10_000:g} %"
    text = f"Tracing cost {share(cost.probes, cost.whole)} {of}{budget}"
    if not cost.length or cost.tracer < thresholds.TRACER_TOLD * cost.length:
        return text
    return f"{text}; beside it, the tracer itself ran for {share(cost.tracer, cost.length)} of the time of one core"


def _left_out(found: Iterable[Shed]) -> Iterator[str]:
    steps = []
    for _, group in groupby(found, lambda each: each.at - each.before):
        together = list(group)
        whats = {each.what for each in together}
        words = [shed_in_words(each) for each in together if _COVERED.get(each.what) not in whats]
        steps.append(f"{shed_since(together[0])}: {', '.join(words)}")
    if steps:
        yield "; ".join(steps)


def cost_json(comments: Iterable[Comment]) -> dict[str, Any]:
    """Keys of the report: ``cost``, null if it is not known, and ``shed``, what was left out, in order. Times in ns,
    shares as fractions of 1."""
    comments = list(comments)
    costs = [each for each in comments if isinstance(each, TraceCost)]
    return {
        "cost": _cost(costs) if costs else None,
        "shed": [_shed(each) for each in comments if isinstance(each, Shed)],
    }


def _cost(costs: list[TraceCost]) -> dict[str, Any]:
    """Cost of several traces together, if they were merged."""
    parts: dict[str, int] = {}
    for cost in costs:
        for name, part in cost.parts:
            parts[name] = parts.get(name, 0) + part
    time, whole = sum(cost.probes for cost in costs), sum(cost.whole for cost in costs)
    return {
        "time_ns": time,
        "traced_ns": sum(cost.of for cost in costs),
        "of_ns": whole,
        "share": round(time / whole, 6) if whole else None,
        "tracer_ns": sum(cost.tracer for cost in costs),
        "budget": max(cost.budget for cost in costs) / _MILLION,
        "parts_ns": {json_text(name): part for name, part in parts.items()},
    }


def _shed(each: Shed) -> dict[str, Any]:
    return {
        "what": json_text(each.what),
        "at_ns": each.at - each.before,
        "times_rarer": each.times or None,
        "within_ns": each.within or None,
        "functions": [{"name": json_text(name), "calls_per_second": rate} for name, rate in each.functions],
        "more_functions": each.more,
    }
