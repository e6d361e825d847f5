"""Answers to waits that do not end, and those that name who has the cores."""

from __future__ import annotations

import pytest
from processes import crowd, process, threads
from stallscope.converters.model import Stack, ThreadTimes
from stallscope.converters.model.neighbours import Neighbour
from stallscope.converters.rules.ranking import judge
from stallscope.converters.summary import answer
from stallscope.converters.summary.answer import Answer
from stallscope.converters.summary.summarize import summarize
from summary_profiles import EXE, FUTEX, LIBC, MS, READ, SECOND, SLEEP, Tracee, empty, facts_of, user
from wait_graphs import chained, profile_of, with_extremes

LOCK = (*user(EXE, "work", "take"), *user(LIBC, "pthread_mutex_lock", "__lll_lock_wait"), *FUTEX)


def endless(stack: Stack, ended: int = 0) -> Answer:
    """The answer to a wait of 10 s that does not end, beside shorter ones that do."""
    profile = empty()
    main = Tracee(profile, 1, "app", 1, "app").wait(stack, "interruptible", 10 * SECOND - ended, still=True)
    if ended:
        main.run(MS).wait(stack, "interruptible", ended, 3)
    facts = facts_of(profile)
    return answer.answer(summarize(profile), facts, judge(facts))


@pytest.mark.parametrize(
    ("told", "is_endless"),
    [
        (endless(READ), True),
        (endless(READ, 4 * SECOND), True),
        (endless(READ, 6 * SECOND), False),
        (endless(LOCK), True),
        (endless(SLEEP), False),
    ],
)
def test_waits_that_do_not_end(told: Answer, is_endless: bool) -> None:
    assert told.is_endless == is_endless


@pytest.mark.parametrize("user_of_cores", [Neighbour("mine", 99, 4 * SECOND, "0-3"), None])
def test_those_that_have_the_cores_are_named(user_of_cores: Neighbour | None) -> None:
    made = empty()
    process(made, 7, "train")
    threads(made, 7, "train", "train", 6, on_cpu=SECOND, runnable=8 * SECOND)
    made.neighbours = [user_of_cores] if user_of_cores else []
    facts = facts_of(made)
    assert answer.answer(summarize(made), facts, judge(facts)).names_takers == (user_of_cores is not None)


@pytest.mark.parametrize(("ms", "is_endless"), [(5100, True), (4900, False)])
def test_nobody_has_ended_a_wait_that_a_timeout_ends(ms: int, is_endless: bool) -> None:
    waits = ((ms, ("[timer]", 0, "")), (10_000 - ms, ("server-8", 8, "server")))
    made = with_extremes(profile_of(*(chained(1, 1, time * MS, by, own=READ, process="app") for time, by in waits)))
    made.duration_ns = 10 * SECOND
    made.threads.append(ThreadTimes(1, "app", 1, "app", 10 * SECOND, 0, 0, {"interruptible": 10 * SECOND}))
    facts = facts_of(made)
    assert answer.answer(summarize(made), facts, judge(facts)).is_endless == is_endless


def test_threads_that_outnumber_the_cores_have_them_themselves() -> None:
    made = crowd()
    facts = facts_of(made)
    assert answer.answer(summarize(made), facts, judge(facts)).names_takers
