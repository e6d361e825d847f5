from __future__ import annotations

import os
import resource
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers.base import privilege, procfs
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.ebpf import engine
from stallscope.tracers.engines.ebpf.engine import Ebpf
from stallscope.tracers.engines.ebpf.probes import ProbeOptions
from stallscope.tracers.engines.protocol import Request
from stallscope.tracers.measures.offcpu import OffCpu


def request(scope: Scope, *command: str, **given: Any) -> Request:
    return Request(scope, (OffCpu(),), "Off-CPU time", command, **given)


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What happens to the command."""
    seen: list[str] = []

    def launch(command: list[str], *, quiet: bool) -> SimpleNamespace:
        seen.append(" ".join(command) + (" (quiet)" if quiet else ""))
        return SimpleNamespace(stop=lambda: seen.append("stop"))

    monkeypatch.setattr(engine, "Launch", launch)
    return seen


def test_nothing_is_started_that_cannot_be_traced(launches: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(privilege, "effective_capabilities", lambda: 0)
    with pytest.raises(StallscopeError, match="tracing needs"):
        Ebpf().trace(request(Scope(), "true"))
    monkeypatch.setattr(privilege, "require", lambda: None)
    monkeypatch.setattr(procfs, "in_host_pid_namespace", lambda: False)
    with pytest.raises(StallscopeError, match="a container's own"):
        Ebpf().trace(request(Scope(), "true"))
    assert launches == []


@pytest.mark.parametrize("error", [StallscopeError("refused"), KeyboardInterrupt(), OSError(24, "x")])
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
    before = set(os.listdir("/proc/self/fd"))
    profile = Ebpf().trace(request(Scope(), "sh", "-c", "exit 5", duration=30)).profile
    assert "the command ended with status 5" in profile.comments
    assert profile.title == "Off-CPU time of sh"
    assert profile.duration_ns < 25e9
    assert any(times.exited and times.thread == "sh" for times in profile.threads)
    assert len(set(os.listdir("/proc/self/fd")) - before) <= 1  # the library that the first use leaves behind


def test_what_it_is_given_reaches_the_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[ProbeOptions] = []

    def refuse(options: ProbeOptions, _sink: object) -> NoReturn:
        seen.append(options)
        raise StallscopeError("enough")

    monkeypatch.setattr(privilege, "require", lambda: None)
    monkeypatch.setattr(privilege, "require_host_pids", lambda: None)
    monkeypatch.setattr(engine, "Probes", refuse)
    given = {"user_stacks": False, "kernel_stacks": False, "btf": Path("/btf"), "table_entries": 1, "buffer_bytes": 2}
    asked = request(Scope(everything=True))
    with pytest.raises(StallscopeError, match="enough"):
        Ebpf(**given, unwind_bytes=3).trace(asked)  # type: ignore[arg-type]
    assert seen == [ProbeOptions(asked.scope, asked.measures, unwind_bytes=3, **given)]  # type: ignore[arg-type]


def test_it_takes_every_measure() -> None:
    assert Ebpf().refusals([OffCpu()]) == {}


def test_command_that_does_not_exist(root: None) -> None:
    with pytest.raises(StallscopeError, match="cannot run 'no-such-command': No such file or directory"):
        Ebpf().trace(request(Scope(), "no-such-command", duration=30))


@pytest.mark.parametrize(
    ("soft", "hard", "expected"),
    [(1024, 4096, 4096), (1024, 1 << 20, 1 << 16), (1 << 18, 1 << 20, 1 << 18), (4096, 4096, 4096),
     (1024, resource.RLIM_INFINITY, 1 << 16)],
)  # fmt: skip
def test_descriptor_limit_is_raised_and_never_lowered(
    soft: int, hard: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(os, "sysconf", lambda _: soft)
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: seen.append(limits))
    engine._allow_many_files()
    assert seen == [(expected, hard)]
