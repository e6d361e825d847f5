from __future__ import annotations

import json

from compare_profiles import run, with_steps
from scans import HOSTILE
from stallscope.converters.scan.compare.comparing import compare
from stallscope.converters.scan.compare.telling import lines, to_json

PLACE = "step → load_batch → read"


def test_what_a_step_takes_more_is_the_first_sentence() -> None:
    """Nothing differs per second of the trace: both wait for the lock for 100 ms."""
    made = compare([with_steps(run(100))], [with_steps(run(100), 12, 60)])
    first, *rest = lines(made)
    assert first == f"A step of train.py:step takes 77.0 ms instead of 45.0 ms (+71 %): +30.0 ms in {PLACE}."
    assert "   45.00    77.00   +32.00  train.py:step, 100 and 100 steps" in rest
    assert f"   30.00    60.00   +30.00  {PLACE}" in rest
    assert "   10.00    12.00    +2.00  on a core" in rest


def test_a_step_may_take_less() -> None:
    first, *_ = lines(compare([with_steps(run(100))], [with_steps(run(100), 10, 10)]))
    assert first == f"A step of train.py:step takes 25.0 ms instead of 45.0 ms (-44 %): -20.0 ms in {PLACE}."


def test_steps_as_they_were_are_only_in_the_table() -> None:
    first, *rest = lines(compare([with_steps(run(100))], [with_steps(run(100), 10.5)]))
    assert first == "Nothing takes more time than before, beyond noise."
    assert any("train.py:step, 100 and 100 steps" in line for line in rest)


def test_an_edited_script_is_found() -> None:
    (change,) = compare([with_steps(run(1))], [with_steps(run(1), line=77)]).steps
    assert {what for what, one, other in change.moved() if one != other} == set()


def test_several_runs_are_added_up() -> None:
    (change,) = compare([with_steps(run(1)), with_steps(run(1), 30, count=300)], [with_steps(run(1))]).steps
    assert change.before.count == 400
    assert round(change.before.mean) == 60_000_000


def test_what_only_one_side_has_is_not_compared() -> None:
    assert compare([with_steps(run(1))], [run(1)]).steps == ()
    assert compare([with_steps(run(1))], [with_steps(run(1), name="other.py:step")]).steps == ()


def test_as_json_with_hostile_names() -> None:
    made = compare([with_steps(run(1), name=HOSTILE)], [with_steps(run(1), 30, name=HOSTILE)])
    (step,) = json.loads(json.dumps(to_json(made)))["steps"]
    assert (step["counts"], step["before_ns"], step["after_ns"]) == ([100, 100], 45_000_000, 65_000_000)
    assert step["parts"][0] == {"what": "on a core", "before_ns": 10_000_000, "after_ns": 30_000_000}
    assert all(line.isprintable() for line in lines(made))
