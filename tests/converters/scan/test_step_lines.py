from __future__ import annotations

from dataclasses import replace

from job_profiles import job
from pace_profiles import LOADING, found_by, spent, steps
from stallscope.converters.facts import thresholds
from stallscope.converters.facts.jobs import jobs_of
from stallscope.converters.model import Profile
from stallscope.converters.model.origins import Ancestor, ProcessOrigin
from stallscope.converters.model.steps import Spent, Steps, StepWait
from stallscope.converters.scan.step_lines import pace_lines
from stallscope.converters.scan.steps import paces
from summary_profiles import MS, READ, SECOND, Tracee, empty, facts_of


def lines(profile: Profile, *found: Steps, shown: tuple[int, ...] = ()) -> list[str]:
    facts = facts_of(profile)
    return pace_lines(paces(found, facts, jobs_of(facts)), shown)


def test_the_rate_of_one() -> None:
    profile = empty()
    Tracee(profile, 7, "train", 7, "train").run(10 * SECOND)
    assert lines(profile, steps(7)) == ["train.py:train_step: 10 steps a second."]


def test_the_slowest_rank_comes_first() -> None:
    made = lines(job(0.3, 0.3, 0.3), steps(100), steps(101, 190 * MS), steps(102))
    assert made == ["train.py:train_step: 5 (rank 1) to 10 steps a second in 3 ranks."]


def test_a_rate_is_told_of_those_that_have_one() -> None:
    unknown = [replace(steps(pid), between=Spent(0, 0, 0, 0), span=0) for pid in (101, 102)]
    assert lines(job(0.3, 0.3, 0.3), steps(100), *unknown) == ["train.py:train_step: 10 steps a second in rank 0."]


def test_without_a_rate() -> None:
    profile = empty()
    Tracee(profile, 7, "train", 7, "train").run(10 * SECOND)
    one = replace(steps(7), between=Spent(0, 0, 0, 0), span=0)
    assert lines(profile, one) == ["train.py:train_step: 100 steps, too few for a rate."]
    assert lines(profile, replace(one, steps=Spent(0, 0, 0, 0))) == []


def loading(part: float) -> list[str]:
    """Lines of a process that waits for its loader for this part of its time."""
    profile = empty()
    Tracee(profile, 7, "train", 7, "train").run(SECOND).wait(LOADING, "interruptible", 9 * SECOND, 99)
    ((place, _),) = facts_of(profile).waits_of((7, 7)).items()
    loop = 100 * 90 * MS + 99 * 10 * MS
    return lines(profile, steps(7, wait=StepWait(place.site, round(part * loop), 99)))


def test_what_the_loader_costs() -> None:
    assert loading(0.5) == [
        "train.py:train_step: 10 steps a second; it waits 50.0 ms of a step (50.0 %) for its loader of data: with "
        "batches always there it would make 20."
    ]


def test_a_wait_that_hardly_matters_is_not_told() -> None:
    assert loading(thresholds.SIGNIFICANT - 0.01) == ["train.py:train_step: 10 steps a second."]
    assert "loader" in loading(thresholds.SIGNIFICANT + 0.01)[0]


def test_other_waits_are_not_the_loader() -> None:
    profile = empty()
    Tracee(profile, 7, "train", 7, "train").run(SECOND).wait(READ, "interruptible", 9 * SECOND, 99)
    ((place, _),) = facts_of(profile).waits_of((7, 7)).items()
    assert lines(profile, steps(7, wait=StepWait(place.site, 5 * SECOND, 99))) == [
        "train.py:train_step: 10 steps a second."
    ]


def test_how_long_they_take() -> None:
    made = lines(job(0.3, 0.3, 0.3), replace(steps(100), p90=99 * MS), replace(steps(101, 190 * MS), p90=210 * MS))
    assert made == [
        "train.py:train_step: 5 (rank 1) to 10 steps a second in 2 ranks (rank 1: median 190 ms, p90 210 ms, max "
        "190 ms)."
    ]
    few = replace(steps(100), p90=99 * MS, steps=spent(9, 90 * MS))
    assert lines(job(0.3, 0.3, 0.3), few) == ["train.py:train_step: 10 steps a second."]


def alone() -> Profile:
    profile = empty()
    Tracee(profile, 7, "train", 7, "train").run(10 * SECOND)
    return profile


WHAT = "By time alone, a step is from one end of the wait in main → next_batch"
PARTS = "Of a step: 60.0 % in this wait, 20.0 % in main → save → fsync, 15.0 % on a core."


def test_steps_that_nobody_named_are_told_with_their_evidence() -> None:
    assert lines(alone(), found_by(7), shown=(7,)) == [
        f"{WHAT} to the next (100 intervals, MAD 3.0 % of the median; one that need not wait there is part of the "
        f"step before): 10 steps a second (median 100 ms, p90 120 ms, max 140 ms). {PARTS}"
    ]
    (timed,) = lines(alone(), found_by(7, timed=True), shown=(7,))
    assert timed.startswith(f"{WHAT}, which a timer ends, to the next (100 intervals")


def test_of_processes_that_do_nothing_they_are_not() -> None:
    assert lines(alone(), found_by(7)) == []
    assert lines(alone(), found_by(7), shown=(8,)) == []


def test_ranks_are_compared() -> None:
    slow = replace(found_by(101), span=2 * 99 * 100 * MS, median=200 * MS)
    (told,) = lines(job(0.3, 0.3, 0.3), found_by(100), slow, found_by(102))
    assert "5 (rank 1) to 10 steps a second in 3 ranks (rank 1: median 200 ms" in told
    assert "(100 intervals, MAD 1.5 % of the median; one that" in told
    assert "Of a step of rank 1: 60.0 % in this wait" in told


def test_more_places_than_are_told() -> None:
    profile = alone()
    made = []
    for i in range(thresholds.FOUND_STEPS + 1):
        each = found_by(7)
        assert each.found
        made.append(replace(each, found=replace(each.found, place=each.found.place._replace(frames=(f"f{i}",)))))
    assert len(lines(profile, *made, shown=(7,))) == thresholds.FOUND_STEPS


def with_child(parent: int) -> Profile:
    profile = alone()
    profile.origins = [ProcessOrigin(8, "loader", [Ancestor(parent, "train")])]
    return profile


def test_who_makes_batches() -> None:
    (one,) = lines(alone(), found_by(7, 7), shown=(7,))
    assert "; 1 thread ends these waits, and takes 80.0 ms for each: 12.5 a second at most. Of a step" in one
    (two,) = lines(with_child(7), found_by(7, 7, 8), shown=(7,))
    assert "; 2 threads end these waits, and one takes 160 ms for each: together 12.5 a second at most." in two


def test_threads_of_other_processes_serve_others_too() -> None:
    assert "a second at most" in lines(with_child(7), found_by(7, 8), shown=(7,))[0]
    assert "a second at most" not in lines(with_child(9), found_by(7, 8), shown=(7,))[0]
    assert "a second at most" not in lines(alone(), found_by(7, 8), shown=(7,))[0]


def test_who_makes_batches_is_told_if_they_are_waited_for() -> None:
    def told(waited: float) -> str:
        each = found_by(7, 7)
        assert each.found
        (line,) = lines(
            alone(), replace(each, found=replace(each.found, waited=round(waited * 10_000 * MS))), shown=(7,)
        )
        return line

    assert "a second at most" not in told(thresholds.SIGNIFICANT - 0.01)
    assert "a second at most" in told(thresholds.SIGNIFICANT + 0.01)


def test_parts_that_are_small_are_not_told() -> None:
    each = found_by(7)
    (line,) = lines(alone(), replace(each, steps=replace(each.steps, on_cpu=999 * MS)), shown=(7,))
    assert "on a core" not in line
    assert "10.0 % waiting for a core" in line
