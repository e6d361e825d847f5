"""Meetings of ranks for a page as plain data: a row for each rank of each communicator. Texts are printable."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...base.text import printable
from ...base.units import count, plural
from ...facts import thresholds
from ...facts.identity import kernel_id
from ...model.collectives import UNKNOWN, CollectiveRank, Collectives
from ...model.steps import Spent
from ...phrases.collectives import does, kind_text
from ...summary.collectives_table import known_by, met_in
from ..report import Report

ROWS = 1_000
"""Rows of a page."""


def meetings_data(report: Report) -> list[dict[str, Any]]:
    """Rows, those of one communicator together, the rank that came last most often first."""
    return [row for of in report.facts.collectives for row in _rows(of)][:ROWS]


def _rows(of: Collectives) -> Iterator[dict[str, Any]]:
    name = printable(f"{of.library} communicator of {plural(len(of.ranks), 'rank')}")
    kinds = [
        [printable(kind_text(kind)), kind.meetings, kind.spread, kind.longest]
        for kind in of.kinds[: thresholds.KINDS_KEPT]
    ]
    for each in sorted(of.ranks, key=lambda rank: (-rank.last, rank.rank, rank.pid)):
        yield {"name": name, "met": printable(met_in(of) + known_by(of)), "kinds": kinds, **_row(of, each)}


def _row(of: Collectives, rank: CollectiveRank) -> dict[str, Any]:
    number = f"rank {rank.rank} of " if rank.rank != UNKNOWN else ""
    between = rank.between
    return {
        "who": printable(f"{number}{rank.process} (pid {kernel_id(rank.pid)})"),
        "last": rank.last / of.meetings if of.meetings else None,
        "late": rank.late,
        "waited": rank.waited,
        "calls": rank.calls,
        "between": between and between.mean,
        "waits": _waits(between) if between and between.wall else [],
        "standing": printable(_standing(of, rank)),
    }


def _waits(between: Spent) -> list[list[Any]]:
    """Places, and the share of each."""
    return [[printable(" → ".join(wait.site.frames)) or "-", wait.time / between.wall] for wait in between.waits]


def _standing(of: Collectives, rank: CollectiveRank) -> str:
    """Place of a rank of a communicator that stands still; "" if it does not."""
    if not of.standing:
        return ""
    found = of.standing[of.ranks.index(rank)]
    if found.what:
        return f"in {found.what} {count(found.number)}"
    if found.has_ended:
        return "its process has ended"
    since = f"in none since its collective {count(found.number)}" if found.number else "in none"
    if found.elsewhere:
        return f"{since}: it is in {found.elsewhere}"
    return f"{since}: {does(found.meanwhile, found.stopped)}" if found.meanwhile else since
