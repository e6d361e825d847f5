from __future__ import annotations

import pytest
from stallscope.converters.readers.chrome.shapes import DIGITS, PARSED, Shape, Shapes

CALL = b'"ph": "X", "name": "f", "pid": 1, "tid": 2, "ts": 5.250, "dur": 7, "args": {"id": 3}'


def shape_of(event: bytes, *, arguments: bool = False) -> Shape:
    return Shapes(arguments=arguments).of([event] * 2, [event.translate(None, DIGITS)] * 2)[0]


@pytest.mark.parametrize(
    ("event", "shape", "text", "times"),
    [
        (
            CALL,
            Shape(b'"ts": ', b', "dur": '),
            b'"ph": "X", "name": "f", "pid": 1, "tid": 2, ',
            (b"5", b"250", b"7", b""),
        ),
        (
            b'"tid":2,"ts":5,"dur":7.1,"name":"f","ph":"X"',
            Shape(b'"ts":', b',"dur":', whole=True),
            b'"tid":2,"name":"f","ph":"X"',
            (b"5", b"", b"7", b"1"),
        ),
        (
            b'"cat":"x","dur":7,"name":"f","ph":"X","pid":1,"ts":5,"tts":9',
            Shape(b'"dur":', b'"ts":', apart=True, swapped=True),
            b'"cat":"x","name":"f","ph":"X","pid":1,',
            (b"5", b"", b"7", b""),
        ),
        (
            b'"ts":5,"id":1,"dur":7,"ph":"X"',
            Shape(b'"ts":', b'"dur":', apart=True, whole=True),
            b'"id":1,"ph":"X"',
            (b"5", b"", b"7", b""),
        ),
        (b'"name": "f", "ph": "B", "ts": 5\n', Shape(b'"ts": '), b'"name": "f", "ph": "B", ', (b"5", b"", b"", b"")),
        (
            b'"ph": "E", "ts": 5.0, "pid": 3',
            Shape(b'"ts": ', whole=True),
            b'"ph": "E",  "pid": 3',
            (b"5", b"0", b"", b""),
        ),
        (
            b'"ph": "E", "ts": 5, "id": 3',
            Shape(b'"ts": '),
            b'"ph": "E", ',
            (b"5", b"", b"", b""),
        ),
    ],
)
def test_shapes_of_calls(event: bytes, shape: Shape, text: bytes, times: tuple[bytes, ...]) -> None:
    assert shape_of(event) == shape
    assert shape.texts([event, event]) == [text, text]
    assert shape.times([event, event]) == [times, times]


@pytest.mark.parametrize(
    "event",
    [
        b'"ph": "X", "ts": 5',
        b'"ph": "X", "ts": "5", "dur": 1',
        b'"ph": "X", "ts": 5e3, "dur": 1',
        b'"ph": "X", "ts": -5, "dur": 1',
        b'"ph": "X", "ts": 5, "dur": 1, "args": {"ts": 4}',
        b'"ph": "X", "args": {"ts": 5, "dur": 1}',
        b'"ph": "X", "args": {"ts": 5}, "dur": 1',
        b'"ph": "X", "a": [{"ts": 5, "dur": 1}]',
        b'"ph": "X", "name": "ts", "ts": 5, "dur": 1',
        b'"ph": "X", "name": "\\"ts\\": 5, ", "dur": 1',
        b'"ph": "X", "ts": 5, "dur": 1, "ph": "C"',
        b'"args": {"ph": "X"}, "ts": 5, "dur": 1',
        b'"ph": "1", "ts": 5',
        b'"ph": "M", "ts": 5',
        b'"ph": "P", "sf": 5',
        b'"ph": null, "ts": 5',
        b'"ph": "X", "ts": 5 "dur": 1',
        b'"ph": "X", "ts": 5, "dur": 1}',
        b"",
    ],
)
def test_what_has_to_be_parsed(event: bytes) -> None:
    assert shape_of(event) is PARSED


def test_other_events_and_arguments() -> None:
    assert shape_of(b'"ph": "C", "ts": 5, "args": {"bytes": 3}') == Shape(phase="C")
    assert shape_of(CALL, arguments=True) == shape_of(CALL)._replace(arguments=True)
    assert list(shape_of(CALL, arguments=True).behind([CALL])) == [b' "args": {"id": 3}']
    assert next(iter(shape_of(CALL).behind([CALL]))) == b""
    assert shape_of(b'"args": {"id": 3}, "ph": "X", "ts": 5, "dur": 1', arguments=True) is PARSED
    assert shape_of(CALL.replace(b'{"id": 3}', b"{}"), arguments=True) == shape_of(CALL)
    assert shape_of(b'"ph": "X", "ts": 5, "dur": 1, "args": {"line": 3}', arguments=True) is not PARSED


def test_a_shape_is_parsed_once_and_is_the_same_object(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = Shapes(arguments=False)
    events = [CALL, CALL.replace(b"3", b"44"), CALL.replace(b"f", b"g5"), CALL.replace(b"f", b"g6")]
    found = shapes.of(events, [event.translate(None, DIGITS) for event in events])
    assert found[0] is found[1] is found[2] is found[3]
    monkeypatch.setattr(shapes, "parse", None)
    assert shapes.of(events, [event.translate(None, DIGITS) for event in events]) == found


def test_a_shape_is_learned_when_it_comes_again() -> None:
    shapes = Shapes(arguments=False)
    bare = CALL.translate(None, DIGITS)
    assert shapes.of([CALL], [bare]) == [PARSED]
    assert shapes.of([CALL], [bare]) == [shape_of(CALL)]


def test_unusual_numbers_are_told_by_their_absence() -> None:
    shape = shape_of(CALL)
    for number in (b"-5", b"5e3", b'"5"', b"99999999999999999", b"5.", b"null"):
        assert len(shape.times([CALL, CALL.replace(b"5.250", number), CALL])) < 3
