"""Processes whose calls of communication libraries were all seen."""

from __future__ import annotations

from dataclasses import replace

from collective_calls import MS, NAMES, Table
from stallscope.converters.collectives.watched import watched
from stallscope.converters.model.collectives import Watched


def test_those_that_made_calls_and_those_that_made_none() -> None:
    table = Table()
    table.steps(10, 0, of=2)
    table.reduce(12, 5)
    made = replace(table.made(), watched=frozenset((11, 10)))
    assert watched(made) == [Watched(10, 4), Watched(11, 0)], "12 has functions that nobody watches, too"


def test_a_watchdog_that_asks_is_none_that_meets() -> None:
    table = Table()
    table.add(10, 5, NAMES.index("other"))
    made = table.made()
    names = tuple("ncclCommGetAsyncError" if name == "other" else name for name in NAMES)
    assert watched(replace(made, names=names, watched=frozenset((10,)))) == [Watched(10, 0)]
    assert watched(replace(made, watched=frozenset((10,)))) == [Watched(10, 1)]


def test_nothing_is_known_if_calls_are_missing() -> None:
    """Nobody knows whose they are."""
    table = Table()
    table.reduce(10, 5)
    made = replace(table.made(), watched=frozenset((10, 11)))
    assert watched(replace(made, lost=1)) == []
    assert watched(replace(made, until=3 * MS)) == []
