from __future__ import annotations

import pytest
from job_profiles import MEET, TEN, job, late, rank
from stallscope.converters.facts.hot_sites import HotSite
from stallscope.converters.facts.jobs import jobs_of
from stallscope.converters.facts.runs import Run, RunSum
from stallscope.converters.model import Profile, Sample
from stallscope.converters.model.wait_objects import LABEL, TCP, ObjectEnd, WaitObject
from stallscope.converters.rules.rank_states import RankStates, states_of
from summary_profiles import READ, SECOND, SLEEP, Tracee, facts_of


def states(profile: Profile) -> RankStates:
    facts = facts_of(profile)
    return states_of(facts, jobs_of(facts)[0])


def test_times_by_kind_close() -> None:
    made = late()
    made.threads[3].on_cpu, made.threads[3].runnable = SECOND, SECOND
    made.threads[3].wall += 2 * SECOND
    found = states(made).times[3]
    assert found.kinds == {"running": SECOND, "runnable": SECOND, "sleep": 8 * SECOND, "collective": 2 * SECOND}
    assert sum(found.kinds.values()) == found.wall
    assert found.for_others == pytest.approx(2 / 12)


def test_the_bar_does_not_move_with_one_rank() -> None:
    for own in (0.5, 0.99):
        found = states(late(own))
        assert found.bar() == pytest.approx((0.1, 0.1))
        assert found.far() == (False, False, False, True, False, False, False, False)


def test_two_have_no_median() -> None:
    found = states(job(0.1, 0.9))
    assert found.bar() is None
    assert not any(found.far())


def test_waits_on_a_connection_of_ranks_are_for_them() -> None:
    """Others are not."""
    for other, kinds in ((101, {"collective": 5 * SECOND}), (999, {"peer": 5 * SECOND})):
        made = job(0.0001, 0.5, 0.5)
        made.threads[0].wall, made.threads[0].blocked = 0, {}
        made.samples = [each for each in made.samples if each.label("pid") != 100]
        Tracee(made, 100, "train", 100, "train").wait(READ, "interruptible", 5 * SECOND, 9)
        made.threads.pop()
        made.threads[0].wall, made.threads[0].blocked = 5 * SECOND, {"interruptible": 5 * SECOND}
        last = made.samples[-1]
        made.samples[-1] = Sample(last.stack, last.values, tuple(sorted([*last.labels, (LABEL, 7)])))
        made.objects = [WaitObject(7, TCP, ends=[ObjectEnd("x", other)])]
        assert states(made).times[0].kinds == kinds


def test_who_asks_in_a_collective_operation_on_a_core_waits() -> None:
    facts = facts_of(job(1, 1, 1))
    for thread in list(facts.threads):
        facts.threads[thread].on_cpu, facts.threads[thread].wall = TEN, 2 * TEN
    meets, works = Run(HotSite(("main", "MPI_Wait"), False), "", job="collective"), Run(HotSite(("f",), False), "")
    facts.runs = {(100, 100): {meets: RunSum(0, 75), works: RunSum(0, 25)}}
    first, second, _ = states_of(facts, jobs_of(facts)[0]).times
    assert first.kinds == {"running": TEN // 4, "collective": 3 * TEN // 4, "sleep": TEN}
    assert second.kinds == {"running": TEN, "sleep": TEN}


def test_a_few_samples_do_not_show_it() -> None:
    facts = facts_of(job(1, 1, 1))
    facts.threads[100, 100].on_cpu = TEN
    facts.runs = {(100, 100): {Run(HotSite(("MPI_Wait",), False), "", job="collective"): RunSum(0, 9)}}
    assert "collective" not in states_of(facts, jobs_of(facts)[0]).times[0].kinds


def test_medians_begin_with_what_takes_most_time() -> None:
    assert list(states(late()).medians().items()) == [
        ("collective", pytest.approx(0.9)),
        ("sleep", pytest.approx(0.1)),
    ]


def test_workers_are_not_the_rank() -> None:
    made = job(0.1, 0.1, 0.1)
    rank(made, 200, 0, 1.0, above=[type(made.origins[0].ancestors[0])(100, "train"), *made.origins[0].ancestors])
    assert states(made).times[0].wall == TEN
    assert MEET and SLEEP
