from __future__ import annotations

import io
import json
from typing import Any

import pytest
from stallscope.converters.readers import json_stream
from stallscope.converters.readers.source import Source
from stallscope.converters.readers.speedscope_events import Events, Nodes
from stallscope.converters.readers.speedscope_json import JsonParts
from stallscope.converters.readers.speedscope_text import Shapes


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
