"""Steps of threads for a page as plain data: a row for each thread that makes some. Texts are printable."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...base.text import printable
from ...facts.identity import shown_id
from ..report import Report
from ..step_lines import evidence, who
from ..steps import Pace

ROWS = 1_000
"""Rows of a page."""


def steps_data(report: Report) -> list[dict[str, Any]]:
    """Rows, those of one function or place together."""
    return list(_rows(report))[:ROWS]


def _rows(report: Report) -> Iterator[dict[str, Any]]:
    for name, of in report.steps.items():
        for pace in of:
            yield {"name": printable(name), "evidence": printable(evidence(name, pace)), **_row(pace)}


def _row(pace: Pace) -> dict[str, Any]:
    steps, reader = pace.steps, pace.reader
    spent = steps.steps
    return {
        "who": printable(f"{steps.process} ({who(pace)}, thread {shown_id(steps.tid)})"),
        "count": spent.count,
        "rate": pace.per_second,
        "median": steps.median,
        "p90": steps.p90,
        "max": steps.max,
        "wall": spent.wall,
        "on_cpu": spent.on_cpu,
        "runnable": spent.runnable,
        "loader": pace.loader_each,
        "reader": reader and [len(reader.makers), reader.work, reader.at_most],
        "waits": [[printable(" → ".join(wait.site.frames)) or "-", wait.time] for wait in spent.waits],
    }
