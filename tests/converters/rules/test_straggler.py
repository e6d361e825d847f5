from __future__ import annotations

import pytest
from job_profiles import TEN, job, late, rank
from stallscope.converters.model import Profile
from stallscope.converters.model.origins import Ancestor
from stallscope.converters.rules.straggler import Straggler, find
from stallscope.converters.summary.summarize import summarize
from summary_profiles import facts_of


def found(profile: Profile) -> Straggler | None:
    verdicts = find(facts_of(profile))
    if not verdicts:
        return None
    (verdict,) = verdicts
    assert isinstance(verdict.detail, Straggler)
    return verdict.detail


def test_the_rank_for_which_the_others_wait() -> None:
    (verdict,) = find(facts_of(late()))
    assert (verdict.rule, verdict.kind, verdict.pids) == ("straggler", "collective", set(range(100, 108)))
    assert verdict.time == 7 * 9 * TEN // 10
    detail = verdict.detail
    assert isinstance(detail, Straggler)
    assert [each.number for each in detail.late] == [3]
    assert (detail.ranks, detail.waits, detail.others_wait) == (8, pytest.approx(0.2), pytest.approx(0.9))
    excess = detail.excess
    assert (excess.kind, excess.share, excess.usual) == ("sleep", pytest.approx(0.8), pytest.approx(0.1))
    assert excess.frames == ("main", "nap", "clock_nanosleep")
    assert detail.ended is None


def test_the_answer_tells_of_it_once() -> None:
    answer = summarize(late(0.5)).answer
    assert sum("keeps the other 7 ranks waiting" in each for each in answer) == 1
    assert not any("no traced rank stands out" in each for each in answer)


@pytest.mark.parametrize(
    "made",
    [
        job(0.1, 0.9),  # two ranks have no median
        job(*[0.5] * 8),  # all alike
        job(*[0.4 + 0.02 * (number % 2) for number in range(8)]),  # each was late once
        job(0.2, 0.35, 0.5, 0.65, 0.8),  # no one stands out
        job(0.1, 0.1, 0.8, 0.8),  # half of them
        job(0.93, 0.93, 0.93, 1.0),  # the others hardly wait
        late(0.19),  # hardly longer
    ],
)
def test_no_rank_is_late(made: Profile) -> None:
    assert found(made) is None


def test_several_are_late() -> None:
    detail = found(job(0.1, 0.1, 0.8, 0.1, 0.1, 0.7, 0.1))
    assert detail
    assert [each.number for each in detail.late] == [2, 5]


def test_what_its_workers_do() -> None:
    made = late()
    rank(made, 200, 3, 1.0, above=(Ancestor(103, "train"), Ancestor(50, "mpirun")))
    detail = found(made)
    assert detail and detail.workers
    assert (detail.workers.kind, detail.workers.share) == ("sleep", 1.0)
