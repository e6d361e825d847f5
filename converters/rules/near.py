"""Verdicts whose scores differ by less than they would from one trace to the next: neither comes first."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..facts import thresholds
from . import all_wait, calm, deadlock, gil_main, idle, unclear
from .finding import Finding
from .verdict import Verdict

_APART = frozenset(each.RULE for each in (deadlock, all_wait, gil_main, calm, idle, unclear))
"""Rules whose verdicts come first for other reasons than their score, or tell of nothing that could be saved."""


def as_much(first: Verdict, others: Sequence[Verdict]) -> Verdict | None:
    """The first of ``others`` that is worth as much, and tells of something else; None if there is none."""
    if first.rule in _APART:
        return None
    return next((other for other in others if _is_near(first, other) and not _is_told_by(first, other)), None)


def _is_near(first: Verdict, other: Verdict) -> bool:
    is_explained = other.most < other.time * other.confidence
    if other.rule in _APART or is_explained:
        return False
    noise = math.hypot(_noise(first) * first.score, _noise(other) * other.score)
    return first.score - other.score <= noise


def _noise(verdict: Verdict) -> float:
    """The share of the score by which the next trace may differ: a sum of so many waits or samples of any length."""
    finding = verdict.finding
    number = (finding.samples or finding.count) if finding else 0
    by_number = 1 / math.sqrt(number) if number else 0.0
    return min(max(by_number, thresholds.NOISE_LEAST), thresholds.NOISE_MOST)


def _is_told_by(first: Verdict, other: Verdict) -> bool:
    """Whether it is about the same subject and place, or about what the first one's sentence tells, or causes."""
    if other.is_effect and not first.is_effect and first.pids and other.pids <= first.pids:
        return True
    if first.finding is None or other.finding is None:
        return first.pids == other.pids
    meanwhile = (*filter(None, (first.cause, first.effect)), *filter(None, (other.cause, other.effect)))
    if any(_is_same(each, first.finding) or _is_same(each, other.finding) for each in meanwhile):
        return True
    return _is_same(first.finding, other.finding) and (
        not first.finding.places or bool(_sites(first.finding) & _sites(other.finding))
    )


def _is_same(one: Finding, other: Finding) -> bool:
    """Whether threads do the same."""
    return one.kind == other.kind and set(one.threads) == set(other.threads)


def _sites(finding: Finding) -> set[object]:
    return {place.site for place in finding.places}
