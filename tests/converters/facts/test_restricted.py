from __future__ import annotations

from stallscope.converters.facts.restricted import of_processes
from stallscope.converters.rules.ranking import judge
from summary_profiles import READ, SECOND, Tracee, empty, facts_of, idle_pool
from verdict_profiles import FSYNC, YIELD, one


def test_only_the_chosen_processes_are_judged() -> None:
    profile = one(FSYNC, 9 * SECOND, state="uninterruptible")
    Tracee(profile, 2, "client", 2, "client").wait(READ, "interruptible", 10 * SECOND, 900)
    facts = facts_of(profile)
    kinds = {}
    for pid in (1, 2):
        first = judge(of_processes(facts, (pid,))).first
        assert first
        assert first.pids == {pid}
        kinds[pid] = first.kind
    assert kinds == {1: "io", 2: "peer"}


def test_waits_are_not_classified_again() -> None:
    facts = facts_of(one(FSYNC, 9 * SECOND, state="uninterruptible"))
    own = of_processes(facts, (1,))
    assert own.sums[1, 1] is facts.sums[1, 1]


def test_idle_threads_stay_idle() -> None:
    facts = facts_of(idle_pool())
    own = of_processes(facts, {7})
    assert own.roles == facts.roles
    assert own.roles.idle


def test_without_the_processes_nothing_is_left() -> None:
    own = of_processes(facts_of(one(YIELD, SECOND)), (5,))
    assert not own.threads
    assert not own.sums
    assert not own.accounts
    assert judge(own).first is None


def test_cores_are_those_of_the_process() -> None:
    profile = empty()
    for pid in (1, 2):
        Tracee(profile, pid, "app", pid, "app").run(SECOND).wait(READ, "interruptible", 9 * SECOND, 500)
    facts = facts_of(profile)
    assert {pid for each in of_processes(facts, (2,)).contention for pid in each.pids} <= {2}
    assert of_processes(facts, (2,)).pids_moving == {2}
