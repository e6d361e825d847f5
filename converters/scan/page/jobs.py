"""The jobs of a page as plain data: their ranks and what each does, and who has which GPU open. Texts are printable."""

from __future__ import annotations

from typing import Any

from ...base.text import printable
from ...phrases.jobs import DOES, rank_name
from ..jobs import HEADS, JobReport, Jobs, gpu_lines

RANKS = 1_000
"""Rows of a page."""


def jobs_data(jobs: Jobs) -> dict[str, Any]:
    """Jobs, and lines on GPUs. Shares as fractions of 1."""
    return {"jobs": [_job(each) for each in jobs.reports], "gpus": [printable(line) for line in gpu_lines(jobs)]}


def _job(report: JobReport) -> dict[str, Any]:
    medians = report.states.medians()
    kinds = [*HEADS, *(kind for kind in medians if kind not in HEADS)]
    return {
        "title": printable(report.title),
        "kinds": [[kind, HEADS.get(kind, kind), DOES.get(kind, kind)] for kind in kinds],
        "medians": [medians.get(kind, 0.0) for kind in kinds],
        "ranks": [
            {
                "name": printable(rank_name(rank)),
                "source": rank.source,
                "workers": len(rank.workers),
                "shares": [times.share(kind) if times.wall else None for kind in kinds],
                "outlier": is_far,
            }
            for rank, times, is_far in report.in_order()[:RANKS]
        ],
    }
