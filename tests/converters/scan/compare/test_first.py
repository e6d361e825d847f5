from __future__ import annotations

from dataclasses import replace

import pytest
from compare_profiles import run
from lock_profiles import HOSTILE
from stallscope.converters.facts.wait_kinds import HALTED
from stallscope.converters.phrases.slices import DOES
from stallscope.converters.rules.verdict import IDLE
from stallscope.converters.scan.compare.comparing import Change, Comparison, compare
from stallscope.converters.scan.compare.first import answer
from stallscope.converters.scan.compare.intervals import Key
from summary_profiles import SECOND

NONE = Comparison((SECOND, SECOND), (10, 10), (2, 2), (), (), (), ())


def change(kind: str, before: float, after: float, process: str = "train") -> Change:
    return Change(Key(process, None, kind), before, after, 0.01, 0.001)


def test_what_takes_less_time_is_told_if_nothing_takes_more() -> None:
    made = replace(NONE, changes=(change(IDLE, 0.1, 0.5), change("lock", 0.5, 0.1)))
    assert answer(made) == (
        "Nothing takes more time than before, beyond noise. In each second, train is 0.40 ± 0.01 s shorter waiting for "
        "a lock (0.50 → 0.10 s, all its threads together)."
    )
    assert answer(replace(NONE, changes=(change(IDLE, 0.5, 0.1),))) == (
        "Nothing takes more time than before, beyond noise."
    )


def test_time_that_another_process_spends_less_is_not_its_own() -> None:
    made = replace(NONE, changes=(change("io", 0.1, 0.5), change("cpu", 0.9, 0.5, "other")))
    assert "shorter" not in answer(made)
    assert "It is 0.40 ± 0.01 s shorter on a core." in answer(
        replace(made, changes=(*made.changes, change("cpu", 0.9, 0.5)))
    )


def test_noise_is_not_told() -> None:
    noise = replace(change("cpu", 0.9, 0.5), chance=0.5)
    assert "shorter" not in answer(replace(NONE, changes=(change("io", 0.1, 0.5), noise)))
    assert answer(replace(NONE, changes=(noise,))) == "Nothing takes more time than before, beyond noise."


@pytest.mark.parametrize("kind", sorted(set(DOES) - {IDLE, HALTED}))
def test_each_kind_of_a_slice_has_words(kind: str) -> None:
    """Leaves out those who are stopped, whose kind is a word."""
    assert f"longer {kind} (" not in answer(replace(NONE, changes=(change(kind, 0.1, 0.5),)))


def test_hostile_names() -> None:
    told = answer(compare([run(100, name=HOSTILE)], [run(400, name=HOSTILE)]))
    assert not {"\x1b", "\n", "\u202e"} & set(told)
    told.encode()
