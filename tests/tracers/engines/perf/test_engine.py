"""The engine with a perf that says what it is told to. With the real one: tests/live/test_engines.py."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.perf import engine
from stallscope.tracers.engines.perf.engine import Perf
from stallscope.tracers.engines.perf.recording import Rights
from stallscope.tracers.engines.protocol import EngineUnavailable, Request
from stallscope.tracers.measures.offcpu import OffCpu
from stallscope.tracers.measures.oncpu import OnCpu
from stallscope.tracers.measures.protocol import Measure
from stallscope.tracers.measures.wakeup import WakeUp

PID = os.getpid()
OTHER = 1 + (1 << 22)  # above every id that Linux gives, so no process of this machine
TEXT = f"""\
pytest {PID}/{PID} {{1000}}:          1 context-switches: 
\tffffffff821f8b58 schedule ([kernel.kallsyms])
\t            1637 wait_here (/x/y)

pytest {PID}/{PID} {{1000}}: PERF_RECORD_SWITCH OUT
other {OTHER}/{OTHER} {{2000}}: PERF_RECORD_SWITCH IN
pytest {PID}/{PID} {{3000}}: PERF_RECORD_SWITCH IN
pytest {PID}/{PID} {{4000}}:   10101010 cpu-clock/freq=99/: 
\t            1543 _PyEval_EvalFrameDefault (/x/python)

pytest {PID}/{PID} {{5000}}: PERF_RECORD_LOST lost 17
"""  # noqa: W291 - as perf prints it


@pytest.fixture(autouse=True)
def as_root(monkeypatch: pytest.MonkeyPatch, fake_perf: Path) -> None:
    """A perf that may do everything, and waits in its text."""
    monkeypatch.setattr(engine, "rights", lambda: Rights(2, True))
    monkeypatch.setenv("FAKE_PERF_TEXT", TEXT)


def request(*measures: Measure, scope: Scope | None = None, duration: float | None = 0.1) -> Request:
    return Request(scope or Scope(pids=[PID]), measures, "Wall-clock time", duration=duration)


def test_a_profile() -> None:
    outcome = Perf().trace(request(OffCpu(time="wall"), OnCpu(time="wall")))
    profile = outcome.profile
    assert [column.name for column in profile.value_types] == ["wall", "count", "min", "max", "samples"]
    waits = [s for s in profile.samples if s.stack[-1].name == "schedule"]
    (wait,) = waits
    assert (wait.values[0], wait.values[1], wait.label("state")) == (2_000_000, 1, "other")
    assert [s.values[4] for s in profile.samples if s.stack[-1].name == "_PyEval_EvalFrameDefault"] == [1]
    assert profile.lost["events"] == 17
    assert any("lost events" in comment for comment in profile.comments)
    assert any("Python functions" in comment for comment in profile.comments)
    assert {times.pid for times in profile.threads} >= {PID, OTHER}
    for times in profile.threads:
        assert times.on_cpu + times.runnable + sum(times.blocked.values()) == times.wall
    assert outcome.details == (f"perf: {engine.find_perf().path}, kernel.perf_event_paranoid 2",)


def test_children_are_left_out() -> None:
    profile = Perf().trace(request(OffCpu(), scope=Scope(pids=[PID], children=False))).profile
    assert {times.pid for times in profile.threads} == {PID}


def test_measures() -> None:
    assert Perf().refusals([OffCpu(), OnCpu()]) == {}
    assert Perf().refusals([OffCpu(), WakeUp()]) == {
        "wakeup": "the engine perf takes only waits and samples, no wakeup"
    }


def test_waits_are_not_for_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "rights", lambda: Rights(2, False))
    with pytest.raises(EngineUnavailable, match="perf_event_paranoid is 2"):
        Perf().trace(request(OffCpu()))
    assert "perf_event_paranoid is 2" in str(Perf().missing([OffCpu()]))
    assert Perf().missing([OnCpu()]) is None
    Perf().trace(request(OnCpu()))


def test_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert Perf().missing([OnCpu()]) is None
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "there is no perf" in str(Perf().missing([OnCpu()]))


def test_a_command_is_not_started_when_perf_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FAKE_PERF_FAILS", "not allowed")
    asked = Request(Scope(), (OnCpu(),), "Time", command=("/bin/sh", "-c", f"echo > {tmp_path / 'began'}"))
    with pytest.raises(EngineUnavailable, match="not allowed"):
        Perf().trace(asked)
    assert not (tmp_path / "began").exists()


def test_a_command_ends_the_trace() -> None:
    asked = Request(Scope(), (OnCpu(),), "Time", command=("/bin/sh", "-c", "exit 5"))
    outcome = Perf().trace(asked)
    assert outcome.status == 5
    assert outcome.profile.comments[0] == "the command ended with status 5"
