"""Flame charts: calls at their times."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Any

import pytest
from stallscope.converters.model import Frame, Profile, ValueType
from stallscope.converters.model.timeline import Span, Timeline, Track, add_up
from svg_texts import SVG, lines, names, rects, text_of

CALLS = Timeline(
    [
        Track(
            (("pid", 7), ("process", "job"), ("thread", "<b>"), ("tid", 8)),
            spans=[Span(0, 600, Frame("step")), Span(100, 300, Frame("f")), Span(300, 500, Frame("f"))],
        ),
        Track(name="two", spans=[Span(500, 1_000, Frame("step"))]),
    ],
)
TIMED = Profile([ValueType("wall", "nanoseconds"), ValueType("count", "count")], add_up(CALLS), timeline=CALLS)


def test_flame_chart_of_states_has_their_colours() -> None:
    spans = [
        Span(0, 8, Frame("running")),
        Span(8, 16, Frame("futex: futex_wait")),
        Span(16, 20, Frame("runnable-woken")),
    ]
    data = one_track("nanoseconds", *spans)
    told = text_of(data, flamechart=True)
    assert all(f">{state}</text>" in told for state in ("interruptible", "runnable-woken"))
    assert ">interruptible</text>" not in text_of(data, flamechart=True, palette="warm")


def test_a_flame_chart_shows_calls_where_they_were() -> None:
    root = ET.fromstring(text_of(TIMED, flamechart=True))
    boxes = [
        (name, round((float(rect.get("x", "")) - 12) / 1.176), int(rect.get("y", "")))
        for name, rect in zip(names(root), rects(root), strict=True)
    ]
    assert boxes == [
        ("job-7 · <b>-8", 0, 142), ("step", 0, 124), ("f", 100, 106), ("f", 300, 106), ("two", 0, 188),
        ("step", 500, 170),
    ]  # fmt: skip
    told = [(rect.findtext(f"{SVG}title") or "").split("\n")[1] for rect in rects(root)]
    assert told[3] == "200 ns · 20.0 % · at 300 ns"
    assert lines(root)[0] == "1.00 µs of wall · 2 tracks"
    ticks = [text.text for text in root.iterfind(f".//{SVG}g[@id='axis']/{SVG}text")]
    assert ticks == ["0.0 µs", "0.1 µs", "0.2 µs", "0.3 µs", "0.4 µs", "0.5 µs", "0.6 µs", "0.7 µs", "0.8 µs", "0.9 µs"]
    assert root.get("data-chart") == "106"
    inverted = ET.fromstring(text_of(TIMED, flamechart=True, inverted=True))
    assert [int(rect.get("y", "")) for rect in rects(inverted)] == [106, 124, 142, 142, 170, 188]


def test_a_flame_chart_may_end_later() -> None:
    root = ET.fromstring(text_of(TIMED, flamechart=True, total=2_000.0))
    assert float(rects(root)[0].get("width", "")) == 1175
    assert float(rects(root)[1].get("width", "")) == pytest.approx(1176 * 0.3 - 1, abs=0.01)
    assert lines(root)[0] == "1.00 µs of 2.00 µs wall · 2 tracks"


def one_track(unit: str, *spans: Span) -> Profile:
    return Profile([ValueType("samples", unit)], [], timeline=Timeline([Track(spans=list(spans))], unit))


@pytest.mark.parametrize(
    ("unit", "options", "text"),
    [
        ("count", {}, "8 samples · 1 track"),
        ("", {}, "8 samples · 1 track"),
        ("count", {"total": 20.0}, "8 of 20 samples · 1 track"),
        ("count", {"unit": "pages"}, "8 pages of samples · 1 track"),
        ("count", {"unit": "seconds", "factor": 0.01, "total": 20.0}, "80.0 ms of 200 ms samples · 1 track"),
        ("bytes", {}, "8 B of samples · 1 track"),
    ],
)
def test_a_flame_chart_tells_what_was_measured(unit: str, options: dict[str, Any], text: str) -> None:
    root = ET.fromstring(text_of(one_track(unit, Span(0, 8, Frame("f"))), flamechart=True, **options))
    assert lines(root)[0] == text


def test_calls_that_are_too_narrow_have_a_way_out() -> None:
    data = one_track("nanoseconds", *(Span(i, i + 1, Frame(f"f{i}")) for i in range(20_000)))
    root = ET.fromstring(text_of(data, flamechart=True))
    assert names(root) == ["all"]
    assert lines(root)[2] == (
        "calls narrower than 0.1 px, not drawn: 20,000"
        " (-o NAME.trace.json has all of them, for ui.perfetto.dev; --min-width 0 keeps them for zooming in)"
    )
    kept = ET.fromstring(text_of(data, flamechart=True, min_width=0))
    assert len((kept.findtext(f"{SVG}metadata[@id='names']") or "").split("\n")) == 20_000
    assert "not drawn" not in "".join(lines(kept))


def test_calls_without_a_length_are_in_no_chart() -> None:
    data = one_track("nanoseconds", Span(0, 8, Frame("f")), Span(4, 4, Frame("g")))
    found = lines(ET.fromstring(text_of(data, flamechart=True, min_width=0)))
    assert "calls narrower than 0 px, not drawn: 1" in found
