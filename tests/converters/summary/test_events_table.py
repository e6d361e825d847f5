"""The table of events."""

from __future__ import annotations

import io

from event_profiles import READ, SECOND, call, found, profile, sample
from rich.console import Console
from stallscope.converters.model import Frame, Profile
from stallscope.converters.model.display import By, CallsView
from stallscope.converters.summary.events import answer_of_events, counted_events
from stallscope.converters.summary.events_table import events_table


def printed(*, by: By = "function", top: int = 9, rows: int | None = None) -> list[str]:
    out = io.StringIO()
    view = CallsView("self", by, rows)
    Console(file=out, width=100).print(events_table(counted_events(found()), 2 * SECOND, top, view))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def table_of(shown: Profile) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=100).print(events_table(counted_events(shown), SECOND, 9, CallsView()))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_rows_add_up() -> None:
    head, first, place, whose, second, *_ = printed()
    assert head.split()[:4] == ["Count", "Ratio", "Per", "s"]
    assert first.split() == ["400", "80.0", "%", "200", "shop:sale", "libshop.so"]
    assert place.strip() == "75.0 % from main → sell"
    assert whose.strip() == "worker-7 (7), worker-8 (8)"
    assert second.split() == ["100", "20.0", "%", "50.0", "shop:look", "libshop.so"]


def test_processes_of_one_name_are_told_together() -> None:
    calls = [call("t:x", pid, 1, {pid: 1}) for pid in range(11, 17)]
    for each, name in zip(calls, ("a", "b", "a", "b", "b", "once"), strict=True):
        each.process = name
    lines = table_of(profile(*calls))
    assert lines[2].strip() == "3 × b, 2 × a, once (16)"
    assert (
        table_of(profile(*calls, call("t:x", 7, 5, {7: 5})))[2].strip() == "worker-7 (7), 3 × b, 2 × a, 1 more process"
    )


def test_an_exec_has_no_callers() -> None:
    """The stack is that of the new program, which has not run yet."""
    start, event = Frame("[ld-linux-x86-64.so.2+0x1ab70]", "native"), Frame("sched:sched_process_exec", "api")
    done = profile(call(event.name, 7, 3, {7: 3}), samples=[sample((start, event, READ), 3)])
    assert not any("from" in line for line in table_of(done))
    (told,) = answer_of_events(counted_events(done), SECOND)
    assert told.endswith(" seen 3 times by 1 process, 3.0 a second.")


def test_rows_by_thread() -> None:
    lines = printed(by="thread")
    assert [line.split()[0] for line in lines[1:]] == ["200", "100", "100", "100"]
    assert lines[1].endswith("worker-7 (7)::main")
    assert any(line.endswith("worker-7 (7)::t9 (9)") for line in lines)


def test_the_others_share_a_row() -> None:
    assert printed(top=1)[-1].split() == ["100", "20.0", "%", "50.0", "1", "more", "row"]
    assert printed(rows=1)[-1] == printed(top=1)[-1]


def test_hostile_names() -> None:
    out = io.StringIO()
    events = counted_events(profile(call("\x1b[31mred", 7, 1, {7: 1})))
    Console(file=out, width=100).print(events_table(events, SECOND, 9, CallsView()))
    assert "\x1b" not in out.getvalue()
