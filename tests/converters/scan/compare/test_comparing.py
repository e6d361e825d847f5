from __future__ import annotations

import pytest
from compare_profiles import run
from stallscope.converters.facts import thresholds
from stallscope.converters.model import Profile
from stallscope.converters.model.processes import ProcessTimes
from stallscope.converters.scan.compare.comparing import compare
from stallscope.converters.scan.compare.telling import lines
from summary_profiles import SECOND


def test_known_difference() -> None:
    made = compare([run(100)], [run(400, shift=3)])
    assert made.first is not None
    assert (made.first.key.kind, made.first.key.frames) == ("lock", ("step", "train"))
    assert made.first.difference == pytest.approx(0.3, abs=0.005)
    assert 0 < made.first.margin < 0.01
    assert {each.key.kind for each in made.told} == {"lock", "cpu"}
    assert sum(each.difference for each in made.told) == pytest.approx(0)
    assert next(lines(made)).startswith(
        "Most of what is new is train: lock in step → train │ futex_wait: 0.10 → 0.40 s"
    )


def test_equal_runs_have_no_difference() -> None:
    made = compare([run(100)], [run(100, shift=4)])
    assert not made.changes
    assert next(lines(made)) == "Nothing takes more time than before, beyond noise."


def test_length_and_pids_do_not_matter() -> None:
    made = compare([run(100)], [run(100, slices=20, pids=(4711,))])
    assert not made.changes
    assert not made.processes


def test_one_process_more() -> None:
    made = compare([run(100)], [run(100, pids=(7, 8))])
    assert [(each.process, each.before, each.after) for each in made.processes] == [("train", 1, 2)]
    assert {each.key.kind for each in made.told} == {"lock", "cpu"}


def test_ranks_are_matched_by_number() -> None:
    def of(slow: int, pids: tuple[int, int]) -> Profile:
        profile = run(100, pids=pids)
        profile.processes = [ProcessTimes(pid, "train", ranks={"rank": str(i)}) for i, pid in enumerate(pids)]
        profile.slices[1] = run(slow, pids=(pids[1],)).slices[0]
        return profile

    made = compare([of(100, (7, 8))], [of(500, (22, 21))])
    assert made.first is not None
    assert {each.key.rank for each in made.told} == {1}
    assert "train (rank 1): lock" in next(lines(made))


@pytest.mark.parametrize("enough", [False, True])
def test_few_intervals_cannot_tell(enough: bool) -> None:
    number = thresholds.COMPARED_INTERVALS - (not enough)
    made = compare([run(100, slices=number)], [run(400, slices=number)])
    assert made.judged is enough
    assert bool(made.told) is enough
    assert next(lines(made)).startswith("Change cannot be told from noise") is not enough


def test_runs_of_a_side_are_put_together() -> None:
    made = compare([run(100, slices=4), run(100, slices=4)], [run(400, slices=4), run(400, slices=4)])
    assert made.intervals == (8, 8)
    assert made.first is not None
    assert not any("One run" in line for line in lines(made))
    assert any("One run" in line for line in lines(compare([run(100)], [run(400)] * 2)))


@pytest.mark.parametrize(("more", "told"), [(19, False), (21, True)])
def test_smallest_difference(more: int, told: bool) -> None:
    assert bool(compare([run(100)], [run(100 + more)]).told) is told


def test_outlier_is_noise() -> None:
    after = run(100)
    waits = after.slices[0].spent[0]
    waits.times = (SECOND, *waits.times[1:])
    made = compare([run(100)], [after])
    assert made.changes
    assert not made.told


def test_an_edited_script_matches_itself() -> None:
    before = run(100, place=("train.py:41 step", "lock.py:7 take"))
    after = run(400, place=("train.py:52 step", "lock.py:7 take"))
    made = compare([before], [after])
    assert made.first is not None
    assert made.first.key.frames == ("step", "take")
    assert (made.first.before, made.first.after) == (pytest.approx(0.1, abs=0.01), pytest.approx(0.4, abs=0.01))
    assert not compare([before], [run(100, place=("train.py:52 step", "lock.py:7 take"))]).changes
