"""Remarks in the data of our own that a profile carries: see `converters.pprof.metadata`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, fields
from typing import Any

from ..model.remarks import CODES, Comment, Remark, plain

_LONGEST, _MOST, _DEEPEST = 4096, 1024, 8


def encoded(comments: Sequence[Comment]) -> list[list[Any]]:
    """Plain data for JSON, for `put_back`: of each remark its place among the comments, and itself."""
    return [[i, each] for i, each in enumerate(plain(comments)) if not isinstance(each, str)]


def put_back(entries: Any, comments: list[Comment]) -> None:
    """Puts remarks to their places. ValueError for anything that `encoded` did not make."""
    _require(isinstance(entries, list) and len(entries) <= _MOST)
    for entry in entries:
        _require(isinstance(entry, list) and len(entry) == 2)
        at, remark = entry
        _require(_is_number(at) and at <= len(comments))
        comments.insert(at, _remark(remark, _DEEPEST))


def _remark(entry: Any, depth: int) -> Remark:
    _require(isinstance(entry, dict) and depth > 0)
    code = entry.get("code")
    _require(isinstance(code, str) and code in CODES)
    made = CODES[code]
    types = {field.name: str(field.type) for field in fields(made)}
    given = entry.keys() - {"code"}
    later = {field.name for field in fields(made) if field.default is not MISSING}
    _require(types.keys() - later <= given <= types.keys())
    return made(**{name: _value(entry[name], kind, depth) for name, kind in types.items() if name in given})


def _value(value: Any, kind: str, depth: int) -> Any:
    if kind == "int":
        _require(_is_number(value))
    elif kind == "bool":
        _require(isinstance(value, bool))
    elif kind == "str":
        _require(_is_text(value))
    elif kind == "tuple[str, ...]":
        _require(isinstance(value, list) and all(map(_is_text, value)))
        return tuple(value)
    elif kind == "tuple[tuple[str, int], ...]":
        _require(isinstance(value, list) and all(isinstance(each, list) and len(each) == 2 for each in value))
        _require(all(_is_text(name) and _is_number(number) for name, number in value))
        return tuple(map(tuple, value))
    else:
        assert kind == "Comment", kind
        return value if _is_text(value) else _remark(value, depth - 1)
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 64


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _LONGEST


def _require(condition: bool) -> None:
    if not condition:
        raise ValueError("remarks")
