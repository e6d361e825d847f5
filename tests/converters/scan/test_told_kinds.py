from __future__ import annotations

from stallscope.converters.model.waits_for import THREAD, TIMER, Node, WaitGraph
from stallscope.converters.rules.finding import Finding
from stallscope.converters.rules.verdict import Verdict
from stallscope.converters.scan.told_kinds import told_kinds
from summary_profiles import SECOND

HELD, CAUSE, VICTIM, OTHER = (Node(THREAD, pid, pid) for pid in (1, 2, 3, 4))
NOW = Node(TIMER, name="[timer]")


def verdict(cause: bool = True) -> Verdict:
    held = Finding("lock", ((1, 1),), 9 * SECOND, 10 * SECOND)
    sleeps = Finding("sleep", ((2, 2),), 9 * SECOND, 10 * SECOND) if cause else None
    return Verdict("held-up", "database-lock", 9 * SECOND, 1, frozenset((1,)), held, sleeps)


def graph(by_held: int, by_other: int) -> WaitGraph:
    made = WaitGraph()
    made.ends[VICTIM, HELD] = by_held
    made.ends[VICTIM, OTHER] = by_other
    made.ends[VICTIM, NOW] = 9 * SECOND
    return made


def test_who_is_held_up_and_who_keeps_it_waiting() -> None:
    assert told_kinds(verdict(), None) == {1: {"database-lock"}, 2: {"sleep"}}
    assert told_kinds(verdict(cause=False), None) == {1: {"database-lock"}}


def test_who_mostly_waits_for_them() -> None:
    """A thread waits for nobody where its own timer ends the wait."""
    assert told_kinds(verdict(), graph(6 * SECOND, 3 * SECOND))[3] == {"peer"}
    assert 3 not in told_kinds(verdict(), graph(SECOND, 8 * SECOND))
    assert 4 not in told_kinds(verdict(), graph(6 * SECOND, 3 * SECOND))


def test_nothing_is_concerned_by_no_verdict() -> None:
    assert told_kinds(None, graph(6 * SECOND, 0)) == {}
    assert told_kinds(Verdict("quota", "quota", SECOND, 1, frozenset((1,))), graph(6 * SECOND, 0)) == {}
