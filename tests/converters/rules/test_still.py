from __future__ import annotations

from stallscope.converters.phrases.sentences import Sentences
from stallscope.converters.rules.still import find
from summary_profiles import (
    POOL,
    READ,
    SECOND,
    Tracee,
    facts_of,
    waiting,
)


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
