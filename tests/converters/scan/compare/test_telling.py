from __future__ import annotations

import json
from dataclasses import replace
from itertools import takewhile

import pytest
from compare_profiles import run, runs, side, with_steps
from scans import HOSTILE
from stallscope.converters.facts import thresholds
from stallscope.converters.model import Profile, ValueType
from stallscope.converters.model.locks import PROCESS
from stallscope.converters.rules.verdict import IDLE
from stallscope.converters.scan.compare.changes import Change
from stallscope.converters.scan.compare.comparing import Comparison, Row, compare
from stallscope.converters.scan.compare.intervals import Key
from stallscope.converters.scan.compare.locks import LockChange, LockKey, LockSide
from stallscope.converters.scan.compare.moved import Moved
from stallscope.converters.scan.compare.telling import lines, to_json
from stallscope.converters.scan.compare.verdicts import Held, Pair
from summary_profiles import SECOND


def test_hostile_names() -> None:
    made = compare([run(100, name=HOSTILE)], [run(400, name=HOSTILE)])
    text = "\n".join(lines(made))
    assert "\x1b" not in text
    assert "\u202e" not in text
    json.dumps(to_json(made)).encode("ascii")
    text.encode()


def test_report_fits_a_screen() -> None:
    few, many = ([run(ms, pids=(i,), name=f"p{i}") for i in range(40)] for ms in (100, 400))
    types = [ValueType("wall", "nanoseconds")]
    one, other = Profile(types, duration_ns=10 * SECOND), Profile(types, duration_ns=10 * SECOND)
    one.slices = [each.slices[0] for each in few[:20]]
    other.slices = [each.slices[0] for each in many]
    assert len(list(lines(compare([one], [other])))) <= 40


NONE = Comparison((SECOND, SECOND), (10, 10), (3, 3), (3, 3), (), (), (), ())


def table(made: Comparison, head: str) -> list[str]:
    """Lines below this head, up to the next empty one."""
    told = list(lines(made))
    start = next(i for i, line in enumerate(told) if line.startswith(head)) + 1
    return list(takewhile(bool, told[start:]))


def test_functions_and_calls_have_tables() -> None:
    made = replace(
        NONE,
        functions=(Moved("train", 3, "step\x1b[2J", 0.5, 1.25),),
        calls=(Moved("train", None, "ncclAllReduce", 1.0, 0.25),),
    )
    (function,) = table(made, "Functions that run")
    assert function.startswith("    0.50     1.25    +0.75  train (rank 3): step")
    assert "\x1b" not in function
    assert table(made, "Calls") == ["    1.00     0.25    -0.75  train: ncclAllReduce"]
    data = to_json(made)
    assert data["functions"][0] | {"name": ""} == {
        "process": "train",
        "rank": 3,
        "name": "",
        "before": 0.5,
        "after": 1.25,
    }
    assert data["calls"][0]["after"] == 0.25


HELD = Held("lock", ("step", "take"), "futex_wait", 0.2, 0.1)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (HELD, HELD._replace(rate=0.8, share=0.4), "lock in step → take │ futex_wait, 10.0 %, now 40.0 %"),
        (
            HELD,
            Held("io", ("save",), "", 0.8, None),
            "lock in step → take │ futex_wait, 10.0 %; now io in save, 0.80 s per s",
        ),
        (None, HELD, "not there; now lock in step → take │ futex_wait, 10.0 %"),
        (HELD, Held(IDLE, (), "", 0.0, None), "lock in step → take │ futex_wait, 10.0 %; now not held up"),
    ],
)
def test_verdicts(before: Held | None, after: Held | None, told: str) -> None:
    made = replace(NONE, verdicts=(Pair("train", 1, before, after),))
    assert table(made, "Verdicts that differ") == [f"  train (rank 1): {told}"]
    (data,) = to_json(made)["verdicts"]
    assert (data["process"], data["rank"], data["differs"]) == ("train", 1, True)
    assert data["before"] == (before and {**before._asdict(), "frames": list(before.frames)})


def test_verdicts_that_do_not_differ_are_in_the_json_only() -> None:
    made = replace(NONE, verdicts=(Pair("train", 1, HELD, HELD),))
    assert not any("erdict" in line for line in lines(made))
    assert to_json(made)["verdicts"][0]["differs"] is False


def test_hostile_names_in_verdicts() -> None:
    held = Held("lock", (HOSTILE,), HOSTILE, 0.2, 0.1)
    made = replace(NONE, verdicts=(Pair(HOSTILE, None, None, held),))
    text = "\n".join(lines(made))
    assert not {"\x1b", "\u202e"} & set(text)
    text.encode()
    json.dumps(to_json(made)).encode("ascii")


def test_no_table_is_longer_than_its_limit() -> None:
    number = 40
    moved = tuple(Moved("train", i, "f", 0.0, 1.0) for i in range(number))
    rows = tuple(Row("train", i, 1, 2) for i in range(number))
    pairs = tuple(Pair("train", i, None, HELD) for i in range(number))
    changes = tuple(Change(Key("train", i, "lock"), side(0.1), side(0.4)) for i in range(number))
    made = replace(
        NONE, runs=(1, 1), sliced=(1, 1), changes=changes, functions=moved, calls=moved, processes=rows, verdicts=pairs
    )
    told = list(lines(made))
    assert len(table(made, "  Before")) == thresholds.COMPARED_ROWS == 10
    assert len(table(made, "Functions")) == thresholds.COMPARED_MOVED == 4
    assert len(table(made, "Verdicts")) == thresholds.COMPARED_VERDICTS == 6
    assert sum("process before" in line for line in told) == thresholds.COMPARED_NUMBERS == 3
    assert len(told) <= 40
    assert all(len(to_json(made)[key]) == number for key in ("changes", "functions", "calls", "verdicts", "processes"))


def test_tables_that_do_not_fit_a_screen_are_cut_at_its_end() -> None:
    """Steps come first, calls last; how many processes there are is above all."""
    before, after = run(100), run(400)
    for i in range(9):
        with_steps(before, name=f"f{i}", pid=i)
        with_steps(after, 20, 60, name=f"f{i}", pid=i)
    moved = tuple(Moved("train", i, "f", 0.0, 1.0) for i in range(40))
    pairs = tuple(Pair("train", i, None, HELD) for i in range(40))
    changes = tuple(Change(Key("train", i, "lock"), side(0.1), side(0.4)) for i in range(40))
    rows = tuple(Row("train", i, 1, 2) for i in range(40))
    none = LockSide(0.0, 0.0)
    key = LockKey("train", None, PROCESS, "mutex", "table", ())
    locked = tuple(LockChange(key._replace(rank=i), none, none) for i in range(40))
    steps = compare([before], [after]).steps
    made = replace(
        NONE,
        changes=changes,
        functions=moved,
        calls=moved,
        processes=rows,
        verdicts=pairs,
        steps=steps,
        locks=locked,
        runs=(1, 1),
        sliced=(1, 1),
    )
    told = list(lines(made))
    assert len(told) == 40
    assert len(table(made, "Steps")) == 9
    assert len(table(made, "  Before")) == 10
    assert len(table(made, "Locks")) == 4
    assert len(table(made, "Verdicts")) == 2
    assert not any(line.startswith(("Functions", "Calls")) for line in told)
    assert [i for i, line in enumerate(told) if "process before" in line] == [4, 5, 6]


def test_one_run_of_each_has_the_range_of_its_slices() -> None:
    told = list(lines(compare([run(100)], [run(400)])))
    head = next(i for i, line in enumerate(told) if line.startswith("  Before"))
    assert told[head] == "  Before    After   Change  Slices before  Slices after  What"
    assert "    0.10     0.40    +0.30  0.10-0.10      0.40-0.41     train: lock in step → train │ futex_wait" in told


def test_several_runs_of_each_have_their_range() -> None:
    made = compare([run(100), run(200)], [run(400), run(450)])
    (row, *_) = [line for line in table(made, "  Before    After   Change  Runs before") if "lock" in line]
    assert row.startswith("    0.15     0.43    +0.28  0.10-0.20      0.40-0.45     train: lock")


def test_tested_runs_have_a_margin_and_a_probability() -> None:
    made = compare(runs(100), [run(ms) for ms in (350, 400, 460)])
    (row, *_) = [line for line in table(made, "  Before    After   Change      ±  Test") if "lock" in line]
    assert row == "    0.10     0.40    +0.30   0.14  differs (p = 0.022)   train: lock in step → train │ futex_wait"
    change = next(each for each in to_json(made)["changes"] if each["kind"] == "lock")
    assert change["is_change"]
    assert change["chance"] == pytest.approx(0.0216, abs=0.001)
    assert change["runs"][1] == pytest.approx([0.35, 0.40, 0.46], abs=0.001)
    assert change["slices"][0] == pytest.approx([0.095, 0.106])
    assert to_json(made)["tested"] == 2


def test_shares_that_are_the_same_are_told_as_times() -> None:
    """More threads are held up for the same share of their time."""
    made = replace(NONE, verdicts=(Pair("train", 1, HELD, HELD._replace(rate=0.8)),))
    assert table(made, "Verdicts that differ") == [
        "  train (rank 1): lock in step → take │ futex_wait, 0.20 s per s, now 0.80 s per s"
    ]
