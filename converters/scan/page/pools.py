"""Pools of threads on a page as plain data. Texts are printable, times in ns."""

from __future__ import annotations

from typing import Any

from ...base.text import printable
from ...facts.facts import Facts
from ...facts.identity import shown_id
from ...facts.pools import Pool, pools_of


def pools_data(facts: Facts, most: int) -> list[dict[str, Any]]:
    """Rows of the table, at most so many: those first that want cores most."""
    return [_row(pool) for pool in facts.once(pools_of)[:most]]


def _row(pool: Pool) -> dict[str, Any]:
    return {
        "name": printable(f"{pool.process} ({shown_id(pool.pid)})"),
        "thread": printable(pool.thread),
        "runs": printable(pool.runs),
        "threads": pool.threads,
        "ended": pool.ended,
        "made_in": printable(" → ".join(pool.made_in)),
        "fed_in": printable(" → ".join(pool.fed_in)),
        "on_cpu": pool.on_cpu,
        "runnable": pool.runnable,
    }
