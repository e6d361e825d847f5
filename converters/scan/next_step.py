"""The command that shows more than a scan: of the process that keeps the others waiting, if it is known."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from ..facts import thresholds
from ..facts.facts import Facts
from ..facts.identity import kernel_ids
from ..facts.wait_kinds import HALTED
from ..model.next_step import (
    ALL_RANKS,
    ALL_THAT_RUNS,
    HOW_OFTEN,
    LEFT_OUT,
    LONGER,
    PATH,
    WHAT_CULPRIT_RUNS,
    WHAT_CULPRIT_WAITS_FOR,
    WHAT_ENDERS_DO,
    WHAT_HOLDER_DOES,
    WHOLE_STACKS,
    NextStep,
    Whom,
)
from ..rules.finding import CPU, Finding
from ..rules.holder import Holder
from ..rules.ranking import Judgement
from ..rules.verdict import IDLE, Verdict
from .process_verdicts import ProcessVerdict

_SHOW_MORE = frozenset((WHAT_HOLDER_DOES, WHAT_ENDERS_DO, LEFT_OUT, WHOLE_STACKS, ALL_RANKS))
"""Codes of steps that show what a scan does not have: of processes that were not traced, or whole stacks."""
_A_WHILE = ("-d", "5")
_PICTURE = ("-o", "cpu.html")
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")
"""Names that need no escaping in a shell or regular expression."""


@dataclass(frozen=True)
class Culprit:
    """Processes that keep others waiting."""

    pids: tuple[int, ...]
    runs: bool
    """Whether they are on a core, or want one, for a good part of the time in which others wait."""


def step_of_scan(
    known: NextStep | None, facts: Facts, judgement: Judgement, rows: Sequence[ProcessVerdict]
) -> NextStep | None:
    """``known``: the step by the summary alone, which does not know what a scan has measured. None if nothing shows
    more."""
    first = judgement.first
    if known is None or known.tells in _SHOW_MORE or first is None or first.kind == HALTED:
        return known
    if first.kind == IDLE:
        return NextStep("trace-scan", Whom(), ("-d", "60"), LONGER) if facts.is_whole_host else known
    if culprit := culprit_of(facts, judgement, rows):
        return _of_culprit(culprit)
    whom = _whom(facts, concerned(first))
    return _of_victims(known, first, whom) if whom else known


def _of_victims(known: NextStep, first: Verdict, whom: Whom) -> NextStep:
    """The step if nobody else keeps these processes waiting."""
    if first.finding is None or first.finding.kind == CPU:
        if known.tells == HOW_OFTEN:
            return known._replace(whom=whom)
        return NextStep("trace-oncpu", whom, (*_A_WHILE, *_PICTURE), ALL_THAT_RUNS)
    _, thread = first.finding.threads[0]
    return NextStep("trace-wakeup", whom, (*_A_WHILE, "--critical", str(kernel_ids((thread,))[0])), PATH)


def concerned(verdict: Verdict) -> tuple[int, ...]:
    """Processes of which a verdict tells, those with most time first."""
    threads = verdict.finding.threads if verdict.finding else ()
    return tuple(dict.fromkeys((*(pid for pid, _ in threads), *sorted(verdict.pids))))


def culprit_of(facts: Facts, judgement: Judgement, rows: Sequence[ProcessVerdict]) -> Culprit | None:
    """The other processes that keep those of the first verdict waiting: that have the lock, do what they wait for, or
    end their waits. None if these are not known, or are the same processes."""
    first = judgement.first
    if first is None or first.finding is None or first.finding.kind == CPU:
        return None
    mine = set(concerned(first))
    for found in (_holders(judgement), _of_finding(first.cause), _enders(rows, mine)):
        others = tuple(sorted(set(found) - mine))
        if others and len(others) <= thresholds.PIDS_IN_COMMAND:
            return Culprit(others, _run(facts, others))
    return None


def _holders(judgement: Judgement) -> Iterable[int]:
    """The process that has the lock, if it is traced."""
    holders = (each.detail for each in judgement.blamed if isinstance(each.detail, Holder))
    return [each.pid for each in holders if each.pid and each.is_traced]


def _of_finding(cause: Finding | None) -> Iterable[int]:
    return cause.pids if cause else ()


def _enders(rows: Sequence[ProcessVerdict], pids: Collection[int]) -> Iterable[int]:
    """Processes that end most of the waits of that row of these processes which waits most."""
    of = [each for each in rows if each.ender and not set(pids).isdisjoint(each.pids)]
    most = max(of, key=lambda each: (each.time, each.pids), default=None)
    return most.ender.pids if most and most.ender else ()


def _run(facts: Facts, pids: Collection[int]) -> bool:
    wanted = [times for (pid, _), times in facts.threads.items() if pid in pids]
    return sum(each.on_cpu + each.runnable for each in wanted) >= thresholds.CAUSE * facts.duration


def _of_culprit(culprit: Culprit) -> NextStep:
    pids = kernel_ids(culprit.pids)
    whom = Whom(("-p", ",".join(map(str, pids))))
    if culprit.runs:
        return NextStep("trace-oncpu", whom, (*_A_WHILE, *_PICTURE), WHAT_CULPRIT_RUNS)
    return NextStep("trace-wakeup", whom, (*_A_WHILE, "--critical", str(pids[0])), WHAT_CULPRIT_WAITS_FOR)


def _whom(facts: Facts, pids: Sequence[int]) -> Whom | None:
    """Options that choose these processes; None if there are none, or too many without a plain name of their own."""
    if not pids:
        return None
    if len(pids) <= thresholds.PIDS_IN_COMMAND:
        return Whom(("-p", ",".join(map(str, kernel_ids(pids)))))
    names = {facts.threads[thread].process for thread in facts.threads if thread[0] in pids}
    name = names.pop()
    return Whom(("-n", f"^{name}$")) if not names and _PLAIN.fullmatch(name) else None
