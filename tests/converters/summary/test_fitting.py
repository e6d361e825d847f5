"""Which parts of a summary are left out first."""

from __future__ import annotations

from itertools import pairwise

import pytest
from stallscope.converters.summary.fitting import Parts, for_few, for_many


def rows(parts: Parts) -> int:
    return parts.top + parts.blocking + parts.locks + parts.path


def test_many_processes_get_less_and_less() -> None:
    steps = for_many()
    assert steps[0] == Parts()
    assert all(rows(less) <= rows(more) for more, less in pairwise(steps))
    assert all(parts.shortened for parts in steps[1:])
    assert rows(steps[-1]) == 3, "a wait, a lock and a part of the path"
    assert not (steps[-1].processes or steps[-1].notes or steps[-1].running or steps[-1].alike or steps[-1].calls)


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("blocking", [False, True])
def test_few_keep_more_waits_as_long_as_that_is_possible(several: bool, blocking: bool) -> None:
    steps = for_few(several=several, blocking=blocking, calls=False)
    assert steps[0] == Parts(8)
    assert steps[-1].top == 1
    assert not steps[-1].running
    assert any(parts.blocking == 2 for parts in steps) == blocking
    assert any(parts.notes and not parts.processes for parts in steps) == several


def test_calls_keep_their_table_of_processes() -> None:
    assert all(parts.processes for parts in for_few(several=True, blocking=False, calls=True))
