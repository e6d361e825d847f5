from __future__ import annotations

import json
from dataclasses import replace

from stallscope.converters.model import Frame
from stallscope.converters.model.steps import Spent
from stallscope.converters.summary.step_sentences import each_function, sentences, steps_json
from stallscope.converters.summary.steps import steps_of
from step_traces import BATCH, recorded, slow


def test_json_and_the_sentence() -> None:
    found = steps_of(recorded())[0]
    told = steps_json(found)
    json.dumps(told)
    assert told["steps"]["runnable_ns"] == 30
    assert told["between_share"] == 0.2
    assert told["slowest"][0]["number"] == 2
    assert sentences([found]) == (
        "3 steps of demo:train_step take 106 ns in the mean in thread 7 of python3: 56.2 % of it on a core, "
        "34.4 % blocked (34.4 % in train_step → synchronise → read); 40 ns are between two steps, "
        "20.0 % of the loop.",
    )
    assert told["slow"] is None


def test_slow_steps_are_told_as_a_group() -> None:
    """The group has 40 % of its time blocked, in the place of one wait."""
    found = replace(steps_of(recorded())[0], steps=Spent(100, 1000, 700, 200), slow=slow(20))
    assert sentences([found])[0] == (
        "Every 20th step of demo:train_step (number 3, 23, …) takes 100 ns in the mean, the others 5 ns: these 5 steps "
        "have 50.0 % of the steps' time; what they take more: 47 ns on a core, 40 ns blocked (38 ns a step in save → "
        "fsync, 39 ns a step in load), 8 ns runnable without a core."
    )
    told = steps_json(found)["slow"]
    assert (told["every"], told["first"], told["steps"]["count"], told["others"]["count"]) == (20, 3, 5, 95)
    irregular = replace(found, slow=slow(None))
    assert sentences([irregular])[0].startswith(
        "5 of the steps of demo:train_step take more than 3 times the median, 100 ns in the mean, the others 5 ns: "
        "they have 50.0 % of the steps' time; what they take more: 47 ns"
    )


def test_each_function_has_its_sentence() -> None:
    found = steps_of(recorded())[0]
    others = [replace(found, tid=8), replace(found, name="b"), replace(found, name="c"), replace(found, name="d")]
    assert [(each.name, each.tid) for each in each_function([found, *others])] == [
        (found.name, 7),
        ("b", 7),
        ("c", 7),
        ("d", 7),
        (found.name, 8),
    ]
    assert [text.split()[3] for text in sentences([found, *others])] == [found.name, "b", "c"]


def test_hostile_names_stay_data() -> None:
    hostile = "\x1b[2J\udcff"
    told = steps_json(steps_of(recorded(names=[hostile, hostile], stacks=[(Frame(hostile),), BATCH]))[0])
    json.dumps(told, ensure_ascii=False).encode()
