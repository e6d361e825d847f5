from __future__ import annotations

from collections import Counter

import pytest
from stallscope.converters.model import Frame
from stallscope.converters.readers.chrome_tracks import Calls, Tracks
from stallscope.converters.timeline import Span

A, B, C = Frame("a"), Frame("b"), Frame("c")


def spans(calls: Calls) -> tuple[list[Span], dict[str, int]]:
    lost: Counter[str] = Counter()

    def lose(kind: str, count: int) -> None:
        lost[kind] += count

    found = calls.spans(0, lose)
    return found, {kind: count for kind, count in lost.items() if count}


def test_callers_come_first_in_whatever_order_the_file_has_them() -> None:
    calls = Calls()
    for start, end, frame in ((5, 8, C), (0, 10, A), (5, 10, B)):
        calls.add(start, end, frame, ())
    assert spans(calls) == ([Span(0, 10, A), Span(5, 10, B), Span(5, 8, C)], {})


def test_pairs_that_begin_together_keep_their_order() -> None:
    calls = Calls()
    for frame in (A, B):
        calls.begin(3, frame, ())
    calls.end(7, "b")
    calls.end(7, "")
    assert spans(calls) == ([Span(3, 7, A), Span(3, 7, B)], {})


def test_an_end_with_a_name_ends_what_is_inside_too() -> None:
    calls = Calls()
    for time, frame in ((0, A), (1, B), (2, C)):
        calls.begin(time, frame, ())
    calls.end(5, "a")
    calls.end(6, "a")
    assert spans(calls) == (
        [Span(0, 5, A), Span(1, 5, B), Span(2, 5, C)],
        {"calls without an end": 2, "ends of calls without a begin": 1},
    )


def test_a_begin_without_an_end_lasts_until_the_last_event() -> None:
    calls = Calls()
    calls.begin(1, A, ())
    calls.add(2, 9, B, ())
    assert spans(calls) == ([Span(1, 9, A), Span(2, 9, B)], {"calls without an end": 1})


def test_rounding_is_not_told_as_a_loss() -> None:
    calls = Calls()
    calls.add(0, 10_000, A, ())
    calls.add(5_000, 11_000, B, ())
    calls.add(0, 99_000, C, ())
    assert spans(calls)[1] == {}
    calls.add(0, 10_000, A, ())
    calls.add(5_000, 11_001, B, ())
    assert spans(calls) == (
        [Span(0, 10_000, A), Span(5_000, 10_000, B)],
        {"calls that outlasted their caller, shortened": 1},
    )


def test_calls_without_a_frame_hold_but_are_not_shown() -> None:
    calls = Calls()
    calls.begin(0, None, ())
    calls.begin(1, A, ())
    calls.end(2, "a")
    calls.end(3, "process 1")
    assert spans(calls) == ([Span(1, 2, A)], {})


def test_names_and_ids() -> None:
    tracks = Tracks()
    tracks.name({"name": "process_name", "pid": 1, "args": {"name": "p"}})
    tracks.name({"name": "thread_name", "pid": 1, "tid": 2, "args": {"name": "t"}})
    tracks.name({"name": "process_labels", "pid": 1})
    assert tracks.labels(1, 2) == (("pid", 1), ("process", "p"), ("thread", "t"), ("tid", 2))
    assert tracks.labels("Spans", "stream 7") == (("process", "Spans"), ("thread", "stream 7"))
    assert tracks.labels("12", None) == (("pid", 12),)
    for pid in (True, 1.5, -1, 1 << 63):
        with pytest.raises((TypeError, ValueError)):
            tracks.of(pid, 1)
    with pytest.raises(KeyError):
        tracks.name({"name": "thread_name", "pid": 1, "tid": 2})
