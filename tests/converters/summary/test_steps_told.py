from __future__ import annotations

import json
from dataclasses import replace

from stallscope.converters.model import Frame
from stallscope.converters.model.sites import Site
from stallscope.converters.model.steps import SlowSteps, Spent, StepRun, StepWait
from stallscope.converters.summary.steps import steps_of
from stallscope.converters.summary.steps_told import each_function, sentences, steps_json
from step_traces import BATCH, recorded


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


def test_what_runs_in_slow_steps_is_told_by_samples() -> None:
    """Each sample of the slow ones stands for 255 ns / 102; of the others, for 1 ns."""
    steps = replace(steps_of(recorded())[0], steps=Spent(100, 1000, 700, 200), slow=slow(20))
    assert steps.slow
    usual, save, kernel, rare = ("step", "usual"), ("step", "save"), ("step", "read"), ("step", "rare")

    def told(*runs: StepRun, samples: int = 102) -> str:
        spent = replace(steps.slow.spent, samples=samples, ran=runs)
        others = replace(steps.slow.others, samples=380, ran=(StepRun(usual, 330), StepRun(kernel, 50)))
        text = sentences([replace(steps, slow=SlowSteps(spent, others, 3, 20))])[0]
        return text[text.index("more: ") + 6 : text.index(", 40 ns blocked")]

    assert told(StepRun(save, 60), StepRun(usual, 12), StepRun(kernel, 30)) == (
        "47 ns on a core (30 ns a step in step → save, 15 ns a step in step → read, by 102 samples)"
    )
    # Few samples, or not more than chance may bring.
    assert told(StepRun(rare, 9)) == "47 ns on a core"
    assert told(StepRun(usual, 12)) == "47 ns on a core"
    assert told(StepRun((), 80)) == "47 ns on a core"
    assert told() == told(samples=0) == "47 ns on a core"


def slow(every: int | None) -> SlowSteps:
    waits = StepWait(Site(("load",), ""), 195, 5), StepWait(Site(("save", "fsync"), ""), 190, 5)
    spent = Spent(5, 500, 255, 205, waits)
    return SlowSteps(spent, Spent(95, 475, 380, 95, (StepWait(Site(("load",), ""), 190, 95),)), 3, every)


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
