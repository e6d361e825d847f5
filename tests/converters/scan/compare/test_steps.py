from __future__ import annotations

import json
from dataclasses import replace

import pytest
from compare_profiles import run, with_steps
from scans import HOSTILE
from stallscope.converters.model import Profile
from stallscope.converters.model.steps import Spent
from stallscope.converters.scan.compare.comparing import compare
from stallscope.converters.scan.compare.steps import step_rows
from stallscope.converters.scan.compare.telling import lines, to_json

PLACE = "step → load_batch → read"


def test_what_a_step_takes_more_is_the_first_sentence() -> None:
    """Nothing differs per second of the trace: both wait for the lock for 100 ms."""
    made = compare([with_steps(run(100))], [with_steps(run(100), 12, 60)])
    first, *rest = lines(made)
    assert first == f"A step of train.py:step takes 77.0 ms instead of 45.0 ms (+71 %): +30.0 ms in {PLACE}."
    assert "   45.00    77.00   +32.00  ms of train.py:step, 100 and 100 steps" in rest
    assert f"   30.00    60.00   +30.00  {PLACE}" in rest
    assert "   10.00    12.00    +2.00  on a core" in rest


def test_a_step_may_take_less() -> None:
    first, *_ = lines(compare([with_steps(run(100))], [with_steps(run(100), 10, 10)]))
    assert first == f"A step of train.py:step takes 25.0 ms instead of 45.0 ms (-44 %): -20.0 ms in {PLACE}."


def test_steps_as_they_were_are_only_in_the_table() -> None:
    first, *rest = lines(compare([with_steps(run(100))], [with_steps(run(100), 10.5)]))
    assert first == "Nothing takes 0.02 s more of each second than before."
    assert any("train.py:step, 100 and 100 steps" in line for line in rest)


def test_an_edited_script_is_found() -> None:
    (change,) = compare([with_steps(run(1))], [with_steps(run(1), line=77)]).steps
    assert {what for what, one, other in change.moved() if one != other} == set()


def test_each_run_counts_as_much_as_another() -> None:
    (change,) = compare([with_steps(run(1)), with_steps(run(1), 30, count=300)], [with_steps(run(1))]).steps
    assert change.before.count == 400
    assert round(change.before.mean) == 55_000_000
    assert round(sum(change.before.each().values())) == 55_000_000


def of(*loads: float) -> list[Profile]:
    """Runs whose steps wait for so many ms."""
    return [with_steps(run(100, shift=i), load_ms=each) for i, each in enumerate(loads)]


def test_runs_that_differ_are_noise() -> None:
    made = compare(of(30, 60, 35), of(61, 33, 70))
    (change,) = made.steps
    assert (made.tested, change.is_told, change.is_change) == (3, False, False)
    first, *rest = lines(made)
    assert first == "Nothing takes more time than before, beyond the noise between runs."
    assert any(line.endswith("ms of train.py:step, 300 and 300 steps: noise (p = 1)") for line in rest)


def test_a_difference_of_runs_that_are_alike_is_none() -> None:
    (change,) = compare(of(30, 31, 29), of(60, 61, 59)).steps
    assert change.welch
    assert change.chance == pytest.approx(3 * change.welch.chance), "corrected for the times of slices, too"
    assert change.is_told
    assert change.is_change
    assert change.to_json()["margin_ns"] == round(change.welch.margin)


def test_parts_that_are_the_same_are_not_shown() -> None:
    """Leaves them out even if digits differ behind those shown."""
    (change,) = compare([with_steps(run(1))], [with_steps(run(1), 10.004, 60)]).steps
    assert [row[2:] for row in step_rows(change)] == [
        ("+30.00", "ms of train.py:step, 100 and 100 steps"),
        ("+30.00", PLACE),
    ]
    (change,) = compare([with_steps(run(1))], [with_steps(run(1), 10.004)]).steps
    assert [row[:3] for row in step_rows(change)] == [("45.00", "45.00", "same")]


def test_short_steps_have_digits() -> None:
    """Steps of 5 ms and a pause make the whole; without a pause they are shorter."""
    before, after = (with_steps(run(1), 0.01, ms) for ms in (0.02, 0.05))
    for each in (before, after):
        each.steps[0] = replace(each.steps[0], between=Spent(0, 0, 0, 0))
    (change,) = compare([before], [after]).steps
    assert list(step_rows(change)) == [
        ("30.00", "60.00", "+30.00", "µs of train.py:step, 100 and 100 steps"),
        ("20.00", "50.00", "+30.00", PLACE),
    ]


def test_what_only_one_side_has_is_not_compared() -> None:
    assert compare([with_steps(run(1))], [run(1)]).steps == ()
    assert compare([with_steps(run(1))], [with_steps(run(1), name="other.py:step")]).steps == ()


def test_as_json_with_hostile_names() -> None:
    made = compare([with_steps(run(1), name=HOSTILE)], [with_steps(run(1), 30, name=HOSTILE)])
    (step,) = json.loads(json.dumps(to_json(made)))["steps"]
    assert (step["counts"], step["before_ns"], step["after_ns"]) == ([100, 100], 45_000_000, 65_000_000)
    assert step["parts"][0] == {"what": "on a core", "before_ns": 10_000_000, "after_ns": 30_000_000}
    assert all(line.isprintable() for line in lines(made))
