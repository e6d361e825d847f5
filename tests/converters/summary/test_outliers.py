"""Ranks against their median: rank 3 of 8 is the slow one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from alike import MS, of_calls, of_waits
from stallscope.converters.model import Profile
from stallscope.converters.summary.outliers import Group, Measure
from stallscope.converters.summary.summarize import summarize


def group(profile: Profile) -> Group:
    (found,) = summarize(profile).alike
    return found


def test_rank_3_of_8_stands_out() -> None:
    found = group(of_calls())
    assert [member.rank for member in found.members] == list(range(8))
    assert [member.pid for member in found.members] == list(range(107, 99, -1))
    assert found.outliers == {3}
    assert [(measure.name, measure.call) for measure in found.measures] == [
        ("in calls", ""), ("time", "cuMemAlloc_v2"), ("mean", "cuMemAlloc_v2"), ("blocked", ""),
    ]  # fmt: skip
    assert [measure.outliers for measure in found.measures] == [{3}] * 4
    assert found.measures[0].values[3] == 10 * 5 * 2_030_000
    assert found.measures[1].values[0] == 9 * 2 * MS
    assert found.measures[2].median == pytest.approx(0.9 * 2_045_000, rel=0.01)
    assert found.measures[3].values == (0.5, 0.5, 0.5, 0.9, 0.5, 0.5, 0.5, 0.5)


def test_nobody_stands_out_by_a_little() -> None:
    assert group(of_calls(factor=1)).outliers == {3}, "by the share that is blocked alone"
    assert [measure.outliers for measure in group(of_calls(factor=1)).measures[:3]] == [set()] * 3


def test_processes_of_one_program_are_compared_too() -> None:
    found = group(of_calls(ranks=False))
    assert (found.program, found.are_ranks, len(found.members)) == ("train", False, 8)
    assert [found.members[i].pid for i in found.outliers] == [104]
    assert group(of_calls(slow=1, number=3, ranks=False)).outliers == {1}


def test_two_are_no_group_unless_they_are_ranks() -> None:
    assert summarize(of_calls(number=2, ranks=False)).alike == ()
    assert group(of_calls(number=2, slow=1)).outliers == frozenset(), "against each other nobody is the odd one"


def test_a_rank_without_calls_is_there() -> None:
    made = of_calls()
    made.calls = [call for call in made.calls if call.pid != 104]
    found = group(made)
    assert found.measures[0].values[3] == 0
    assert found.measures[1].values[3] is None
    assert 3 in found.measures[0].outliers


def test_groups_with_little_time_are_left_out() -> None:
    made, small = of_calls(), of_calls(ranks=False, name="small")
    for call in small.calls:
        call.pid += 1000
        call.total //= 1000
        call.inner //= 1000
        made.calls.append(call)
    for process in small.processes:
        process.pid += 1000
        made.processes.append(process)
    assert [each.program for each in summarize(made).alike] == ["train"]


@pytest.mark.parametrize(
    ("unit", "values", "outliers"),
    [
        ("nanoseconds", (10, 10, 10, 100), {3}),
        ("nanoseconds", (10, 10, 10, 12), set()),
        ("nanoseconds", (10, 20, 30, 40, 70), set()),
        ("nanoseconds", (10, 10, None, 1), {3}),
        ("nanoseconds", (10, 100), set()),
        ("nanoseconds", (None, None, None), set()),
        ("nanoseconds", (0, 0, 0, 0), set()),
        ("share", (0.5, 0.5, 0.5, 0.55), set()),
        ("share", (0.9, 0.9, 0.9, 0.2), {3}),
    ],
)
def test_what_stands_out(unit: Any, values: tuple[float | None, ...], outliers: set[int]) -> None:
    assert Measure("x", unit, values).outliers == outliers


def test_the_straggler_is_the_rank_that_waits_least() -> None:
    found = group(of_waits(dict.fromkeys(range(8), 80) | {3: 10}))
    assert [(measure.name, measure.unit) for measure in found.measures] == [
        ("blocked", "share"), ("queued", "share"),
    ]  # fmt: skip
    assert found.outliers == {3}
    assert found.measures[0].values[3] == pytest.approx(0.1)


def test_waits_are_compared_of_ranks_only() -> None:
    assert summarize(of_waits(dict.fromkeys(range(8), 80), ranks=False)).alike == ()


def test_json() -> None:
    made = of_calls()
    made.processes[0].process = made.threads[0].process = "train"
    made.processes[0].ranks["cuda-visible-devices"] = "\udcff"
    (found,) = json.loads(json.dumps(summarize(made).to_json()["alike"]))
    assert found["program"] == "train"
    assert [each["unit"] for each in found["medians"]] == ["nanoseconds"] * 3 + ["share"]
    slow, last = found["processes"][3], found["processes"][7]
    assert (slow["rank"], slow["pid"], slow["outlier"]) == (3, 104, [True] * 4)
    assert slow["values"][0] == 10 * 5 * 2_030_000
    assert last["labels"] == {"cuda-visible-devices": "\\xff", "gpu": "0", "rank": "7"}
