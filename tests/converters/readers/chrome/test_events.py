from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from stallscope.converters.model import Frame
from stallscope.converters.readers.chrome_calls import ANY, END, HIDDEN, OPEN
from stallscope.converters.readers.chrome_events import Events, nanoseconds
from stallscope.converters.readers.chrome_samples import Samples
from stallscope.converters.readers.chrome_tracks import Tracks


def made(*, timeline: bool = False) -> tuple[Events, Counter[str]]:
    lost: Counter[str] = Counter()

    def lose(kind: str, count: int) -> None:
        lost[kind] += count

    return Events(Samples(), Tracks(lose, timeline=timeline, fold=0), lose), lost


def records(events: Events, tid: int = 2) -> list[tuple[int, int, int]]:
    track = events.tracks.of(1, tid)
    return list(zip(track.starts, track.ends, track.frames, strict=True))


def call(phase: str, **more: Any) -> dict[str, Any]:
    return {"ph": phase, "name": "f", "ts": 1, "pid": 1, "tid": 2, **more}


def test_calls_and_their_parts() -> None:
    events, lost = made(timeline=True)
    for event in (call("X", dur="0.5", args={"n": 1}), call("B"), call("E"), call("E", name=""), call("E", name="g")):
        events.add(event)
    name = events.frames.name
    assert records(events) == [
        (1000, 1500, 0),
        (1000, OPEN, 0),
        (1000, END, name("f")),
        (1000, END, ANY),
        (1000, END, name("g")),
    ]
    assert events.tracks.of(1, 2).args == {0: (("n", 1),)}
    assert events.frames.frames == [Frame("f")]
    assert (events.number, events.tracks.pending, lost) == (5, 5, {})


def test_roots_of_py_spy_name_their_thread() -> None:
    events, _ = made()
    for phase in "XB":
        events.add(call(phase, name="thread (7): io", cat="py-spy", dur=1))
    assert records(events) == [(1000, OPEN, HIDDEN)]
    assert events.tracks.labels(1, 2) == (("pid", 1), ("thread", "io"), ("tid", 7))


def test_what_is_no_call_is_counted() -> None:
    events, lost = made()
    for event in (call("C"), call("M", name="thread_name", args={"name": "t"}), call("X", ts=None), call("X", dur=-1)):
        events.add(event)
    assert lost == {"events that are no calls": 1, "events not understood": 2}
    assert (events.number, events.first_bad) == (4, 3)
    assert records(events) == []


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *((3, 3000), ("1.5", 1500), ("-0.25", -250), ("1716212345678901.234", 1716212345678901234)),
        *(("1e3", 10**6), ("4000000000000000.000", 4 * 10**18), ("0.0005", 1), ("12", 12000)),
    ],
)
def test_nanoseconds(value: Any, expected: int) -> None:
    assert nanoseconds(value) == expected


@pytest.mark.parametrize("value", [None, True, "x", "nan", "inf", 2**63, "1e30", "5000000000000000.000", [], {}])
def test_no_time(value: Any) -> None:
    with pytest.raises((ValueError, TypeError, OverflowError)):
        nanoseconds(value)
