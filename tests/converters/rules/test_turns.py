from __future__ import annotations

import pytest
from processes import process
from stallscope.converters.model import Profile
from stallscope.converters.phrases.sentences import Sentences
from stallscope.converters.rules.turns import find
from stallscope.converters.summary.summarize import summarize
from summary_profiles import SECOND, SLEEP, Tracee, empty, facts_of
from verdict_profiles import JOIN, taking_turns


def test_threads_of_which_one_runs_at_a_time() -> None:
    facts = facts_of(taking_turns())
    (verdict,) = find(facts)
    assert (verdict.rule, verdict.kind, verdict.pids, verdict.time) == ("turns", "lock", {1}, 30 * SECOND)
    assert verdict.finding and verdict.finding.threads == ((1, 2), (1, 3), (1, 4), (1, 5))
    sentence = Sentences(facts).of(verdict)
    assert sentence == (
        "The 4 worker threads of app take turns: they use 1.0 of 2 cores together, and wait for each other for 75.0 % "
        "of their time, in pool_main → std::condition_variable::wait: one lock that all need, such as an "
        "interpreter's, or work that they hand on."
    )
    assert summarize(taking_turns()).answer[0] == sentence


def one_core() -> Profile:
    """No more than one of them can run."""
    made = taking_turns()
    process(made, 1, "app", cpus="0")
    return made


def joined() -> Profile:
    """A thread works, and another one waits for its end."""
    made = empty()
    Tracee(made, 1, "app", 1, "app").run(2 * SECOND).wait(JOIN, "interruptible", 8 * SECOND, 9)
    Tracee(made, 1, "app", 2, "w").run(8 * SECOND).wait(SLEEP, "interruptible", 2 * SECOND, 9)
    return made


@pytest.mark.parametrize(
    "made", [one_core(), joined(), taking_turns(2, 1.5, 0.25), taking_turns(1), taking_turns(used=0.4, other=0.15)]
)
def test_others_do_not(made: Profile) -> None:
    """Threads of one core, that wait for another's end, run at the same time, or do something else."""
    assert find(facts_of(made)) == []
