from __future__ import annotations

from collections import Counter
from typing import Any

from stallscope.converters.model import Frame
from stallscope.converters.readers.chrome.calls import ANY, END, HIDDEN, OPEN
from stallscope.converters.readers.chrome.events import Events
from stallscope.converters.readers.chrome.samples import Samples
from stallscope.converters.readers.chrome.tracks import Tracks


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
    assert lost == {"events not understood": 2}
    assert events.others == {"C": 1}
    assert (events.number, events.first_bad) == (4, 3)
    assert records(events) == []


def test_a_duration_by_the_threads_clock() -> None:
    events, lost = made()
    events.add({"ph": "X", "name": "f", "pid": 1, "tid": 2, "ts": 5, "tdur": 3})
    events.add({"ph": "X", "name": "f", "pid": 1, "tid": 2, "ts": 5, "dur": 2, "tdur": 3})
    assert [(start, end) for start, end, _ in records(events)] == [(5000, 8000), (5000, 7000)]
    assert lost == {}


def test_threads_with_negative_ids_are_threads() -> None:
    events, lost = made()
    events.add({"ph": "X", "name": "sync", "pid": -1, "tid": -7, "ts": 5, "dur": 3})
    assert list(events.tracks.of(-1, -7).starts) == [5000]
    assert lost == {}
