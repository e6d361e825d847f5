"""Each text of each part of a profile has a rule."""

from __future__ import annotations

import dataclasses
import typing
from typing import Any

from stallscope.converters.anonymous import fields, transform
from stallscope.converters.model import Profile


def test_each_text_in_a_part_has_a_rule() -> None:
    found: set[tuple[str, str]] = set()
    for part in transform.PARTS:
        (hint,) = typing.get_args(typing.get_type_hints(Profile, None, {"Scheduling": object})[part])
        _walk(hint, found, set())
    assert found == fields.RULES.keys()


def _walk(kind: Any, found: set[tuple[str, str]], seen: set[Any]) -> None:
    if kind in seen:
        return
    seen.add(kind)
    for field, hint in typing.get_type_hints(kind).items():
        for leaf in _leaves(hint):
            if leaf is str:
                found.add((kind.__name__, field))
            elif dataclasses.is_dataclass(leaf) or hasattr(leaf, "_fields"):
                _walk(leaf, found, seen)


def _leaves(hint: Any) -> typing.Iterator[Any]:
    arguments = typing.get_args(hint)
    if not arguments:
        yield hint
    for each in arguments:
        yield from _leaves(each)
