from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.readers.base.options import ReadOptions
from stallscope.converters.readers.base.source import Source
from stallscope.converters.readers.chrome import bulk as chrome_bulk
from stallscope.converters.readers.chrome import reader as chrome
from stallscope.converters.readers.chrome.bulk import Bulk
from stallscope.converters.readers.chrome.events import Events
from stallscope.converters.readers.chrome.samples import Samples
from stallscope.converters.readers.chrome.tracks import Tracks


def made() -> tuple[Bulk, Events, dict[str, int]]:
    lost: dict[str, int] = {}

    def lose(kind: str, count: int) -> None:
        lost[kind] = lost.get(kind, 0) + count

    events = Events(Samples(), Tracks(lose, timeline=False, fold=0), lose)
    return Bulk(events), events, lost


def call(i: int, **more: str) -> bytes:
    values = {"ph": '"X"', "name": '"f"', "pid": "1", "tid": "2", "ts": f"{i}.500", "dur": "1", **more}
    return b"{" + ", ".join(f'"{key}": {value}' for key, value in values.items()).encode() + b"}"


def records(events: Events) -> list[tuple[int, int, int]]:
    track = events.tracks.of(1, 2)
    return list(zip(track.starts, track.ends, track.frames, strict=True))


def test_events_are_taken_up_to_the_last_that_is_there_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    bulk, events, _ = made()
    data = b", ".join(call(i) for i in range(5))
    assert bulk.take("", data) == data.rindex(b"{")
    assert records(events) == [(1000 * i + 500, 1000 * i + 1500, 0) for i in range(4)]
    assert (events.number, events.tracks.pending) == (4, 4)
    # What is known needs no parsing.
    monkeypatch.setattr(bulk._shapes, "parse", None)
    assert bulk.take("", data) == data.rindex(b"{")
    assert len(records(events)) == 8
    assert bulk.take("", call(1)) == 0
    assert bulk.take("samples", data) == 0


def test_every_event_is_told_by_its_number() -> None:
    bulk, events, lost = made()
    kinds = [call(0), call(1, ph='"C"'), call(2, ph='"i"'), call(3), call(4, ts="null"), call(5, ts="null"), call(6)]
    data = b",\n".join([*kinds, call(9)])
    assert bulk.take("traceEvents", data) == data.rindex(b"{")
    assert (events.number, events.first_bad) == (7, 5)
    assert lost == {"events not understood": 2}
    assert events.others == {"C": 1, "i": 1}
    assert [start for start, _, _ in records(events)] == [500, 3500, 6500]


@pytest.mark.parametrize("bad", [b'{"ph": "X" 1}', b'{"ph": "X"', b"{]}", b'{"ph": "X", "name": "\n"}', b"{{}}"])
def test_what_is_no_json_is_left(bad: bytes) -> None:
    for good in ([], [call(0)], [call(0), call(1, ph='"C"'), call(1, ph='"C"')]):
        bulk, events, _ = made()
        data = b", ".join([*good, bad, call(5), call(6)])
        assert bulk.take("", data) == len(b"".join(event + b", " for event in good))
        assert events.number == len(good)


def test_text_that_looks_like_the_end_of_an_event() -> None:
    bulk, events, _ = made()
    first = call(0, name='"a}, {b"')
    data = b", ".join([first, call(1), call(2)])
    assert bulk.take("", data) == 0
    assert records(events) == []


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chrome_bulk, "_MAX_KNOWN", 3)
    bulk, events, _ = made()
    bulk.take("", b", ".join(call(i, name=f'"f{i % 7}"') for i in range(50)))
    assert len(records(events)) == 49
    assert len(bulk._known) <= 3
    assert [frame for _, _, frame in records(events)] == [i % 7 for i in range(49)]


ORDERS = (
    ("ph", "cat", "name", "pid", "tid", "ts", "dur", "args"),
    ("pid", "tid", "ts", "dur", "name", "ph", "cat"),
    ("args", "cat", "dur", "name", "ph", "pid", "tid", "ts"),
    ("ts", "ph", "dur", "name", "tid", "pid", "args"),
)
NUMBERS = st.one_of(
    st.integers(0, 50).map(str),
    st.decimals(0, 50, places=3).map(str),
    st.sampled_from(["1.5", "2.25", "7.0001", "1e1", "-3", "0.0005", "1716212345678901.234", "null", "NaN", '"4"']),
)
EVENTS = st.fixed_dictionaries(
    {
        "ph": st.sampled_from(['"X"', '"X"', '"X"', '"B"', '"E"', '"C"', '"M"', "7"]),
        "cat": st.sampled_from(['"cpu_op"', '"py-spy"', '"kernel"']),
        "name": st.sampled_from(['"f1"', '"f2"', '"g"', '"ts"', '"a}, {b"', '"\\u00e9"', '"é"', '"process_name"', "5"]),
        "pid": st.sampled_from(["1", "1", '"p1"', "[]"]),
        "tid": st.sampled_from(["2", "2", "12"]),
        "ts": NUMBERS,
        "dur": NUMBERS,
        "args": st.sampled_from(
            [
                '{"id": 1}',
                '{"id": 23}',
                "{}",
                '{"line": 3, "filename": "a.py"}',
                '{"name": "n"}',
                '{"x": [{"ts": 1}, {"y": 2}]}',
            ]
        ),
    }
)


@given(
    st.lists(EVENTS, min_size=2, max_size=12),
    st.sampled_from(ORDERS),
    st.sampled_from([(": ", ", ", ", "), (":", ",", ",\n"), (": ", ",\n    ", ",\n  ")]),
    st.booleans(),
)
def test_taken_in_bulk_or_parsed_is_the_same(
    events: list[dict[str, str]], order: tuple[str, ...], style: tuple[str, str, str], timeline: bool
) -> None:
    colon, comma, between = style
    texts = [comma.join(f'"{key}"{colon}{event[key]}' for key in order) for event in events]
    text = f"[{between.join(f'{{{each}}}' for each in texts)}]".encode()

    def read() -> Any:
        try:
            profile = chrome.read(Source(io.BytesIO(text), "x"), ReadOptions(timeline=timeline))
        except StallscopeError as error:
            return str(error)
        return profile.samples, profile.timeline, profile.lost, profile.comments, profile.duration_ns

    found = read()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Bulk, "take", lambda *_: 0)
        assert read() == found
