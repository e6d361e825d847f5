from __future__ import annotations

import os
import resource
from types import SimpleNamespace
from typing import NoReturn

import pytest
from stallscope.converters.errors import StallscopeError
from stallscope.tracers.core import privilege, procfs, record
from stallscope.tracers.core.engine import OFF_CPU_PROBES, EngineOptions
from stallscope.tracers.core.scope import Scope


def options(scope: Scope) -> EngineOptions:
    return EngineOptions(scope, OFF_CPU_PROBES)


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What happens to the command."""
    seen: list[str] = []

    def launch(command: list[str], *, quiet: bool) -> SimpleNamespace:
        seen.append(" ".join(command) + (" (quiet)" if quiet else ""))
        return SimpleNamespace(stop=lambda: seen.append("stop"))

    monkeypatch.setattr(record, "Launch", launch)
    return seen


def test_nothing_is_started_that_cannot_be_traced(launches: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(privilege, "effective_capabilities", lambda: 0)
    with pytest.raises(StallscopeError, match="tracing needs"):
        record.record(options(Scope()), ("true",), None)
    monkeypatch.setattr(privilege, "require", lambda: None)
    monkeypatch.setattr(procfs, "in_host_pid_namespace", lambda: False)
    with pytest.raises(StallscopeError, match="a container's own"):
        record.record(options(Scope()), ("true",), None)
    assert launches == []


@pytest.mark.parametrize("error", [StallscopeError("refused"), KeyboardInterrupt(), OSError(24, "x")])
def test_command_is_ended_whatever_happens(
    error: BaseException, launches: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> NoReturn:
        raise error

    monkeypatch.setattr(privilege, "require", lambda: None)
    monkeypatch.setattr(privilege, "require_host_pids", lambda: None)
    monkeypatch.setattr(record, "Engine", refuse)
    with pytest.raises(type(error)):
        record.record(options(Scope()), ("cmd", "arg"), None, quiet=True)
    assert launches == ["cmd arg (quiet)", "stop"]


def test_scope_is_resolved_before_anything_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(privilege, "require", lambda: None)
    monkeypatch.setattr(privilege, "require_host_pids", lambda: None)
    monkeypatch.setattr(record, "Engine", lambda *_: pytest.fail("loaded"))
    with pytest.raises(StallscopeError, match="there is no process 4194304"):
        record.record(options(Scope(pids=[1 << 22])), (), None)


def test_command(root: None) -> None:
    before = set(os.listdir("/proc/self/fd"))
    capture = record.record(options(Scope()), ("sh", "-c", "exit 5"), 30)
    assert capture.exit_status == 5
    assert capture.stopped - capture.began < 25e9
    assert any(r.exited and r.comm == b"sh" for r in capture.threads)
    capture.spaces.close()
    assert len(set(os.listdir("/proc/self/fd")) - before) <= 1  # the library that the first use leaves behind


def test_command_that_does_not_exist(root: None) -> None:
    with pytest.raises(StallscopeError, match="cannot run 'no-such-command': No such file or directory"):
        record.record(options(Scope()), ("no-such-command",), None)


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
    record._allow_many_files()
    assert seen == [(expected, hard)]
