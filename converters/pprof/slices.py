"""Slices in the data of our own that a profile carries: see `converters.pprof.metadata`."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from ..model.slices import SliceSpent, ThreadSlices

_MOST = 1 << 64
_MOST_SLICES = 1 << 6
"""More than a trace has: work grows with the square of their number."""
_MOST_ENTRIES = 1 << 16


def decoded(entry: Any) -> ThreadSlices:
    """The slices that ``entry`` was made of, by `dataclasses.asdict`. ValueError for anything else."""
    known = {each.name: str(each.type) for each in fields(ThreadSlices)}
    if not isinstance(entry, dict) or entry.keys() != known.keys():
        raise ValueError("slices")
    spent = [_spent(each) for each in _entries(entry["spent"], _MOST_ENTRIES)]
    if len({len(each.times) for each in spent}) > 1:
        raise ValueError("numbers of slices")
    plain = {name: _value(kind, entry[name]) for name, kind in known.items() if name != "spent"}
    if not plain["length"] or plain["first"] > _MOST_SLICES:
        raise ValueError("length of slices")
    return ThreadSlices(**plain, spent=spent)


def _spent(entry: Any) -> SliceSpent:
    known = {each.name: str(each.type) for each in fields(SliceSpent)}
    if not isinstance(entry, dict) or entry.keys() != known.keys():
        raise ValueError("times of slices")
    return SliceSpent(**{name: _value(kind, entry[name]) for name, kind in known.items()})


def _value(wanted: str, value: Any) -> Any:
    if wanted == "str" and isinstance(value, str):
        return value
    if wanted == "int" and _is_figure(value):
        return value
    if wanted.startswith("tuple"):
        of_numbers = "int" in wanted
        if all(_is_figure(each) if of_numbers else isinstance(each, str) for each in _entries(value, _MOST_SLICES)):
            return tuple(value)
    raise ValueError("figures of slices")


def _is_figure(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST


def _entries(value: Any, most: int) -> list[Any]:
    if not isinstance(value, list | tuple) or len(value) > most:
        raise ValueError("list expected")
    return list(value)
