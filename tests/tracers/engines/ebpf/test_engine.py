from __future__ import annotations

import os
import re
import resource
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers.base import privilege, procfs
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.ebpf import engine
from stallscope.tracers.engines.ebpf.engine import Ebpf
from stallscope.tracers.engines.ebpf.measures.offcpu import OffCpuCollector
from stallscope.tracers.engines.ebpf.probes import ProbeOptions
from stallscope.tracers.engines.protocol import EngineUnavailable, Request
from stallscope.tracers.measures.offcpu import OffCpu


def request(scope: Scope, *command: str, **given: Any) -> Request:
    return Request(scope, (OffCpu(),), "Off-CPU time", command, **given)


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Events of the command."""
    seen: list[str] = []

    def launch(command: list[str], *, quiet: bool) -> SimpleNamespace:
        seen.append(" ".join(command) + (" (quiet)" if quiet else ""))
        return SimpleNamespace(stop=lambda: seen.append("stop"))

    monkeypatch.setattr(engine, "Launch", launch)
    return seen


def test_nothing_is_started_that_cannot_be_traced(launches: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(privilege, "effective_capabilities", lambda: 0)
    with pytest.raises(EngineUnavailable, match="tracing needs"):
        Ebpf().trace(request(Scope(), "true"))
    assert "tracing needs" in str(Ebpf().missing([OffCpu()]))
    monkeypatch.setattr(privilege, "require", lambda: None)
    monkeypatch.setattr(procfs, "in_host_pid_namespace", lambda: False)
    with pytest.raises(StallscopeError, match="a container's own"):
        Ebpf().trace(request(Scope(), "true"))
    assert launches == []


@pytest.mark.parametrize("error", [StallscopeError("refused"), KeyboardInterrupt(), OSError(5, "x")])
def test_command_is_ended_whatever_happens(
    error: BaseException, launches: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> NoReturn:
        raise error

    monkeypatch.setattr(privilege, "require", lambda: None)
    monkeypatch.setattr(privilege, "require_host_pids", lambda: None)
    monkeypatch.setattr(engine, "Probes", refuse)
    with pytest.raises(type(error)):
        Ebpf().trace(request(Scope(), "cmd", "arg", quiet=True))
    assert launches == ["cmd arg (quiet)", "stop"]


def test_scope_is_resolved_before_anything_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(privilege, "require", lambda: None)
    monkeypatch.setattr(privilege, "require_host_pids", lambda: None)
    monkeypatch.setattr(engine, "Probes", lambda *_: pytest.fail("loaded"))
    with pytest.raises(StallscopeError, match="there is no process 4194304"):
        Ebpf().trace(request(Scope(pids=[1 << 22])))


def test_command(root: None) -> None:
    # The first use leaves a library, and the process that reads, behind.
    assert Ebpf().trace(request(Scope(), "true", duration=30)).status == 0
    before = len(os.listdir("/proc/self/fd"))
    profile = Ebpf().trace(request(Scope(), "sh", "-c", "exit 5", duration=30)).profile
    assert "the command ended with status 5" in profile.comments
    assert profile.title == "Off-CPU time of sh"
    assert profile.duration_ns < 25e9
    assert any(times.exited and times.thread == "sh" for times in profile.threads)
    assert len(os.listdir("/proc/self/fd")) <= before


def test_what_it_is_given_reaches_the_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[ProbeOptions] = []

    def refuse(options: ProbeOptions, _sink: object) -> NoReturn:
        seen.append(options)
        raise StallscopeError("enough")

    monkeypatch.setattr(privilege, "require", lambda: None)
    monkeypatch.setattr(privilege, "require_host_pids", lambda: None)
    monkeypatch.setattr(engine, "Probes", refuse)
    given = {"user_stacks": False, "kernel_stacks": False, "btf": Path("/btf"), "table_entries": 1, "buffer_bytes": 2}
    given["python"] = False
    asked = request(Scope(everything=True))
    with pytest.raises(StallscopeError, match="enough"):
        Ebpf(**given, unwind_bytes=3).trace(asked)  # type: ignore[arg-type]
    ((offcpu,),) = (options.collectors for options in seen)
    assert isinstance(offcpu, OffCpuCollector)
    assert seen == [ProbeOptions(asked.scope, (offcpu,), unwind_bytes=3, **given)]  # type: ignore[arg-type]


def test_waits_for_pythons_lock_are_measured_with_python(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []

    def refuse(options: ProbeOptions, _sink: object) -> NoReturn:
        seen.append([measure.name for measure in options.collectors])
        raise StallscopeError("enough")

    monkeypatch.setattr(privilege, "require", lambda: None)
    monkeypatch.setattr(privilege, "require_host_pids", lambda: None)
    monkeypatch.setattr(engine, "Probes", refuse)
    for made in (Ebpf(), Ebpf(python=False), Ebpf(user_stacks=False)):
        with pytest.raises(StallscopeError, match="enough"):
            made.trace(request(Scope(everything=True)))
    assert seen == [["offcpu", "gil"], ["offcpu"], ["offcpu"]]


def test_a_refused_program_is_told_as_the_machines_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> NoReturn:
        raise StallscopeError("refused", "another kernel", details="line")

    monkeypatch.setattr(privilege, "require", lambda: None)
    monkeypatch.setattr(privilege, "require_host_pids", lambda: None)
    monkeypatch.setattr(engine, "Probes", refuse)
    with pytest.raises(EngineUnavailable) as raised:
        Ebpf().trace(request(Scope(everything=True)))
    assert (raised.value.cause, raised.value.remedy, raised.value.details) == ("refused", "another kernel", "line")


def test_what_is_missing(root: None) -> None:
    assert Ebpf().missing([OffCpu()]) is None
    assert "/no/such" in str(Ebpf(btf=Path("/no/such")).missing([OffCpu()]))


def test_it_takes_every_measure() -> None:
    assert Ebpf().refusals([OffCpu()]) == {}


def test_command_that_does_not_exist(root: None) -> None:
    with pytest.raises(StallscopeError, match="cannot run 'no-such-command': No such file or directory"):
        Ebpf().trace(request(Scope(), "no-such-command", duration=30))


def test_too_low_a_limit_of_open_files_is_told_before_anything_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(privilege, "require", lambda: None)
    monkeypatch.setattr(privilege, "require_host_pids", lambda: None)
    monkeypatch.setattr(engine, "Probes", lambda *_: pytest.fail("loaded"))
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, 64))
    with pytest.raises(StallscopeError, match=r"only 64 files may be open at a time, and tracing needs [1-9]"):
        Ebpf().trace(request(Scope(everything=True)))


def test_command_has_the_limit_that_it_was_given(root: None) -> None:
    """A program that uses select() breaks above 1024."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (500, before[1]))
    try:
        traced = Ebpf().trace(request(Scope(), "sh", "-c", "exit $(($(ulimit -Sn) / 100))", duration=30))
        assert traced.status == 5
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 500
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize(("command", "status"), [("exit 5", 5), ("kill -SEGV $$", -11), ("exit 0", 0)])
def test_status_of_a_command_that_ended_by_itself(root: None, command: str, status: int) -> None:
    assert Ebpf().trace(request(Scope(), "sh", "-c", command, duration=30)).status == status


def test_command_that_the_end_of_the_trace_ended_has_no_status(root: None) -> None:
    assert Ebpf().trace(request(Scope(), "sleep", "60", duration=0.2)).status is None


def test_name_that_nobody_has(root: None) -> None:
    """The name is waited for; the duration counts from the start."""
    begin = time.monotonic()
    with pytest.raises(StallscopeError, match=r"there was no process whose name or command line matches 'nobody_.s'"):
        Ebpf().trace(request(Scope(name=re.compile("nobody_.s")), duration=0.5))
    assert time.monotonic() - begin >= 0.5
