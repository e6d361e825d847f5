from __future__ import annotations

import pytest
from stallscope.converters.model import Profile, ThreadTimes
from stallscope.converters.phrases.cores import processes_anew
from stallscope.converters.rules.processes_anew import Started, find
from stallscope.converters.summary.summarize import summarize
from summary_profiles import MS, SECOND, facts_of
from verdict_profiles import starting


def test_processes_that_a_script_starts_all_the_time() -> None:
    """Half of them were started by others that end as soon."""
    (verdict,) = find(facts_of(starting()))
    assert (verdict.rule, verdict.kind, verdict.time) == ("processes-anew", "processes-anew", 600 * MS)
    assert {1, 100, 299} <= verdict.pids
    found = verdict.detail
    assert isinstance(found, Started)
    assert (found.starter, found.processes, found.names) == ("import.sh", 200, {"cut": 100, "tr": 100})
    assert processes_anew(found) == (
        "import.sh starts 200 processes a second (cut, tr), which end after 5.00 ms on average, and use or want 0.6 "
        "cores together. To do the same in one process saves most of that."
    )
    assert summarize(starting()).answer[0] == processes_anew(found), "what the script waits for is its effect"


def not_ended() -> Profile:
    profile = starting()
    for times in profile.threads:
        times.exited = False
    return profile


@pytest.mark.parametrize(
    "made",
    [
        starting(49),
        starting(19, trace=SECOND // 10),
        starting(200, busy=MS),
        starting(60, busy=201 * MS, life=201 * MS),
        not_ended(),
    ],
)
def test_few_processes_that_cost_little_or_live_long(made: Profile) -> None:
    assert find(facts_of(made)) == []


def test_whoever_starts_them_may_be_unknown() -> None:
    profile = starting()
    for times in profile.threads[1:]:
        times.creator = -1
    profile.threads.append(ThreadTimes(0, "[lost]", 0, "[lost]", SECOND, 0, 0, {}))
    (verdict,) = find(facts_of(profile))
    assert isinstance(verdict.detail, Started)
    assert processes_anew(verdict.detail).startswith("A process that was not traced starts 200 processes a second")
