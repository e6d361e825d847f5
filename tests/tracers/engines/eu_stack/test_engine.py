"""The engine with an eu-stack that says what it is told to. With the real one: tests/live/test_engines.py."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from stallscope.converters.base import helpers
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model.processes import cpu_set
from stallscope.converters.phrases.remarks import worded
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.eu_stack import engine, sampling, walker
from stallscope.tracers.engines.eu_stack.engine import EuStack
from stallscope.tracers.engines.eu_stack.looks import look
from stallscope.tracers.engines.protocol import EngineUnavailable, Request
from stallscope.tracers.measures.offcpu import OffCpu
from stallscope.tracers.measures.oncpu import OnCpu

Fake = Callable[[str], Path]
Sleeper = subprocess.Popen[bytes]
TEXT = 'echo "TID $2:"; echo "#0  0x0000000000001234 nap"; echo "#1  0x0000000000001235 main"'

PROGRAM = """
import json, sys, threading, time
truth = []
def work():
    began = time.monotonic_ns()
    while time.monotonic_ns() < began + 400_000_000:
        time.sleep(0.001)
    truth.append({"wall": time.monotonic_ns() - began, "cpu": time.thread_time_ns()})
time.sleep(0.3)
threads = [threading.Thread(target=work) for _ in range(3)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
open(sys.argv[1], "w").write(json.dumps(truth))
"""


def request(scope: Scope, **given: Any) -> Request:
    measures = OffCpu(time="wall"), OnCpu(20, time="wall")
    return Request(scope, measures, "Wall-clock time", **{"duration": 1.0, **given})


def asleep(pid: int) -> str:
    """`TEXT` at the place where this process sleeps."""
    until = time.monotonic() + 30
    while (seen := look(pid, pid)).number < 0:
        assert time.monotonic() < until
    return TEXT.replace("0000000000001234", f"{seen.address:016x}")


def test_a_profile(fake_eu_stack: Fake, sleeper: Sleeper) -> None:
    fake_eu_stack(asleep(sleeper.pid))
    outcome = EuStack().trace(request(Scope(pids=[sleeper.pid])))
    profile = outcome.profile
    assert [column.name for column in profile.value_types] == ["wall", "count", "min", "max", "samples"]
    (times,) = profile.threads
    assert (times.pid, times.process) == (sleeper.pid, "sleep")
    assert times.on_cpu + times.runnable + sum(times.blocked.values()) == times.wall
    assert profile.total("wall") == times.wall
    (process,) = profile.processes
    assert (process.pid, cpu_set(process.cpus)) == (sleeper.pid, os.sched_getaffinity(sleeper.pid))
    assert {s.stack[-1].name for s in profile.samples if s.label("state") != "running"} <= {
        "nap",
        "[not sampled]",
        "[stopped by eu-stack]",
    }
    assert sum(s.values[4] for s in profile.samples) > 1
    assert all(s.values[1:4] == (0, 0, 0) for s in profile.samples), "waits are not counted"
    overhead = worded(profile.comments)[0]
    assert "samples of processes" in overhead
    assert "a thread was stopped for" in overhead


def test_samples_leave_half_of_the_time(fake_eu_stack: Fake, sleeper: Sleeper, tmp_path: Path) -> None:
    fake_eu_stack(f"echo >> {tmp_path}/walks; sleep 0.1; {TEXT}")
    began = time.monotonic()
    comments = worded(EuStack().trace(request(Scope(pids=[sleeper.pid]), duration=1.0)).profile.comments)
    walks = len((tmp_path / "walks").read_text().splitlines())
    assert walks <= (time.monotonic() - began) / 0.2 + 1
    assert any("left out: eu-stack took longer than -F allows" in comment for comment in comments)


def test_every_sample_failed(fake_eu_stack: Fake, sleeper: Sleeper) -> None:
    fake_eu_stack("echo 'eu-stack: Operation not permitted' >&2; exit 2")
    with pytest.raises(StallscopeError, match="eu-stack failed: eu-stack: Operation not permitted") as raised:
        EuStack().trace(request(Scope(pids=[sleeper.pid])))
    assert ("another engine" if os.geteuid() == 0 else "own processes") in raised.value.remedy


def test_a_process_that_keeps_eu_stack_from_answering(fake_eu_stack: Fake, sleeper: Sleeper, tmp_path: Path) -> None:
    """The process is left alone after a few looks, and others are sampled."""
    told = f"3 looks at process {sleeper.pid} (sleep) were given up: eu-stack did not answer"
    with subprocess.Popen(["/bin/sleep", "60"]) as other:
        stops = f"if [ $2 = {sleeper.pid} ]; then echo >> {tmp_path}/looks; kill -STOP $$; fi"
        fake_eu_stack(f"{stops}; {asleep(other.pid)}")
        profile = EuStack().trace(request(Scope(pids=[sleeper.pid, other.pid]))).profile
        other.kill()
    assert (tmp_path / "looks").read_text() == "\n" * 3
    assert profile.lost["samples"] == 3
    assert f"{told}, and it was not looked at any more" in worded(profile.comments)
    assert not any("eu-stack failed" in comment for comment in worded(profile.comments))
    assert {s.label("pid") for s in profile.samples if s.stack[-1].name == "nap"} == {other.pid}
    with pytest.raises(EngineUnavailable, match="given up: eu-stack did not answer") as raised:
        EuStack().trace(request(Scope(pids=[sleeper.pid])))
    assert raised.value.remedy == "use another engine"


@pytest.mark.parametrize("script", ["kill -STOP $$", "exec sleep 1e6"])
def test_the_end_of_the_trace_is_waited_for_by_nobody(script: str, fake_eu_stack: Fake, sleeper: Sleeper) -> None:
    """Much less than `walker._PATIENCE` after it."""
    fake_eu_stack(script)
    began = time.monotonic()
    with pytest.raises(EngineUnavailable, match="eu-stack did not answer"):
        EuStack().trace(request(Scope(pids=[sleeper.pid]), duration=0.3))
    assert time.monotonic() - began < walker._PATIENCE / 2


def test_some_samples_failed(fake_eu_stack: Fake, sleeper: Sleeper, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    fake_eu_stack(f"if [ -e {flag} ]; then {TEXT}; else touch {flag}; echo no >&2; exit 2; fi")
    profile = EuStack().trace(request(Scope(pids=[sleeper.pid]), duration=2.0)).profile
    assert profile.lost["samples"] == 1
    assert any(
        f"eu-stack failed {profile.lost['samples']} times: no" in comment for comment in worded(profile.comments)
    )


def test_a_command(fake_eu_stack: Fake) -> None:
    fake_eu_stack(TEXT)
    outcome = EuStack().trace(request(Scope(), command=("/bin/sh", "-c", "/bin/sleep 1.5; exit 5"), duration=None))
    assert outcome.status == 5
    assert worded(outcome.profile.comments)[0] == "the command ended with status 5"
    assert "sleep" in {times.process for times in outcome.profile.threads}, "what it forks is sampled, too"


def test_a_command_that_ends_at_once_has_its_own_name(fake_eu_stack: Fake) -> None:
    fake_eu_stack(TEXT)
    profile = EuStack().trace(request(Scope(), command=("/bin/sh", "-c", "kill -SEGV $$"), duration=None)).profile
    assert {(times.process, times.thread) for times in profile.threads} == {("sh", "sh")}


def test_processes_between_two_looks(fake_eu_stack: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first process is seen; those that it forks come and go before the first look for them."""
    fake_eu_stack(TEXT)
    monkeypatch.setattr(sampling, "_LOOK", 3600.0)  # also where the machine is busy
    busy = "import time\nwhile time.process_time() < 0.05: pass"
    code = f"import subprocess, sys; [subprocess.run([sys.executable, '-S', '-c', {busy!r}]) for _ in range(10)]"
    for program, is_told in ((code, True), (busy.replace("0.05", "0.8"), False)):
        command = ("/usr/bin/env", sys.executable, "-c", program)
        comments = worded(EuStack().trace(request(Scope(), command=command, duration=None)).profile.comments)
        told = [each for each in comments if "processes or threads that began and ended between two looks used" in each]
        assert bool(told) is is_told, comments


def test_threads_between_two_samples(fake_eu_stack: Fake, tmp_path: Path) -> None:
    """eu-stack takes long here: threads begin and end during a sample, and have all of their time all the same."""
    fake_eu_stack(f"sleep 1.5; {TEXT}")
    (tmp_path / "program.py").write_text(PROGRAM)
    command = ("/usr/bin/env", sys.executable, str(tmp_path / "program.py"), str(tmp_path / "truth"))
    profile = EuStack().trace(request(Scope(), command=command, duration=None)).profile
    truth = json.loads((tmp_path / "truth").read_text())
    lost = profile.lost["ns of ends of threads"]
    threads = [times for times in profile.threads if times.pid != times.tid]
    assert len(threads) == len(truth) == 3
    wall, on_cpu = sum(times.wall for times in threads), sum(times.on_cpu for times in threads)
    assert sum(each["wall"] for each in truth) - lost <= wall
    assert sum(each["cpu"] for each in truth) - lost <= on_cpu <= sum(each["cpu"] for each in truth) + lost + 50_000_000
    ended = profile.lost["ends of threads"]
    assert ended in (3, 4), "the main thread is seen after its end"
    assert any(f"{ended} threads ended between two looks: up to " in comment for comment in worded(profile.comments))


def test_threads_of_a_scope(fake_eu_stack: Fake, sleeper: Sleeper) -> None:
    fake_eu_stack(f'{asleep(sleeper.pid).replace("$2", "$3")}; echo "TID 1:"; echo "#0  0x0000000000001234 other"')
    profile = EuStack().trace(request(Scope(threads=[sleeper.pid]))).profile
    assert {s.label("tid") for s in profile.samples} == {sleeper.pid}
    names = {s.stack[-1].name for s in profile.samples}
    assert "nap" in names
    assert "other" not in names


def test_what_it_does_not_do(fake_eu_stack: Fake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake_eu_stack(TEXT)
    assert EuStack().refusals([OffCpu(), OnCpu()]) == {}
    (refused,) = EuStack().refusals([OffCpu()]).values()
    assert "serves trace-wall only" in refused
    assert EuStack().missing([]) is None
    with pytest.raises(EngineUnavailable, match="whole hosts"):
        EuStack().trace(request(Scope(everything=True)))
    with pytest.raises(EngineUnavailable, match="--every"):
        EuStack().trace(request(Scope(pids=[1]), every=1.0))
    monkeypatch.setattr(helpers, "FOLDERS", (str(tmp_path),))
    assert "there is no eu-stack" in str(EuStack().missing([]))


def test_a_command_is_not_started_without_eu_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> str:
        raise EngineUnavailable("there is no eu-stack")

    monkeypatch.setattr(engine, "find_eu_stack", refuse)
    monkeypatch.setattr(engine, "Launch", lambda *_args, **_given: pytest.fail("started"))
    with pytest.raises(EngineUnavailable):
        EuStack().trace(request(Scope(), command=("/bin/true",)))
