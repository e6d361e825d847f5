"""The captures in captures/, each loaded once, and what is judged of them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from stallscope.converters import pprof
from stallscope.converters.facts.facts import Facts
from stallscope.converters.facts.identity import is_sum
from stallscope.converters.facts.wait_sums import Thread
from stallscope.converters.model import Profile
from stallscope.converters.rules import busy
from stallscope.converters.rules.verdict import Verdict
from stallscope.converters.summary.judging import judgement_of

CAPTURES = {path.name.removesuffix(".pb.gz"): path for path in (Path(__file__).parent / "captures").glob("*.pb.gz")}
NAMES = sorted(CAPTURES)


@cache
def capture(name: str) -> Profile:
    """Capture, which is not to be changed."""
    with CAPTURES[name].open("rb") as file:
        return pprof.load(file)


class Said(NamedTuple):
    """A verdict, as the same in a changed profile has it."""

    rule: str
    kind: str
    subject: frozenset[object]
    """Threads by their ids, or by their names if they are added up; of some verdicts, all threads of its processes."""
    others: tuple[tuple[str, frozenset[object]], ...]
    """Kinds of what those do who keep them waiting, or who wait for them, and who they are."""
    share: float
    """Part of the time of those threads."""


def said_of(profile: Profile) -> tuple[Said, ...]:
    """All verdicts, that of the first sentence first."""
    facts, judgement = judgement_of(profile)
    assert judgement.first is (judgement.verdicts[0] if judgement.verdicts else None)
    return tuple(_said(facts, verdict) for verdict in judgement.verdicts)


@cache
def said_of_capture(name: str) -> tuple[Said, ...]:
    """Verdicts on a capture as it was recorded."""
    return said_of(capture(name))


def _said(facts: Facts, verdict: Verdict) -> Said:
    mine = [each for each in facts.threads if each[0] in verdict.pids]
    if isinstance(verdict.detail, busy.Busy):
        mine = [each for group in verdict.detail.groups for each in group.threads]
    elif verdict.finding:
        mine = list(verdict.finding.threads)
    others = [(each.kind, _who(facts, each.threads)) for each in (verdict.cause, verdict.effect) if each]
    share = verdict.time / (_wall(facts, verdict) or 1)
    return Said(verdict.rule, verdict.kind, _who(facts, mine), tuple(others), share)


def _wall(facts: Facts, verdict: Verdict) -> int:
    if isinstance(verdict.detail, busy.Busy):
        return verdict.detail.wall
    if verdict.finding:
        return verdict.finding.wall
    return sum(times.wall for (pid, _), times in facts.threads.items() if pid in verdict.pids)


def _who(facts: Facts, threads: Iterable[Thread]) -> frozenset[object]:
    times = facts.threads
    return frozenset((times[each].process, times[each].thread) if is_sum(each[1]) else each for each in threads)
