from __future__ import annotations

import io
import json
from dataclasses import replace

from said_pins import cost_of_tracer
from scans import three_troubles
from stallscope.converters import pprof
from stallscope.converters.model.remarks import Shed, TraceCost
from stallscope.converters.scan import screen
from stallscope.converters.scan.cost import cost_json, cost_lines, cost_notes
from stallscope.converters.scan.report import report_of

SECOND = 1_000_000_000
COST = TraceCost(21 * SECOND // 1000, SECOND, (("waits", 13_000_000), ("tracer", 8_000_000)), 50_000, SECOND)
CALLS = Shed("calls", 3_210_000_000, 0, 0, (("cudaLaunchKernel", 1_234_567),), 0)
SAMPLES = Shed("samples", 3_210_000_000, 4, 99, (), 0)
END = " What was left out was measured until then: its shares are at least those told."


def test_nothing_was_measured() -> None:
    assert cost_lines(["tracing cost 3 %"]) == []
    assert cost_json([]) == {"cost": None, "shed": []}


def test_within_the_budget() -> None:
    assert cost_lines([COST]) == ["Tracing cost 1.3 % of the traced processes' time."]


def test_more_than_the_budget() -> None:
    over = TraceCost(60, 1000, (("waits", 60),), 59_999, 1000)
    assert cost_lines([over]) == ["Tracing cost 6.0 % of the traced processes' time, more than the budget of 5.9999 %."]
    assert "more than" not in cost_lines([TraceCost(60, 1000, (), 60_000, 1000)])[0]


def test_of_processes_that_hardly_run_it_is_a_share_of_a_core() -> None:
    """A share of the 10 ns on cores would be 200 %."""
    little = TraceCost(20, 10, (("waits", 20),), 50_000, 1000)
    assert cost_lines([little]) == ["Tracing cost 2.0 % of the time of one core."]


def test_the_tracer_is_told_apart() -> None:
    """The probes are what the budget is for."""
    assert cost_lines([cost_of_tracer(0.3)]) == [
        "Tracing cost 1.0 % of the traced processes' time; beside it, the tracer itself ran for 30.0 % of the time of "
        "one core."
    ]
    assert cost_lines([cost_of_tracer(0.04)]) == ["Tracing cost 1.0 % of the traced processes' time."]


def test_what_was_left_out_and_when() -> None:
    lines = cost_lines([SAMPLES, CALLS, Shed("locks", 5 * SECOND, 0, 0, (), 0)])
    assert lines == [
        "From second 3.2 on: samples every 40 ms instead of 10, without probes on cudaLaunchKernel (1,234,567 calls a "
        f"second); from second 5.0 on: without locks.{END}"
    ]


def test_who_wakes_includes_where() -> None:
    stacks, wakers = (Shed(what, SECOND, 0, 0, (), 0) for what in ("waker stacks", "wakers"))
    assert cost_lines([stacks, wakers]) == [f"From second 1.0 on: without who ends waits.{END}"]
    assert cost_lines([stacks]) == [f"From second 1.0 on: without where wakers and creators of threads are.{END}"]


STACKS = Shed("stacks", 2 * SECOND, 16, 0, (), 0, 1_000_000)


def test_stacks_of_waits() -> None:
    assert cost_lines([STACKS]) == [
        f"From second 2.0 on: user stacks of one in 16 waits of threads that wait again within 1.00 ms.{END}"
    ]
    assert cost_lines([replace(STACKS, within=0)]) == [f"From second 2.0 on: user stacks of one in 16 waits.{END}"]
    (shed,) = cost_json([STACKS])["shed"]
    assert (shed["what"], shed["times_rarer"], shed["within_ns"]) == ("stacks", 16, 1_000_000)


def test_what_was_left_out_before_an_interval() -> None:
    before = Shed("locks", 0, 0, 0, (), 0, 0, 12 * SECOND)
    assert cost_lines([before]) == ["Since 12.0 s before this interval: without locks."]
    assert cost_lines([before, STACKS])[0].startswith("Since 12.0 s before this interval: without locks; from second 2")
    assert cost_json([before])["shed"][0]["at_ns"] == -12 * SECOND


def test_notes_on_an_interval() -> None:
    over = TraceCost(60, 1000, (("waits", 60),), 50_000, 1000)
    assert cost_notes([COST]) == []
    assert cost_notes([over, SAMPLES]) == [
        "tracing cost 6.0 % of the traced processes' time, more than the budget of 5 %",
        "from second 3.2 on: samples every 40 ms instead of 10",
    ]


def test_of_many_functions_a_few_are_named() -> None:
    functions = tuple((f"f{number}", 10) for number in range(7))
    (line,) = cost_lines([Shed("calls", SECOND, 0, 0, functions, 9)])
    assert "f2 (10 calls a second) and 13 other functions." in line
    assert "f3" not in line


def test_json() -> None:
    made = cost_json([COST, COST, SAMPLES, CALLS])
    assert made["cost"] == {
        "time_ns": 26_000_000,
        "traced_ns": 2 * SECOND,
        "of_ns": 2 * SECOND,
        "share": 0.013,
        "tracer_ns": 16_000_000,
        "budget": 0.05,
        "parts_ns": {"waits": 26_000_000, "tracer": 16_000_000},
    }
    assert made["shed"] == [
        {
            "what": "samples",
            "at_ns": 3_210_000_000,
            "times_rarer": 4,
            "within_ns": None,
            "functions": [],
            "more_functions": 0,
        },
        {
            "what": "calls",
            "at_ns": 3_210_000_000,
            "times_rarer": None,
            "within_ns": None,
            "functions": [{"name": "cudaLaunchKernel", "calls_per_second": 1_234_567}],
            "more_functions": 0,
        },
    ]


def test_hostile_names_and_a_capture() -> None:
    profile = three_troubles()
    hostile = Shed("calls", SECOND, 0, 0, (("\x1b[31m\udcff\u202e", 1),), 0)
    earlier = replace(STACKS, at=0, before=5)
    profile.comments += [COST, hostile, earlier]
    saved = io.BytesIO()
    pprof.save(profile, saved)
    saved.seek(0)
    kept = pprof.load(saved)
    assert [each for each in kept.comments if isinstance(each, TraceCost | Shed)] == [COST, hostile, earlier]
    report = report_of(kept)
    json.dumps(report.to_json()).encode()
    assert report.to_json()["cost"]["share"] == 0.013
    file = io.StringIO()
    screen.show(report, file)
    assert "Tracing cost 1.3 % of the traced processes' time." in file.getvalue()
    assert "\x1b" not in file.getvalue()
    assert "\u202e" not in file.getvalue()
