from __future__ import annotations

import io
import json
from typing import Any

import pytest
from stallscope.converters.readers.base import json_stream
from stallscope.converters.readers.base.source import Source
from stallscope.converters.readers.speedscope.events import Events, Nodes
from stallscope.converters.readers.speedscope.json import JsonParts
from stallscope.converters.readers.speedscope.text import Shapes


def events_of(events: Any, *, keep: bool = False) -> Events:
    found = Events(Nodes(), "p", keep=keep)
    text = events if isinstance(events, str) else json.dumps(events)
    found.read(JsonParts(Source(io.BytesIO(text.encode()), "x")), Shapes())
    return found


def listed(*events: tuple[str, int, float]) -> list[dict[str, Any]]:
    return [{"type": kind, "frame": frame, "at": at} for kind, frame, at in events]


def wrong(events: Any, start: Any = 0, count: int = 3) -> str:
    found = events_of(events)
    with pytest.raises(ValueError, match="p") as error:
        found.check(start, count, lambda one, other: {one, other} == {1, 2})
    return str(error.value)


CALLS = listed(("O", 0, 1), ("O", 2, 3), ("C", 2, 7), ("O", 2, 7), ("C", 2, 8), ("C", 0, 8.5), ("O", 1, 9), ("C", 1, 9))


@pytest.mark.parametrize("chunk", [1, 50, 1 << 18])
def test_times_and_counts_per_stack(monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr(json_stream, "_CHUNK", chunk)
    nodes = Nodes()
    events = Events(nodes, "p", keep=True)
    events.read(JsonParts(Source(io.BytesIO(json.dumps(CALLS).encode()), "x")), Shapes())
    events.check(1, 3, lambda _, __: False)
    assert [(nodes.indices(node), time) for node, time in events.times.items()] == [([0], 2.5), ([0, 2], 5)]
    assert [(nodes.indices(node), count) for node, count in events.counts.items()] == [([0], 1), ([0, 2], 2), ([1], 1)]
    assert (events.first, events.last) == (1, 9)
    assert list(events.spans()) == [(1, 8.5, 0), (3, 7, 2), (7, 8, 2), (9, 9, 1)]


def test_events_that_have_more_than_they_need() -> None:
    events = events_of([{**event, "args": [{}]} for event in CALLS])
    events.check(0, 3, lambda _, __: False)
    assert list(events.times.values()) == [2.5, 5]


def test_frames_that_are_equal_close_each_other() -> None:
    events_of(listed(("O", 1, 1), ("C", 2, 2))).check(0, 3, lambda one, other: {one, other} == {1, 2})
    assert wrong(listed(("O", 1, 1), ("C", 0, 2))) == "event 2 of p closes a frame that is not the innermost one"


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ({}, "the events of p should be a JSON array"),
        ([5], "event 1 of p should be a JSON object"),
        ([{"at": "1"}], "a time or weight of event 1 of p is no number, or too large"),
        ([{"at": 1, "type": "O"}], "a frame of event 1 of p should be a JSON whole number"),
        (listed(("O", -1, 1)), "event 1 of p has a frame that is not in shared.frames"),
        (listed(("O", 0, 1), ("O", 3, 1), ("O", 9, 0)), "event 2 of p has a frame that is not in shared.frames"),
        (listed(("O", 0, 2), ("C", 0, 1), ("C", 9, 1)), "event 2 of p is earlier than the one before it"),
        (listed(("X", 0, 2)), "event 1 of p neither opens (O) nor closes (C) a frame"),
        (listed(("C", 0, 2), ("C", 0, 2)), "event 1 of p closes a frame that is not the innermost one"),
        (listed(("O", 0, 2), ("O", 0, 3)), "p ends with 2 frames open"),
        (listed(*[("O", 0, 1)] * 10_001), "event 10001 of p is the 10000th that opens a frame and does not close it"),
    ],
)
def test_what_is_wrong(events: Any, message: str) -> None:
    assert wrong(events) == message


def test_the_first_event_is_not_before_the_start() -> None:
    assert wrong(listed(("X", 0, 2)), start=3) == "event 1 of p is earlier than the one before it"
    assert wrong([], start="3") == "a time or weight of p is no number, or too large"


@pytest.mark.parametrize("chunk", [60, 200, 1 << 18])
@pytest.mark.parametrize("name", ["x", "},{]"])
def test_events_of_several_shapes(monkeypatch: pytest.MonkeyPatch, chunk: int, name: str) -> None:
    monkeypatch.setattr(json_stream, "_CHUNK", chunk)
    same = listed(("O", 0, 1), ("O", 1, 2), ("C", 1, 4.5), ("C", 0, 5))
    for start in range(6, 200, 6):
        same += listed(("O", 0, start), ("O", 1, start + 1), ("C", 1, start + 2), ("C", 0, start + 5))
    mixed = [dict(reversed(event.items())) if event["type"] == "C" else {**event, "n": name} for event in same]
    expected, found = events_of(same, keep=True), events_of(mixed, keep=True)
    assert (found.times, found.counts) == (expected.times, expected.counts)
    assert list(found.spans()) == list(expected.spans())
    for bad in ({"at": "7"}, {"frame": -1}, {"type": "X"}, {"at": 0}, {"at": float("nan")}, {"type": "C"}):
        assert wrong([*mixed[:8], {**mixed[8], **bad}, *mixed[9:]]) == wrong([*same[:8], {**same[8], **bad}, *same[9:]])
