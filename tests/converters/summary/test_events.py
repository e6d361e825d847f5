"""Sentences and JSON of events that were counted."""

from __future__ import annotations

import io

from event_profiles import call, found, profile
from stallscope.converters.summary.render import render, render_interval
from stallscope.converters.summary.summarize import summarize


def test_the_most_frequent_and_where_it_comes_from() -> None:
    summary = summarize(found())
    assert summary.answer == (
        "80.0 % of 500 events are shop:sale of libshop.so: 400 times by 2 processes, 200 a second; "
        "75.0 % of them from main → sell.",
    )
    assert not summary.calls
    assert summary.next_step is None


def test_one_event_alone_and_none() -> None:
    (said,) = summarize(profile(call("shop:sale", 7, 3, {7: 3}))).answer
    assert said == "shop:sale of libshop.so was seen 3 times by 1 process, 1.5 a second."
    assert summarize(profile()).answer == ("None of the events was seen.",)


def test_json_has_numbers_alone() -> None:
    told = summarize(found()).to_json()
    assert told["calls"] == []
    assert [(each["name"], each["pid"], each["count"]) for each in told["events"]] == [
        ("shop:sale", 7, 300),
        ("shop:sale", 8, 100),
        ("shop:look", 8, 100),
    ]
    assert told["events"][0]["threads"] == [
        {"thread": "t7", "tid": 7, "tid_life": 1, "count": 200},
        {"thread": "t9", "tid": 9, "tid_life": 1, "count": 100},
    ]
    assert told["events"][0].keys() == {"name", "file", "process", "pid", "pid_life", "count", "threads"}


def test_it_is_printed() -> None:
    out = io.StringIO()
    render(summarize(found()), out, width=100)
    assert "400  80.0 %    200  shop:sale libshop.so" in out.getvalue()


def test_an_interval_is_its_table() -> None:
    out = io.StringIO()
    given = found()
    given.lost["events"] = 3
    render_interval(summarize(given), out)
    first, head, *rows, lost, end = out.getvalue().split("\n")[:-1]
    assert first.endswith(", 2.00 s")
    assert head.split()[0] == "Count"
    assert len(rows) == 5
    assert lost == "Lost: 3 events."
    assert end == ""
    nothing = io.StringIO()
    render_interval(summarize(profile()), nothing)
    assert nothing.getvalue().endswith(", 2.00 s: nothing was seen\n\n")
