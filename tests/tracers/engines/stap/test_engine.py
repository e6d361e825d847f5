"""The engine with a stap and a staprun that do what they are told. The VM lane has the real ones: its check `stap`."""

from __future__ import annotations

import os
import re
import signal
import threading
from pathlib import Path

import pytest
from runner import FOLDER
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model.calls import WITHOUT_PROBE
from stallscope.tracers.base.progress import Progress
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.protocol import EngineUnavailable, Request
from stallscope.tracers.engines.stap.choice import How
from stallscope.tracers.engines.stap.compiling import MOST_FRAMES
from stallscope.tracers.engines.stap.engine import Stap
from stallscope.tracers.engines.stap.running import Running
from stallscope.tracers.measures.calls import Calls, KernelCalls
from stallscope.tracers.measures.ioctl import Ioctl
from stallscope.tracers.measures.locks import Locks
from stallscope.tracers.measures.offcpu import OffCpu
from stallscope.tracers.measures.oncpu import OnCpu
from stallscope.tracers.measures.protocol import Measure
from stallscope.tracers.measures.timeline import Timeline
from stallscope.tracers.measures.wakeup import WakeUp
from stallscope.tracers.probe_targets.wanted import Library, Wanted

PID = os.getpid()
TEXT = f"""\
stallscope 1 {{0}} 1700000000000000000
n {PID} {PID} py\\ntest
w {PID} {PID} S 0 1 {{0}} 0 2000000 1000000
f 1 0 wait_here+0x1/0x2 [/opt/x]
f 1 1 _PyEval_EvalFrameDefault+0x1/0x2 [/opt/python]
s {PID} {PID} 0 1
"""
REST = "lost scope 0\nlost stacks 2\nlost threads 0\nend 1 9\n"


@pytest.fixture(autouse=True)
def streams(fakes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_STAPRUN_TEXT", TEXT)
    monkeypatch.setenv("FAKE_STAPRUN_REST", REST)
    monkeypatch.setenv("FAKE_STAPRUN_SAYS", "WARNING: Number of errors: 0, skipped probes: 30\n")


def request(*measures: Measure, scope: Scope | None = None) -> Request:
    return Request(scope or Scope(pids=[PID]), measures or (OffCpu(),), "Wall-clock time", duration=0.1)


def test_a_profile(build: Path) -> None:
    outcome = Stap(How(build=build)).trace(request(OffCpu(time="wall"), OnCpu(time="wall")))
    profile = outcome.profile
    waits = [sample for sample in profile.samples if sample.label("state") == "interruptible"]
    (wait,) = [sample for sample in waits if sample.label("thread") == "py\ntest"]  # others: threads of the tests
    assert [frame.name for frame in wait.stack] == ["_PyEval_EvalFrameDefault", "wait_here"]
    assert wait.values[0] == 2_000_000
    assert wait.label("thread") == "py\ntest"
    assert profile.lost["events"] == 9 - 5 + 30
    assert profile.lost["stacks"] == 2
    assert any("lost events" in comment for comment in profile.comments)
    assert any("Python functions" in comment for comment in profile.comments)
    for times in profile.threads:
        assert times.on_cpu + times.runnable + sum(times.blocked.values()) == times.wall


def test_progress_where_nothing_happens(build: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr(Progress, "update", lambda self, *, threads, stacks, lost: shown.append("progress"))
    monkeypatch.setattr(Running, "stop", lambda self: bool(shown.append("stop")))
    monkeypatch.setenv("FAKE_STAPRUN_TEXT", TEXT.splitlines(keepends=True)[0])
    Stap(How(build=build)).trace(request())
    assert shown[0] == "progress"


def test_a_cut_stack_is_told(build: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for frames, told in ((MOST_FRAMES, True), (MOST_FRAMES - 1, False)):
        text = "".join(f"f 1 {n} wait_here+0x{n + 1:x}/0x200 [/opt/x]\n" for n in range(1, frames))
        lines = [line for line in TEXT.splitlines() if "_PyEval" not in line]
        monkeypatch.setenv("FAKE_STAPRUN_TEXT", "\n".join(lines) + "\n" + text)
        comments = Stap(How(build=build)).trace(request()).profile.comments
        assert any(f"more than {MOST_FRAMES} frames are cut" in comment for comment in comments) == told


def test_what_the_script_is_told(build: Path, tmp_path: Path) -> None:
    Stap(How(build=build, user_stacks=False)).trace(request(scope=Scope(pids=[PID], children=False)))
    compiled, ran = (tmp_path / "log").read_text().splitlines()
    assert " -d " not in compiled  # no user stacks, no symbols
    for setting in (f"pids={PID}", f"without={PID}", "children=0", "user_stacks=0", "kernel_stacks=1"):
        assert setting in ran.split()


def test_the_files_that_the_targets_map_are_named(build: Path, tmp_path: Path) -> None:
    Stap(How(build=build)).trace(request())
    compiled = (tmp_path / "log").read_text().splitlines()[0]
    assert f"-d {os.path.realpath('/proc/self/exe')}" in compiled


def test_a_module_that_was_compiled_elsewhere(tmp_path: Path) -> None:
    module = tmp_path / "x.ko"
    module.write_text("\0name=stallscope_f_12345678\0")
    outcome = Stap(How(module=module)).trace(request())
    assert outcome.details == ("SystemTap: module x.ko",)
    (ran,) = (tmp_path / "log").read_text().splitlines()
    assert "stallscope_f_12345678.ko" in ran


@pytest.mark.parametrize("letters", ["n", "iw"])
def test_a_module_of_another_command(tmp_path: Path, letters: str) -> None:
    """Measures that the module does not take would be shown as if there were none."""
    (tmp_path / "x.ko").write_text(f"\0name=stallscope_{letters}_12345678\0")
    with pytest.raises(StallscopeError, match=r"compiled for another command: it has .*, but not offcpu\n"):
        Stap(How(module=tmp_path / "x.ko")).trace(request())
    assert not (tmp_path / "log").exists()


NO_PROBE = 'WARNING: probe process("{}").function("sleep_1ms").call at inode-offset 1:(nil) registration error (rc -5)'


def test_functions_that_get_no_probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trace without calls would say nothing then. Of two functions, the other one may have been called."""
    path = str(FOLDER / "sleeps")
    measure = Calls(Wanted(libraries=(Library.at(path),), symbols=re.compile("^sleep_")))
    monkeypatch.setenv("FAKE_STAPRUN_SAYS", f"{NO_PROBE.format(path)}\n")
    points = f'process("{path}").function("sleep_1ms").call\0'
    module = tmp_path / "x.ko"
    module.write_text(f"\0name=stallscope_c_12345678\0{points}")
    with pytest.raises(StallscopeError, match=r"no function could get a probe.*\(rc -5\)"):
        Stap(How(module=module)).trace(request(measure))
    module.write_text(f"\0name=stallscope_c_12345678\0{points}{points.replace('1ms', '10ms')}")
    profile = Stap(How(module=module)).trace(request(measure)).profile
    assert profile.lost[WITHOUT_PROBE] == 1
    assert any("no probe could be put on sleep_1ms" in comment for comment in profile.comments)


def test_a_module_that_takes_more(tmp_path: Path) -> None:
    (tmp_path / "x.ko").write_text("\0name=stallscope_fn_12345678\0")
    Stap(How(module=tmp_path / "x.ko")).trace(request())


def test_only_compiled(build: Path, tmp_path: Path) -> None:
    target = tmp_path / "new.ko"
    said = Stap(How(build=build, write=target, files=(os.__file__,))).instead(
        request(scope=Scope(everything=True)), "trace-x"
    )
    assert target.read_text().startswith("a module")
    assert said.startswith(f"{target}: for trace-x and Linux ")
    assert "tables of 1 file; take it along" in said
    assert "--stap-module" in said


def test_a_file_that_exists_is_not_overwritten_and_nothing_is_compiled_for_it(build: Path, tmp_path: Path) -> None:
    target = tmp_path / "new.ko"
    for existing in (target.touch, lambda: target.symlink_to("nowhere")):
        existing()
        with pytest.raises(StallscopeError, match=r"new\.ko exists already"):
            Stap(How(build=build, write=target)).instead(request(scope=Scope(everything=True)), "trace-x")
        target.unlink()
    assert not (tmp_path / "log").exists()


def test_ctrl_c_while_it_compiles(build: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_STAP_SECONDS", "60")
    timer = threading.Timer(0.5, os.kill, (PID, signal.SIGINT))
    timer.start()
    with pytest.raises(StallscopeError, match="while SystemTap compiled"):
        Stap(How(build=build)).trace(request())
    timer.join()


def test_refusals() -> None:
    engine = Stap()
    assert not engine.refusals((OffCpu(), OnCpu()))
    assert not engine.refusals((WakeUp(), Locks(), Ioctl()))
    assert engine.refusals((OffCpu(), Timeline())) == {"timeline": "the engine stap has no script for timeline"}
    assert "cpu-clock only" in engine.refusals((OnCpu(event="page-faults"),))["oncpu"]


def test_locks_are_left_out_and_that_is_said(build: Path) -> None:
    profile = Stap(How(build=build)).trace(request(WakeUp(), Locks())).profile
    assert [comment for comment in profile.comments if comment.startswith("locks and who has them are not told")]
    assert any(sample.label("waker") == "[unknown waker]" for sample in profile.samples)


def test_what_is_missing(fakes: Path) -> None:
    (fakes / "stap").unlink()
    error = Stap().missing((OffCpu(),))
    assert error is not None
    assert "no SystemTap" in error.cause


def test_a_module_of_another_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_STAPRUN_TEXT", "stallscope 9 1 1\n")
    (tmp_path / "x.ko").write_text("\0name=stallscope_f_12345678\0")
    with pytest.raises(EngineUnavailable, match="version 9"):
        Stap(How(module=tmp_path / "x.ko")).trace(request())
    pid = (tmp_path / "log").read_text().split()[0]
    assert not os.path.exists(f"/proc/{pid}")


def test_too_many_targets(build: Path) -> None:
    scope = Scope(pids=[PID])
    scope.tgids = set(range(1, 3000))
    with pytest.raises(EngineUnavailable, match="too many for a module"):
        Stap(How(build=build)).trace(request(scope=scope))


def test_options_that_it_does_not_have() -> None:
    assert Stap().refusals((Calls(over=1000),)) == {"calls": "the engine stap has no --over"}
    assert "no script" in next(iter(Stap().refusals((KernelCalls(("vfs_read",)),)).values()))
