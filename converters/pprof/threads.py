"""Places where threads were created, in the data of our own that a profile carries: see `converters.pprof.metadata`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..model import ThreadTimes

_MOST_FUNCTIONS = 1 << 6
"""More than there are in a place."""


def taken_out(entries: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The places of all threads, each once, and whose they are; removes them from ``entries``. None if there are
    none."""
    numbers: dict[tuple[str, ...], int] = {}
    found = []
    for i, entry in enumerate(entries):
        if made_in := entry.pop("made_in"):
            found.append([i, numbers.setdefault(tuple(made_in), len(numbers))])
    return {"places": [list(place) for place in numbers], "of": found} if found else None


def put_back(entry: Any, threads: Sequence[ThreadTimes]) -> None:
    """Gives the threads the places that were taken out of them. ValueError for anything else."""
    if entry is None:
        return
    if not isinstance(entry, dict) or entry.keys() != {"places", "of"}:
        raise ValueError("places of threads")
    places = [_place(each) for each in _list(entry["places"])]
    for each in _list(entry["of"]):
        if not isinstance(each, list) or len(each) != 2 or not all(type(number) is int for number in each):
            raise ValueError("places of threads")
        i, place = each
        if not (0 <= i < len(threads) and 0 <= place < len(places)):
            raise ValueError("places of threads")
        threads[i].made_in = places[place]


def _place(value: Any) -> tuple[str, ...]:
    functions = _list(value)
    if len(functions) > _MOST_FUNCTIONS or not all(isinstance(each, str) for each in functions):
        raise ValueError("functions of a place")
    return tuple(functions)


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError("list expected")
    return value
