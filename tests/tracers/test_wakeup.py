"""trace-wakeup's options, and --wakers. With a real trace: tests/live/test_wakeup.py."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from stallscope.converters.base import helpers
from stallscope.tracers import offcpu, wakeup, wall
from stallscope.tracers.engines.protocol import Request
from stallscope.tracers.measures.locks import Locks
from stallscope.tracers.measures.offcpu import OffCpu
from stallscope.tracers.measures.protocol import columns_of
from stallscope.tracers.measures.wakeup import WakeUp


def test_the_measure(recorded: list[Request]) -> None:
    assert wakeup.main(["-p", "4711", "--depth", "16", "--min-block", "5", "--max-block", "9"]) == 1
    (request,) = recorded
    assert request.measures == (WakeUp(16, 5_000, 9_000), Locks())
    assert request.what == "Blocked time by waker"


def test_locks_can_be_left_out(recorded: list[Request]) -> None:
    wakeup.main(["-a", "--no-locks"])
    assert [measure.name for measure in recorded[0].measures] == ["wakeup"]


def test_events_for_a_critical_path(recorded: list[Request]) -> None:
    wakeup.main(["-a", "--critical", str(os.getpid())])
    wakeup.main(["--critical", "command", "--", "true"])
    assert [[measure.name for measure in each.measures] for each in recorded] == [["wakeup", "locks", "timeline"]] * 2


def test_default_depth(recorded: list[Request]) -> None:
    wakeup.main(["-a"])
    assert recorded[0].measures[0] == WakeUp(4)


@pytest.mark.parametrize(
    "options",
    [
        ["--depth", "0"],
        ["--depth", "17"],
        ["--min-block", "9", "--max-block", "5"],
        ["--critical", "0"],
        ["--critical", "command"],
        ["--critical", "5", "--merge"],
    ],
)
def test_wrong_usage(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert wakeup.main(["-p", "1", *options]) == 2
    assert "trace-wakeup: " in capsys.readouterr().err


@pytest.mark.parametrize(("main", "time"), [(offcpu.main, "off-cpu"), (wall.main, "wall")])
def test_wakers_beside_other_measures(main: Callable[[list[str]], int], time: str, recorded: list[Request]) -> None:
    main(["-p", "4711", "--wakers"])
    main(["-p", "4711"])
    with_wakers, without = recorded
    assert [measure.name for measure in with_wakers.measures if measure not in without.measures][-1] == "wakeup"
    columns = [column.name for column in columns_of(with_wakers.measures)]
    assert (columns[0], columns[-1]) == (time, "blocked")
    assert "wakeup" not in [measure.name for measure in without.measures]


def test_wakers_of_the_waits_that_count(recorded: list[Request]) -> None:
    offcpu.main(["-p", "4711", "--wakers", "--min-block", "5", "--state", "uninterruptible"])
    waits, wakers = recorded[0].measures
    states = frozenset({"uninterruptible"})
    assert (waits, wakers) == (OffCpu(5_000, states=states), WakeUp(1, 5_000, states=states, alone=False))


@pytest.mark.parametrize(
    ("main", "given", "cause"),
    [
        (offcpu.main, ["-o", "x.dot"], "a wait-for graph is made of wake-ups, which trace-offcpu does not record"),
        (wall.main, ["--graph", "x.dot"], "a wait-for graph is made of wake-ups, which trace-wall does not record"),
        (wakeup.main, ["--merge", "-o", "x.graph.json"], "--merge puts processes together"),
        (wakeup.main, ["--every", "5s", "-o", "%H%M%S.pb.gz", "--graph", "x.dot"], "--graph is one picture"),
        (wakeup.main, ["--graph", "x.html"], "x.html is no wait-for graph"),
    ],
)
def test_graphs_that_cannot_be_made(
    recorded: list[Request],
    capsys: pytest.CaptureFixture[str],
    main: Callable[[list[str]], int],
    given: list[str],
    cause: str,
) -> None:
    assert main(["-p", "1", *given]) == 2
    assert cause in capsys.readouterr().err
    assert not recorded


def test_drawing_without_graphviz(
    recorded: list[Request], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Told before the trace, in one line and a remedy."""
    monkeypatch.setattr(helpers, "FOLDERS", ())
    assert wakeup.main(["-p", "1", "--graph", "x.svg"]) == 1
    cause, remedy = capsys.readouterr().err.splitlines()
    assert cause == "trace-wakeup: a wait-for graph is drawn by graphviz's dot, which is not installed"
    assert remedy.startswith("apt-get install graphviz")
    assert not recorded


def test_graphs_that_can_be_made(recorded: list[Request]) -> None:
    for main, given in (
        (wakeup.main, ["-o", "x.dot", "--graph", "x.graphml"]),
        (offcpu.main, ["--wakers", "-o", "x.dot"]),
        (wakeup.main, ["--every", "5s", "-o", "%H%M%S.dot"]),
        (wakeup.main, ["--merge", "--graph", "x.dot", "--by", "process", "--idle"]),
    ):
        main(["-p", "1", *given])
    assert len(recorded) == 4
