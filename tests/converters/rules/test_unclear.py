from __future__ import annotations

import pytest
from stallscope.converters.model import Frame
from stallscope.converters.phrases.sentences import Sentences
from stallscope.converters.rules.unclear import find
from summary_profiles import SECOND, SLEEP, Tracee, empty, facts_of

LOST = (Frame("[lost]", "other"),)


@pytest.mark.parametrize(("seconds", "told"), [(5, True), (4, False)])
def test_most_of_the_time_is_not_known(seconds: int, told: bool) -> None:
    profile = empty()
    tracee = Tracee(profile, 1, "app", 1, "app").run(SECOND)
    tracee.wait(SLEEP, "interruptible", (9 - seconds) * SECOND, 9)
    tracee.wait(LOST, "other", seconds * SECOND, 9)
    facts = facts_of(profile)
    found = find(facts)
    assert [verdict.kind for verdict in found] == (["unclear"] if told else [])
    for verdict in found:
        assert (
            Sentences(facts)
            .of(verdict)
            .startswith("For 50.0 % of the threads' time it is not known where they were: what was lost is told below")
        )


def test_what_an_engine_takes_itself_is_known() -> None:
    profile = empty()
    stopped = (Frame("[stopped by eu-stack]", "other"),)
    Tracee(profile, 1, "app", 1, "app").run(SECOND).wait(stopped, "other", 9 * SECOND, 9)
    assert find(facts_of(profile)) == []


@pytest.mark.parametrize("accounts", [True, False])
def test_time_without_an_account_is_in_no_share(accounts: bool) -> None:
    """Threads that the trace could not list have waits, and no account: the others' time is all that is known."""
    profile = empty()
    Tracee(profile, 1, "app", 1, "app").run(SECOND).wait(SLEEP, "interruptible", 9 * SECOND, 9)
    Tracee(profile, 2, "[unknown]", 3, "[unknown]").run(SECOND).wait(LOST, "other", 19 * SECOND, 9)
    if not accounts:
        del profile.threads[1:]
    assert bool(find(facts_of(profile))) == accounts
