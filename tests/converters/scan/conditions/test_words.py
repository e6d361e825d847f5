from __future__ import annotations

from stallscope.converters.rules.verdict import KINDS
from stallscope.converters.scan.conditions import words


def test_waits_are_of_kinds_that_there_are_each_in_one_quantity() -> None:
    kinds = [kind for each in words.BY_KIND.values() for kind in each]
    assert set(kinds) <= KINDS.keys()
    assert len(kinds) == len(set(kinds))


def test_quantities_of_a_process_are_quantities() -> None:
    assert words.QUANTITIES.keys() >= {*words.WHOLE, *words.BY_KIND}
