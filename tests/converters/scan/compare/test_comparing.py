from __future__ import annotations

import pytest
from compare_profiles import run, runs
from stallscope.converters.model import Profile, ValueType
from stallscope.converters.model.processes import ProcessTimes
from stallscope.converters.model.slices import SliceSpent, ThreadSlices
from stallscope.converters.rules.verdict import IDLE
from stallscope.converters.scan.compare.comparing import compare
from stallscope.converters.scan.compare.telling import lines
from summary_profiles import MS, SECOND, empty
from verdict_profiles import FSYNC, one


def test_known_difference() -> None:
    made = compare(runs(100), runs(400))
    assert made.judged
    assert made.first is not None
    assert (made.first.key.kind, made.first.key.frames) == ("lock", ("step", "train"))
    assert made.first.difference == pytest.approx(0.3, abs=0.005)
    assert made.first.welch
    assert 0 < made.first.welch.margin < 0.01
    assert made.tested == 2
    assert {each.key.kind for each in made.told} == {"lock", "cpu"}
    assert sum(each.difference for each in made.told) == pytest.approx(0)
    assert next(lines(made)) == (
        "In each second, train is 0.30 ± 0.00 s longer waiting for a lock in step → train │ futex_wait "
        "(0.10 → 0.40 s, all its threads together): differs (p < 0.0001). It is 0.30 ± 0.00 s shorter on a core."
    )


def test_equal_runs_have_no_difference() -> None:
    made = compare(runs(100), runs(100))
    assert not made.changes
    assert made.tested == 2
    assert next(lines(made)) == "Nothing takes more time than before, beyond the noise between runs."


def test_length_and_pids_do_not_matter() -> None:
    made = compare([run(100)], [run(100, slices=20, pids=(4711,))])
    assert not made.changes
    assert not made.processes


def test_one_process_more() -> None:
    made = compare(runs(100), runs(100, pids=(7, 8)))
    assert [(each.process, each.before, each.after) for each in made.processes] == [("train", 1, 2)]
    assert {each.key.kind for each in made.told} == {"lock", "cpu"}


def test_ranks_are_matched_by_number() -> None:
    def of(slow: int, pids: tuple[int, int]) -> Profile:
        profile = run(100, pids=pids)
        profile.processes = [ProcessTimes(pid, "train", ranks={"rank": str(i)}) for i, pid in enumerate(pids)]
        profile.slices[1] = run(slow, pids=(pids[1],)).slices[0]
        return profile

    made = compare([of(100 + i, (7, 8)) for i in range(3)], [of(500 + i, (22, 21)) for i in range(3)])
    assert made.first is not None
    assert {each.key.rank for each in made.told} == {1}
    assert "train (rank 1) is 0.40 ± 0.00 s longer waiting for a lock" in next(lines(made))


@pytest.mark.parametrize(("before", "after"), [(1, 1), (2, 2), (2, 3), (9, 2)])
def test_few_runs_cannot_tell(before: int, after: int) -> None:
    """Calls nothing a change, however many slices they have, and however much they differ."""
    made = compare(runs(100, before, slices=50), runs(900, after, slices=50))
    assert not made.judged
    assert not made.tested
    assert {each.chance for each in made.changes} == {None}
    assert not any(each.is_change for each in made.changes)
    assert made.first, "it is told all the same"
    first, second, *_ = lines(made)
    assert first.startswith("In each second, train is 0.80 s longer waiting for a lock")
    assert "differs" not in first
    assert "nobody can tell a change from the noise between runs: take at least 3 runs of each" in second
    assert second.endswith("trace-scan --compare A1,A2,A3 B1,B2,B3")
    assert second.startswith("With one run on each side " if before == 1 else f"With {before} runs before and {after} ")


def test_slices_of_a_run_are_no_evidence() -> None:
    """Many slices that differ by chance from those of other runs, as a phase does that is slow in a whole run."""
    made = compare([run(ms, slices=50) for ms in (100, 300, 120)], [run(ms, slices=50) for ms in (280, 310, 190)])
    assert made.judged
    assert made.changes
    assert not made.told


def test_a_run_without_slices_does_not_count() -> None:
    made = compare([*runs(100, 2), Profile([ValueType("wall", "nanoseconds")], duration_ns=SECOND)], runs(400))
    assert (made.runs, made.sliced, made.judged) == ((3, 3), (2, 3), False)
    assert any("Before: 3 runs (2 with slices), 21.0 s; after: 3 runs, 30.0 s." in line for line in lines(made))


@pytest.mark.parametrize(("more", "told"), [(19, False), (21, True)])
def test_smallest_difference(more: int, told: bool) -> None:
    assert bool(compare(runs(100), runs(100 + more)).told) is told


def test_a_run_that_stands_out_is_noise() -> None:
    made = compare(runs(100), [*runs(100, 2), run(900)])
    assert made.changes
    assert not made.told


def test_what_is_more_than_noise_comes_first() -> None:
    def of(before: int, other: int) -> Profile:
        made = run(before)
        made.slices += run(other, name="other", pids=(8,)).slices
        return made

    made = compare([of(100 + i, ms) for i, ms in enumerate((1, 500, 900))], [of(150 + i, 900) for i in range(3)])
    assert [each.key.process for each in made.changes] == ["train", "train", "other", "other"]


def test_idling_comes_last() -> None:

    def of(ms: int) -> Profile:
        made = run(100)
        made.slices.append(ThreadSlices("a", "a", 8, 8, SECOND, 0, [SliceSpent(IDLE, (ms * MS,) * 10)]))
        return made

    one, other = of(100), of(900)
    other.slices[0] = run(200).slices[0]
    assert [each.key.kind for each in compare([one], [other]).changes] == ["lock", "cpu", IDLE]


def test_an_edited_script_matches_itself() -> None:
    before = run(100, place=("train.py:41 step", "lock.py:7 take"))
    after = run(400, place=("train.py:52 step", "lock.py:7 take"))
    made = compare([before], [after])
    assert made.first is not None
    assert made.first.key.frames == ("step", "take")
    assert (made.first.before.rate, made.first.after.rate) == (
        pytest.approx(0.1, abs=0.01),
        pytest.approx(0.4, abs=0.01),
    )
    assert not compare([before], [run(100, place=("train.py:52 step", "lock.py:7 take"))]).changes


def test_verdicts_are_of_both_sides() -> None:
    (pair,) = compare([empty()], [one(FSYNC, 9 * SECOND, state="uninterruptible", runs=SECOND)]).verdicts
    assert pair.before is None
    assert pair.after
    assert pair.after.kind == "io"
