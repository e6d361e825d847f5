"""Names and numbers of ranks that meet."""

from __future__ import annotations

from dataclasses import replace

import pytest
from collective_profiles import UNKNOWN, one_late
from stallscope.converters.facts.collective_names import with_names

OF = replace(one_late(), ranks=tuple(replace(each, rank=UNKNOWN) for each in one_late().ranks))
"""Ranks with the pids 10 to 13."""
ALL = {10: 4, 11: 5, 12: 6, 13: 7, 99: 0}


def test_names_that_are_known() -> None:
    found = with_names(OF, {10: "train train.py", 11: ""}, {})
    assert [each.process for each in found.ranks] == ["train train.py", "train", "train", "train"]
    assert replace(found, ranks=OF.ranks) == OF


def numbers(ranks: dict[int, int]) -> list[int]:
    return [each.rank for each in with_names(OF, {}, ranks).ranks]


def test_numbers_in_the_job() -> None:
    assert numbers(ALL) == [4, 5, 6, 7]


@pytest.mark.parametrize(("job", "numbers"), [(ALL, [4, 5, 6, 7]), ({**ALL, 99: 4}, [0, 1, 2, 3]), ({}, [0, 1, 2, 3])])
def test_a_part_of_the_job(job: dict[int, int], numbers: list[int]) -> None:
    """A communicator of all ranks has numbers of its own."""
    assert [each.rank for each in with_names(one_late(), {}, job).ranks] == numbers


@pytest.mark.parametrize("ranks", [{}, {10: 4, 11: 5, 12: 6}, {**ALL, 13: 4}])
def test_numbers_that_do_not_tell_them_apart(ranks: dict[int, int]) -> None:
    assert numbers(ranks) == [UNKNOWN] * 4
