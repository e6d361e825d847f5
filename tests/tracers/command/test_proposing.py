"""Recommended commands, by the engine of the trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from next_steps import step_of
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model.next_step import WHO_ENDS
from stallscope.tracers.command import proposing
from stallscope.tracers.command.proposing import Proposing, refusal
from stallscope.tracers.engines.auto import Auto
from stallscope.tracers.engines.bcc.engine import Bcc
from stallscope.tracers.engines.ebpf.engine import Ebpf
from stallscope.tracers.engines.eu_stack.engine import EuStack
from stallscope.tracers.engines.perf.engine import Perf
from stallscope.tracers.engines.protocol import Engine
from stallscope.tracers.engines.stap.engine import Stap
from stallscope.tracers.measures.calls import Calls
from stallscope.tracers.measures.offcpu import OffCpu
from stallscope.tracers.measures.protocol import Measure
from stallscope.tracers.measures.timeline import Timeline
from stallscope.tracers.measures.wakeup import WakeUp

WHEN = "trace-offcpu -p 7 -d 2 -o when.pftrace"
WAKERS = "trace-wakeup -p 7 -d 5"
CRITICAL = "trace-wakeup -p 7 -d 5 --critical 7"
HOST = "trace-wall -a -d 5"
WALL = "trace-wall -p 7 -d 5"


def given(engine: str, **more: Any) -> dict[str, Any]:
    return {"engine": engine, "outputs": (), "pids": (7,), **more}


@dataclass(frozen=True)
class Missing:
    """An engine that this machine lacks, but for those measures that it would take."""

    name: str
    real: Engine

    def refusals(self, measures: Sequence[Measure]) -> Mapping[str, str]:
        return self.real.refusals(measures)

    def missing(self, measures: Sequence[Measure]) -> StallscopeError | None:
        return StallscopeError("not here")


def fitted(engine: Engine, command: str, stem: str = "offcpu", used: str = "", **more: Any) -> str | None:
    made = Proposing(given(getattr(engine, "name", "auto"), **more), stem, engine, used).fit(step_of(command, "x"))
    return made.command if made else None


@pytest.fixture(autouse=True)
def perf_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (Perf, EuStack):
        monkeypatch.setattr(kind, "missing", lambda *_: None)


@pytest.mark.parametrize(
    ("engine", "command", "told"),
    [
        (Stap(), WAKERS, "trace-wakeup --engine stap -p 7 -d 5"),
        (Stap(), WHEN, "trace-wakeup --engine stap -p 7 -d 5"),
        (Stap(), CRITICAL, None),
        (Stap(), HOST, "trace-wall --engine stap -a -d 5"),
        (Stap(), "trace-func /x:f -p 7 -d 5", "trace-func --engine stap /x:f -p 7 -d 5"),
        (
            Stap(),
            "trace-wall -d 5 -- trace-wall -o x.pftrace",
            "trace-wall --engine stap -d 5 -- trace-wall -o x.pftrace",
        ),
        (Perf(), WALL, "trace-wall --engine perf -p 7 -d 5"),
        (Perf(), WAKERS, None),
        (Perf(), HOST, None),
        (EuStack(), WALL, "trace-wall --engine eu-stack -p 7 -d 5"),
        (EuStack(), "trace-offcpu -p 7 -d 5", None),
        (Ebpf(), CRITICAL, "trace-wakeup --engine libbpf -p 7 -d 5 --critical 7"),
    ],
)
def test_an_engine_that_was_asked_for(engine: Engine, command: str, told: str | None) -> None:
    assert fitted(engine, command) == told


def test_what_was_just_run_is_no_alternative() -> None:
    assert fitted(Stap(), WHEN, "wakeup") is None


def test_a_module_is_for_its_own_command() -> None:
    module = Path("/a b.ko")
    assert fitted(Stap(), WALL, "wall", stap_module=module) == (
        "trace-wall --engine stap --stap-module '/a b.ko' -p 7 -d 5"
    )
    made = Proposing(given("stap", stap_module=module), "offcpu", Stap()).fit(step_of(WAKERS, WHO_ENDS))
    assert made
    assert made.command == "trace-wakeup --engine stap -p 7 -d 5"
    assert (made.tells, made.needs_module) == (WHO_ENDS, True)


def test_auto_with_the_first_engine_changes_nothing() -> None:
    auto = Auto((Ebpf(), Bcc(), Stap(), Perf()))
    for used in ("libbpf", ""):
        assert fitted(auto, CRITICAL, used=used) == CRITICAL


def test_auto_with_another_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proposing.os, "geteuid", lambda: 0)
    auto = Auto((Ebpf(), Bcc(), Missing("stap", Stap()), Perf()))  # type: ignore[arg-type]
    assert fitted(auto, WALL, used="perf") == WALL
    assert fitted(auto, WAKERS, used="perf") is None, "nobody can"
    assert fitted(Auto((Ebpf(), Perf(), Stap())), CRITICAL, used="stap") is None


def test_an_ordinary_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(proposing.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(proposing.shutil, "which", lambda _: "/usr/bin/sudo")
    monkeypatch.setattr(proposing, "_TYPES", tmp_path)
    auto = Auto((Ebpf(), Perf()))
    assert fitted(auto, WALL, used="perf") == WALL
    assert fitted(auto, WAKERS, used="perf") == f"sudo {WAKERS}"
    assert fitted(auto, HOST, used="perf") == f"sudo {HOST}"
    monkeypatch.setattr(proposing, "_TYPES", tmp_path / "none")
    assert fitted(auto, WAKERS, used="perf") is None, "root could not, either"


@pytest.mark.parametrize(
    ("measures", "more", "option"),
    [
        ((WakeUp(), Timeline()), {"critical": 7}, "--critical"),
        ((OffCpu(), Timeline()), {"timeline": True, "outputs": ("x.trace.json",)}, "--timeline"),
        ((OffCpu(), Timeline()), {"steps": ("a:b",)}, "--step"),
        ((OffCpu(), Timeline()), {"outputs": ("a.svg", "x.pftrace")}, "-o x.pftrace"),
    ],
)
def test_refusals_name_what_was_typed(measures: tuple[Measure, ...], more: dict[str, Any], option: str) -> None:
    error = refusal(Stap(), measures, given("stap", **more))
    assert error
    assert error.cause == f"the engine stap does not record what {option} shows"
    assert error.remedy == f"leave out {option} or --engine stap"
    assert error.exit_code == 2


def test_other_refusals() -> None:
    assert refusal(Stap(), (OffCpu(),), given("stap")) is None
    wakers = refusal(Perf(), (OffCpu(), WakeUp()), given("auto", wakers=True))
    assert wakers
    assert (wakers.cause, wakers.remedy) == (
        "the engine perf does not record what --wakers shows",
        "leave out --wakers",
    )
    calls = refusal(Perf(), (Calls(),), given("perf"))
    assert calls
    assert calls.remedy == "leave out --engine perf, or choose another one"
