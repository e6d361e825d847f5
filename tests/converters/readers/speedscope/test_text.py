from __future__ import annotations

import io
import itertools
import json

import pytest
from stallscope.converters.readers.base.source import Source
from stallscope.converters.readers.speedscope.json import JsonParts
from stallscope.converters.readers.speedscope.text import Shape, Shapes, code_of

EVENTS = [("O", 0, 1), ("O", 12, 1.5), ("C", 12, 2e3), ("C", 0, 2000), ("O", 7, 2001)]
ORDERS = list(itertools.permutations(("type", "frame", "at")))


def shape_of(text: str) -> Shape | None:
    parts = JsonParts(Source(io.BytesIO(text.encode()), "x"))
    assert parts.next() == "{"
    return Shapes().find(parts)


def listed(order: tuple[str, ...], separators: tuple[str, str]) -> str:
    events = [dict(zip(("type", "frame", "at"), event, strict=True)) for event in EVENTS]
    return json.dumps([{key: event[key] for key in order} for event in events], separators=separators)[1:-1]


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": "), (" ,\n", " : ")])
@pytest.mark.parametrize("order", ORDERS)
def test_events_in_any_order_of_their_keys(order: tuple[str, ...], separators: tuple[str, str]) -> None:
    text = listed(order, separators)
    shape = shape_of(text)
    assert shape is not None
    run = text[: text.rindex(shape.between)]
    assert shape.events(run) == ([0, 12, ~12, ~0], [1, 1.5, 2e3, 2000])
    assert text[len(run) + shape.step :].startswith("{")


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("was", "now"),
    [
        ('"frame": 12', '"frame": "12"'),
        ('"frame": 12', '"frame": -1'),
        ('"frame": 12', '"frame": 012'),
        ('"frame": 12', '"frame": true'),
        ('"frame": 12', '"frame": 12, "x": 1'),
        ('"frame": 12', '"name": 12'),
        ('"at": 1.5', '"at": NaN'),
        ('"at": 1.5', '"at": Infinity'),
        ('"at": 1.5', '"at": 01.5'),
        ('"at": 1.5', '"at": "1.5"'),
        ('"at": 1.5', '"at": 1.5, "at": 1.5'),
        ('"at": 1.5', '"a": 1.5'),
        ('"at": 1.5', '"at": @1.5'),
        ('"at": 1.5', '"at": 1.5#'),
        ('"at": 1.5', f'"at": {1 << 63}'),
        ('"type": "C"', '"type": "X"'),
        ('"type": "C"', '"type": {}'),
        ("}, {", "},{"),
    ],
)
def test_events_of_another_shape_are_left(order: tuple[str, ...], was: str, now: str) -> None:
    text = listed(order, (", ", ": "))
    shape = shape_of(text)
    assert shape is not None
    text = text.replace(was, now, 1)
    with pytest.raises(ValueError, match=r"shape|event|times|Expecting|Extra data|delimiter"):
        shape.events(text[: text.rindex(shape.between)])


@pytest.mark.parametrize("text", ['{"a": 1}, {', '{"type": "O", "frame": 1}, {', '{"type": "O", "frame": 1, "at": 2}'])
def test_no_shape(text: str) -> None:
    assert shape_of(text) is None


def test_codes() -> None:
    assert [code_of("O", 3), code_of("C", 3), code_of("C", 0)] == [3, -4, -1]
    assert [code_of("X", 3), code_of("O", True), code_of("O", 1 << 31), code_of("O", -1), code_of([], 1)] == [None] * 5
