"""Values of speedscope's JSON, checked. ValueError says which part of a file is wrong."""

from __future__ import annotations

from typing import Any

MAX_VALUE = 1 << 63
"""No number, and no weight or time in nanoseconds, is as large."""

_JSON = {dict: "object", list: "array", str: "string", int: "whole number"}


def typed(value: Any, kind: type, what: str) -> Any:
    """The value, which has to be a dict, list, str or int."""
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError(f"{what} should be a JSON {_JSON[kind]}")
    return value


def number(value: Any, what: str) -> float:
    """A time or weight."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < MAX_VALUE:
        raise ValueError(f"a time or weight of {what} is no number, or too large")
    return value


def weight(value: Any, what: str) -> float:
    """A number from 0 on."""
    if (checked := number(value, what)) < 0:
        raise ValueError(f"{what} has a weight below 0")
    return checked
