"""Blockers in a summary."""

from __future__ import annotations

import io
from dataclasses import replace

from stallscope.converters.model import Profile, ThreadTimes
from stallscope.converters.model.processes import ProcessTimes
from stallscope.converters.summary.judging import read
from stallscope.converters.summary.render import render
from stallscope.converters.summary.summarize import summarize
from stallscope.converters.summary.waits_for import blocking
from summary_profiles import EXE, LIBC, MS, SECOND, kernel, user
from wait_graphs import chained, profile_of, with_extremes

SLEEP = (*user(EXE, "main", "tick"), *user(LIBC, "nanosleep"), *kernel("do_nanosleep"))


def profile() -> Profile:
    """Two processes that wait for another one, and one that only sleeps."""
    made = with_extremes(
        profile_of(
            chained(7, 7, 600 * MS, ("python3-9", 9, "python3"), process="python3"),
            chained(8, 8, 700 * MS, ("python3-9", 9, "python3"), process="python3"),
            chained(6, 6, 990 * MS, ("[timer]", 0, ""), own=SLEEP, process="tick"),
        )
    )
    made.samples[2] = made.samples[2]._replace(values=(990 * MS, 99, 10 * MS, 10 * MS))
    for pid, name, blocked in ((7, "python3", 600), (8, "python3", 700), (6, "tick", 990), (9, "python3", 0)):
        states = {"interruptible": blocked * MS}
        made.threads.append(ThreadTimes(pid, name, pid, name, SECOND, SECOND - blocked * MS, 0, states))
    made.processes = [ProcessTimes(pid, "python3", script=f"{name}.py") for pid, name in ((7, "a"), (8, "b"), (9, "c"))]
    return made


def test_names_are_those_of_the_summary() -> None:
    recorded = read(profile()).facts.recorded
    assert recorded
    assert blocking(recorded.graph, [(6, 6)]).nodes[0].process == "python3 c.py"


def test_in_the_summary() -> None:
    summary = summarize(profile())
    assert "ends with python3 c.py (pid 9)" in summary.answer[1]
    assert summary.blocking is not None
    assert (summary.blocking.total, summary.blocking.idle) == (1_300 * MS, 990 * MS)
    assert {wait.idle_by for wait in summary.waits} == {"", "periodic"}
    assert summary.to_json()["waits_for"]["blocked_ns"] == 1_300 * MS
    (idle,) = [wait for wait in summary.to_json()["waits"] if wait["idle"]]
    assert idle["idle_by"] == "periodic"


def test_idle_threads_are_folded_away_unless_wanted() -> None:
    summary = summarize(profile())
    texts = []
    for shows in (False, True):
        file = io.StringIO()
        render(replace(summary, shows_idle=shows), file, width=200)
        texts.append(file.getvalue())
    assert "1 idle thread (1 periodic), in 1 place (--idle shows them)" in texts[0]
    assert "main → tick" not in texts[0]
    assert "idle (periodic): main → tick → nanosleep" in texts[1]
    assert "--idle" not in texts[1]


def test_it_fits_a_terminal() -> None:
    file = io.StringIO()
    render(summarize(profile()), file, width=80)
    assert file.getvalue().count("\n") <= 23
    assert max(map(len, file.getvalue().splitlines())) <= 80
