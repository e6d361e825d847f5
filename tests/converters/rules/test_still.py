from __future__ import annotations

from stallscope.converters.phrases.sentences import Sentences
from stallscope.converters.rules.still import find
from summary_profiles import POOL, READ, SECOND, Tracee, empty, facts_of, waiting
from verdict_profiles import with_stuck


def test_processes_that_did_not_move() -> None:
    profile = waiting(READ)
    Tracee(profile, 9, "stuck", 9, "stuck").wait(POOL, "interruptible", 10 * SECOND)
    Tracee(profile, 9, "stuck", 10, "helper").wait(POOL, "interruptible", 10 * SECOND)
    facts = facts_of(profile)
    assert facts.still_pids == {9}
    name, place = facts.where_of(9)
    assert (name, place and place.site.frames) == ("stuck", ("pool_main", "std::condition_variable::wait"))
    assert Sentences(facts).still(find(facts)) == (
        "1 process did not move: stuck (in pool_main → std::condition_variable::wait)."
    )
    assert facts.are_still([(9, 9), (9, 10)])
    assert not facts.are_still([(9, 9), (1, 1)])


def test_what_is_told_of_it() -> None:
    profile = with_stuck(waiting(READ))
    Tracee(profile, 8, "stuck", 8, "stuck").wait(POOL, "interruptible", 10 * SECOND)
    found = find(facts_of(profile))
    assert [(verdict.rule, verdict.kind, verdict.pids) for verdict in found] == [
        ("still", "still", {8}),
        ("still", "still", {9}),
    ]
    assert {(verdict.time, verdict.confidence, verdict.finding) for verdict in found} == {(0, 0, None)}


def test_one_thread_that_moves_is_enough() -> None:
    assert find(facts_of(with_stuck(empty(), runs=1))) == []
    profile = with_stuck(empty())
    Tracee(profile, 9, "stuck", 10, "helper").run(1)
    assert find(facts_of(profile)) == []
