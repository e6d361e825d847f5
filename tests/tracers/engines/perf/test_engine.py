"""The engine with a perf that says what it is told to. With the real one: tests/live/test_engines.py."""

from __future__ import annotations

import errno
import itertools
import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from stallscope.converters.base import helpers
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import Frame
from stallscope.converters.model.processes import cpu_set
from stallscope.converters.phrases.remarks import worded
from stallscope.tracers.base import procfs
from stallscope.tracers.base.progress import Progress
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.perf import engine, reading
from stallscope.tracers.engines.perf.engine import Perf
from stallscope.tracers.engines.perf.recording import Recording, Rights
from stallscope.tracers.engines.perf.threads import Threads
from stallscope.tracers.engines.protocol import EngineUnavailable, Request
from stallscope.tracers.kernel import perf_events
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


CODE = {(PID, 0x15): Frame("work", "python", None, 0, "/x/y.py")}


@pytest.fixture(autouse=True)
def as_root(monkeypatch: pytest.MonkeyPatch, fake_perf: Path) -> None:
    """A perf that may do everything, and waits in its text."""
    monkeypatch.setattr(engine, "rights", lambda: Rights(2, True))
    monkeypatch.setenv("FAKE_PERF_TEXT", TEXT)
    monkeypatch.setattr(procfs, "schedstat", lambda _pid, _tid: (9, 9))


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
    (lossy,) = [comment for comment in worded(profile.comments) if "perf lost 77.3 % of the events" in comment]
    assert "a lower -F" in lossy
    (python,) = [comment for comment in worded(profile.comments) if "Python functions" in comment]
    assert python == (
        "there are Python functions, which the engine perf does not show; of those that run with python3 -X perf (3.12 "
        "and newer) it shows the innermost: --engine libbpf does, as root"
    )
    assert {times.pid for times in profile.threads} >= {PID, OTHER}
    for times in profile.threads:
        assert times.on_cpu + times.runnable + sum(times.blocked.values()) == times.wall
    own, other = (next(each for each in profile.processes if each.pid == pid) for pid in (PID, OTHER))
    assert cpu_set(own.cpus) == os.sched_getaffinity(0)
    assert (own.environment is not None, other.cpus) == (True, ""), "nothing is known of a process that is gone"
    assert outcome.details == (f"perf: {engine.find_perf().path}, kernel.perf_event_paranoid 2",)


def test_children_are_left_out() -> None:
    profile = Perf().trace(request(OffCpu(), scope=Scope(pids=[PID], children=False))).profile
    assert {times.pid for times in profile.threads} == {PID}
    assert [c for c in worded(profile.comments) if "perf lost" in c]
    assert not any("-F" in comment for comment in worded(profile.comments)), "trace-offcpu has no -F"


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
    monkeypatch.setattr(helpers, "FOLDERS", (str(tmp_path),))
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
    assert worded(outcome.profile.comments)[0] == "the command ended with status 5"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_perf_record_is_ended_by_somebody_else(number: signal.Signals, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_PERF_DYING", "record")
    monkeypatch.setenv("FAKE_PERF_DIES", f"{number.value}")
    profile = Perf().trace(request(OffCpu(), duration=5)).profile
    assert 4_000_000 <= profile.duration_ns < 1_000_000_000, "it ends with the last sample, 4 ms after perf began"
    assert worded(profile.comments)[0] == f"perf record was ended by {number.name}: what came after 0.0 s is not known"
    assert profile.lost["milliseconds at the end"] >= 1
    monkeypatch.setenv("FAKE_PERF_TEXT", "")
    with pytest.raises(StallscopeError, match=f"ended by {number.name} before it had reported anything") as raised:
        Perf().trace(request(OffCpu(), duration=5))
    assert not isinstance(raised.value, EngineUnavailable)


def test_perf_script_is_ended_by_somebody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_PERF_DYING", "script")
    monkeypatch.setenv("FAKE_PERF_DIES", f"{signal.SIGKILL.value}")
    with pytest.raises(StallscopeError, match=r"^perf script was ended by SIGKILL\n"):
        Perf().trace(request(OffCpu(), duration=5))


def test_an_event_that_is_not_counted_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """perf itself would count nanoseconds instead of cycles."""

    def open_event(attr: perf_events.Attr, cpu: int, tid: int) -> int:
        assert (attr.type, cpu, tid) == (perf_events.TYPE_HARDWARE, -1, 0)
        raise OSError(errno.ENOENT, "none")

    monkeypatch.setattr(perf_events, "open_event", open_event)
    with pytest.raises(StallscopeError, match="this machine does not count cycles") as raised:
        Perf().trace(request(OnCpu(event="cycles")))
    assert not isinstance(raised.value, EngineUnavailable), "no other engine is tried"
    assert "does not count cycles" in str(Perf().missing([OnCpu(event="cycles")]))
    Perf().trace(request(OnCpu()))


def test_waits_for_a_core_after_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel is asked when perf has begun, and until it ends. The wait is from 0.6 to 0.8 s."""
    counted = itertools.chain([1_000_000], itertools.repeat(1_500_000))
    monkeypatch.setattr(procfs, "schedstat", lambda _pid, tid: (9, next(counted)) if tid == PID else None)
    monkeypatch.setenv("FAKE_PERF_TEXT", TEXT.replace("{1000}", "{600000}").replace("{3000}", "{800000}"))
    profile = Perf().trace(request(OffCpu(), scope=Scope(threads=[PID], children=False), duration=1.2)).profile
    found = {str(s.label("state")): s.values[0] for s in profile.samples if s.stack[-1].name == "schedule"}
    assert found == {"other": 199_500_000, "runnable-woken": 500_000}
    (remark,) = [each for each in worded(profile.comments) if "waited for a core" in each]
    assert "exact for each" in remark
    monkeypatch.setattr(procfs, "schedstat", lambda _pid, _tid: None)
    monkeypatch.setenv("FAKE_PERF_TEXT", TEXT)
    comments = worded(Perf().trace(request(OffCpu())).profile.comments)
    assert any(each.startswith("waits of 1 thread include what came after they were woken") for each in comments)


def test_python_functions_with_names(monkeypatch: pytest.MonkeyPatch) -> None:
    python = "\t 15 [unknown] (//anon)\n\t            1543 _PyEval"
    monkeypatch.setattr(reading.JitNames, "frame", lambda _self, pid, address: CODE[pid, address])
    monkeypatch.setenv("FAKE_PERF_TEXT", TEXT.replace("\t            1543 _PyEval", python))
    profile = Perf().trace(request(OnCpu())).profile
    assert any(comment.startswith("of Python functions only the innermost") for comment in worded(profile.comments))
    assert ("work", "python", "/x/y.py") in {(f.name, f.kind, f.file) for s in profile.samples for f in s.stack}


def test_lines_that_programs_forged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forged lines are no other process's, and are told."""
    line = f"pytest {PID}/{PID} {{4500}}:   9 cpu-clock/freq=99/: \n\t  1 forged (/x/y)\n"
    monkeypatch.setenv("FAKE_PERF_TEXT", TEXT + line)
    monkeypatch.setenv("FAKE_PERF_UNTOLD", " 9 cpu-clock")
    profile = Perf().trace(request(OnCpu())).profile
    assert "forged" not in {frame.name for sample in profile.samples for frame in sample.stack}
    assert profile.lost["lines that programs forged"] == 2
    assert [s.values for s in profile.samples if s.stack[-1].name == "_PyEval_EvalFrameDefault"]


def asked(requested: bool) -> Any:
    """Stands for `Interrupts`: Ctrl-C, or none."""
    return SimpleNamespace(requested=requested)


@pytest.mark.parametrize("is_asked", [True, False])
def test_perf_script_that_falls_silent(is_asked: bool, fake_perf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The script is not waited for without end."""
    ours, theirs = os.pipe()
    try:
        monkeypatch.setattr(reading, "_SILENCE_AFTER" if is_asked else "_SILENCE", 0.2)
        made: Any = SimpleNamespace(text=ours, notices=ours, is_held=False)
        one = reading.Reading(made, Threads(0), Progress(1.0), None)
        one._is_told = False
        told = one.drain(asked(is_asked))
        assert told == "perf script was ended, since it printed nothing for 0.2 s"
    finally:
        os.close(ours)
        os.close(theirs)


@pytest.mark.parametrize("is_asked", [True, False])
def test_perf_record_that_waits_in_the_kernel(is_asked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The recording is not waited for as long as for perf script, at the end of -d, too; what was read is written."""
    monkeypatch.setattr(reading, "_SILENCE_AFTER" if is_asked else "_HELD", 0.3)
    monkeypatch.setattr(Recording, "stop", lambda self, is_over: time.monotonic_ns())
    monkeypatch.setattr(Recording, "is_held", True)
    reading_on = reading.Reading.drain
    monkeypatch.setattr(reading.Reading, "drain", lambda self, _: reading_on(self, asked(is_asked)))
    outcome = Perf().trace(request(OffCpu(), duration=0.5))
    comments = worded(outcome.profile.comments)
    assert comments[0].startswith("perf record was ended, since it did not end within 0.3 s: what came after"), comments
    assert [s for s in outcome.profile.samples if s.stack[-1].name == "schedule"]


def test_perf_script_that_has_much_to_print(fake_perf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_MOST_AFTER", 0.2)
    with open("/dev/zero", "rb") as source:
        made: Any = SimpleNamespace(text=source.fileno(), notices=-1, is_held=False)
        one = reading.Reading(made, Threads(0), Progress(1.0), None)
        one._is_told = False
        assert one.drain(asked(True)) == "perf script was ended, since it had not printed all 0.2 s after the trace"


def test_what_was_read_before_perf_script_fell_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_SILENCE", 0.2)
    monkeypatch.setenv("FAKE_PERF_HANGS", "1")
    profile = Perf().trace(request(OffCpu(), duration=0.5)).profile
    assert worded(profile.comments)[0].startswith(
        "perf script was ended, since it printed nothing for 0.2 s: what came after"
    )
    assert [s for s in profile.samples if s.stack[-1].name == "schedule"]
    monkeypatch.setenv("FAKE_PERF_TEXT", "")
    with pytest.raises(StallscopeError, match=r"printed nothing for 0\.2 s before it had reported anything"):
        Perf().trace(request(OffCpu(), duration=0.1))
