from __future__ import annotations

from dataclasses import replace

import pytest
from compare_profiles import run, runs, side, with_steps
from lock_profiles import HOSTILE
from stallscope.converters.facts.wait_kinds import HALTED
from stallscope.converters.phrases.slices import DOES
from stallscope.converters.rules.verdict import IDLE
from stallscope.converters.scan.compare.changes import Change
from stallscope.converters.scan.compare.comparing import Comparison, compare
from stallscope.converters.scan.compare.first import answer, caveat
from stallscope.converters.scan.compare.intervals import Key
from stallscope.converters.scan.compare.statistic import Welch
from summary_profiles import SECOND

NONE = Comparison((SECOND, SECOND), (10, 10), (3, 3), (3, 3), (), (), (), ())

NOTHING = "Nothing takes more time than before, beyond the noise between runs."


def change(kind: str, before: float, after: float, process: str = "train") -> Change:
    return Change(Key(process, None, kind), side(before), side(after), Welch(0.001, 0.01, 1e9), 0.002)


def test_what_takes_less_time_is_told_if_nothing_takes_more() -> None:
    made = replace(NONE, changes=(change(IDLE, 0.1, 0.5), change("lock", 0.5, 0.1)))
    assert answer(made) == (
        f"{NOTHING} In each second, train is 0.40 ± 0.02 s shorter waiting for "
        "a lock (0.50 → 0.10 s, all its threads together): differs (p = 0.002)."
    )
    assert answer(replace(NONE, changes=(change(IDLE, 0.5, 0.1),))) == NOTHING


def test_time_that_another_process_spends_less_is_not_its_own() -> None:
    made = replace(NONE, changes=(change("io", 0.1, 0.5), change("cpu", 0.9, 0.5, "other")))
    assert "shorter" not in answer(made)
    assert "It is 0.40 ± 0.02 s shorter on a core." in answer(
        replace(made, changes=(*made.changes, change("cpu", 0.9, 0.5)))
    )


def test_noise_is_not_told() -> None:
    noise = replace(change("cpu", 0.9, 0.5), chance=0.5)
    assert "shorter" not in answer(replace(NONE, changes=(change("io", 0.1, 0.5), noise)))
    assert answer(replace(NONE, changes=(noise,))) == NOTHING


@pytest.mark.parametrize("kind", sorted(set(DOES) - {IDLE, HALTED}))
def test_each_kind_of_a_slice_has_words(kind: str) -> None:
    """Leaves out those who are stopped, whose kind is a word."""
    assert f"longer {kind} (" not in answer(replace(NONE, changes=(change(kind, 0.1, 0.5),)))


def test_hostile_names() -> None:
    told = answer(compare([run(100, name=HOSTILE)], [run(400, name=HOSTILE)]))
    assert not {"\x1b", "\n", "\u202e"} & set(told)
    told.encode()


def test_little_is_told_as_such_whatever_the_number_of_runs() -> None:
    made = compare([run(100)], [run(100)])
    assert answer(made) == "Nothing takes 0.02 s more of each second than before."
    assert caveat(made)


@pytest.mark.parametrize(("before", "after", "side"), [(0, 10, "before"), (10, 0, "after"), (0, 0, "before")])
def test_sides_without_slices(before: int, after: int, side: str) -> None:
    made = replace(NONE, intervals=(before, after), sliced=(int(before > 0), int(after > 0)))
    assert answer(made) == (
        f"There is nothing to compare: what is {side} has no slices of time, as captures of trace-scan have."
    )


def test_what_few_runs_cannot_tell_is_about_the_steps_if_these_are_told() -> None:
    """Three runs of a side, of which two have steps."""
    before, after = (runs(100), runs(100))
    for each in before:
        with_steps(each)
    for each in after[1:]:
        with_steps(each, load_ms=60)
    made = compare(before, after)
    assert made.judged
    assert answer(made).startswith("A step of")
    assert "differs" not in answer(made)
    assert caveat(made).startswith("With 3 runs before and 2 after")
    with_steps(after[0], load_ms=61)
    made = compare(before, after)
    assert "(+67 %), which differs (p = 0.00036): +30.3 ms in" in answer(made)
    assert not caveat(made)
