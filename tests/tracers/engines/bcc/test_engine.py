"""Refusals, and messages where something is missing, without tracing."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers.base import privilege
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.bcc_compiler import compiler
from stallscope.tracers.engines.bcc import engine, programs
from stallscope.tracers.engines.bcc.engine import Bcc
from stallscope.tracers.engines.protocol import EngineUnavailable, Request
from stallscope.tracers.kernel.tracepoint_format import Format
from stallscope.tracers.measures.offcpu import OffCpu
from stallscope.tracers.measures.oncpu import OnCpu
from stallscope.tracers.measures.wakeup import WakeUp

REQUEST = Request(Scope(pids=[os.getpid()]), (OffCpu(),), "Off-CPU time")


def fails(cause: str, remedy: str = "") -> Callable[..., None]:
    def raises(*_: object, **__: object) -> None:
        raise StallscopeError(cause, remedy)

    return raises


@pytest.fixture
def allowed(monkeypatch: pytest.MonkeyPatch, formats: dict[str, Format]) -> None:
    """A user and a machine that may trace."""
    monkeypatch.setattr(engine, "_require", lambda: None)
    monkeypatch.setattr(programs, "read_format", formats.__getitem__)


def test_measures() -> None:
    assert Bcc().refusals((OffCpu(), OnCpu())) == {}
    assert "no wakeup" in Bcc().refusals((WakeUp(),))["wakeup"]
    assert "by cpu-clock only" in Bcc().refusals((OnCpu(event="cycles"),))["oncpu"]


def test_options_that_it_lacks() -> None:
    with pytest.raises(EngineUnavailable, match="does not have --every"):
        Bcc().trace(Request(Scope(), (OffCpu(),), "Off-CPU time", every=1.0))


@pytest.mark.usefixtures("allowed")
@pytest.mark.parametrize(
    ("cause", "remedy"),
    [
        ("there is no bcc, which compiles BPF programs", "apt-get install python3-bpfcc"),
        ("bcc 0.8.0 does not compile it: error: use of undeclared identifier", "bcc 0.18 or newer is needed"),
        ("bcc did not compile within 120 s", "try again when less runs here"),
    ],
)
def test_no_bcc_or_an_old_one(cause: str, remedy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "compile_c", fails(cause, remedy))
    with pytest.raises(EngineUnavailable) as raised:
        Bcc().trace(REQUEST)
    assert (raised.value.cause, raised.value.remedy) == (cause, remedy)
    missing = Bcc().missing(REQUEST.measures)
    assert missing is not None
    assert missing.cause == cause


@pytest.mark.usefixtures("allowed")
def test_bcc_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "find", fails("there is no bcc, which compiles BPF programs", "apt-get"))
    with pytest.raises(EngineUnavailable, match="there is no bcc"):
        Bcc().trace(REQUEST)


def test_an_ordinary_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(privilege, "allowed", lambda: False)
    with pytest.raises(EngineUnavailable, match="tracing needs"):
        Bcc().trace(REQUEST)


def test_without_tracefs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_require", lambda: None)
    monkeypatch.setattr(programs, "read_format", fails("the tracepoint cannot be read"))
    with pytest.raises(EngineUnavailable, match="cannot be read"):
        Bcc().trace(REQUEST)
