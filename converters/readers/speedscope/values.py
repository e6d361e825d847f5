"""Checked access to values of speedscope's JSON. ValueError says which part of a file is invalid."""

from __future__ import annotations

from typing import Any

MAX_VALUE = 1 << 63
"""All numbers, and weights and times in nanoseconds, must be smaller."""

_JSON = {dict: "object", list: "array", str: "string", int: "whole number"}


def typed(value: Any, kind: type, what: str) -> Any:
    """The value, which must be of type dict, list, str or int."""
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError(f"{what} should be a JSON {_JSON[kind]}")
    return value


def number(value: Any, what: str) -> float:
    """A time or weight."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < MAX_VALUE:
        raise ValueError(f"a time or weight of {what} is no number, or too large")
    return value


def weight(value: Any, what: str) -> float:
    """A non-negative number."""
    if (checked := number(value, what)) < 0:
        raise ValueError(f"{what} has a weight below 0")
    return checked
