"""Answers to ``--ask`` in the data of our own that a profile carries: see `converters.pprof.metadata`."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from ..model.asked_values import AskedValues

_MOST = 1 << 64


def decoded(entry: Any) -> AskedValues:
    """The answer that ``entry`` was made of, by `dataclasses.asdict`. ValueError for anything else."""
    _require(isinstance(entry, dict), "an answer expected")
    entry = {"values": [], "others": 0, **entry}  # which files of older versions lack
    _require(entry.keys() == {field.name for field in fields(AskedValues)}, "an answer expected")
    ask, text, name, library = (_text(entry[key]) for key in ("ask", "text", "name", "library"))
    buckets = [(_signed(low), _signed(high), _figure(number)) for low, high, number in _rows(entry["buckets"], 3)]
    values = [(_text(value), _figure(number)) for value, number in _rows(entry["values"], 2)]
    count, total, others = _figure(entry["count"]), _signed(entry["sum"]), _figure(entry["others"])
    return AskedValues(ask, text, name, library, count, total, buckets, values, others)


def _rows(entry: Any, columns: int) -> list[list[Any]]:
    _require(isinstance(entry, list), "list expected")
    _require(all(isinstance(row, list) and len(row) == columns for row in entry), "row of an answer expected")
    return list(entry)


def _text(value: Any) -> str:
    _require(isinstance(value, str), "text expected")
    return str(value)


def _signed(value: Any) -> int:
    _require(isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _MOST, "number expected")
    return int(value)


def _figure(value: Any) -> int:
    _require(isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST, "figure expected")
    return int(value)


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise ValueError(what)
