"""The captures in captures/, each loaded once, and what is judged of them first."""

from __future__ import annotations

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
    """Not to be changed."""
    with CAPTURES[name].open("rb") as file:
        return pprof.load(file)


class Said(NamedTuple):
    """What is judged of a profile first."""

    rule: str
    kind: str
    subject: frozenset[object]
    """Threads by their ids, or by their names if they are added up; of some verdicts, all threads of its processes."""
    cause: tuple[str, frozenset[object]] | None
    """What those do who keep them waiting, and who they are."""
    share: float
    """Of the time of those threads."""


def said_of(profile: Profile) -> Said | None:
    """None: nothing is wrong, as far as known."""
    facts, judgement = judgement_of(profile)
    first = judgement.first
    if first is None:
        return None
    threads = first.finding.threads if first.finding else [each for each in facts.threads if each[0] in first.pids]
    cause = first.cause and (first.cause.kind, _who(facts, first.cause.threads))
    return Said(first.rule, first.kind, _who(facts, threads), cause, first.time / (_wall(facts, first) or 1))


@cache
def said_of_capture(name: str) -> Said | None:
    """What is said of it as it was recorded."""
    return said_of(capture(name))


def _wall(facts: Facts, verdict: Verdict) -> int:
    if isinstance(verdict.detail, busy.Busy):
        return verdict.detail.wall
    if verdict.finding:
        return verdict.finding.wall
    return sum(times.wall for (pid, _), times in facts.threads.items() if pid in verdict.pids)


def _who(facts: Facts, threads: tuple[Thread, ...] | list[Thread]) -> frozenset[object]:
    times = facts.threads
    return frozenset((times[each].process, times[each].thread) if is_sum(each[1]) else each for each in threads)
