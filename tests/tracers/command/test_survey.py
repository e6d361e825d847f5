from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers.bcc_compiler.compiler import Compiled
from stallscope.tracers.command import survey
from stallscope.tracers.command.engines import ENGINES
from stallscope.tracers.engines.protocol import Engine, Outcome, Request
from stallscope.tracers.measures.protocol import Measure


@dataclass
class Fake(Engine):
    """Takes these measures; of those that it does not have at the moment, it says so."""

    takes: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    name: str = "x"

    def refusals(self, measures: Sequence[Measure]) -> Mapping[str, str]:
        return {measure.name: "never" for measure in measures if measure.name not in self.takes}

    def missing(self, measures: Sequence[Measure]) -> StallscopeError | None:
        lacks = any(measure.name in self.lacks for measure in measures)
        return StallscopeError("not for you", "sudo") if lacks else None

    def trace(self, request: Request) -> Outcome:
        raise AssertionError("nothing is traced")


EVERY = ("offcpu", "oncpu", "wakeup", "locks", "timeline", "ioctl", "calls")


@pytest.mark.parametrize(
    ("engine", "ok", "detail", "remedy"),
    [
        (Fake(EVERY), True, "every command", ""),
        (Fake(("offcpu", "oncpu")), True, "trace-offcpu, trace-oncpu, trace-wall", ""),
        (
            Fake(("offcpu", "oncpu"), ("offcpu",)),
            True,
            "trace-oncpu; not trace-offcpu, trace-wall: not for you",
            "",
        ),
        (Fake(EVERY, EVERY), False, "not for you", "sudo"),
        (Fake(), False, "it serves no command here", ""),
    ],
)
def test_findings(engine: Fake, ok: bool, detail: str, remedy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survey, "all_engines", lambda _btf: [engine])
    (finding,) = survey.survey(None)
    assert (finding.name, finding.ok, finding.needed) == ("engine x", ok, False)
    assert (finding.detail, finding.remedy) == (detail, remedy)


def test_every_engine_is_asked() -> None:
    found = {finding.name for finding in survey.survey(None)}
    assert found == {f"engine {name}" for name in ENGINES}


def test_without_bcc(monkeypatch: pytest.MonkeyPatch) -> None:
    def compiled(*_: object) -> None:
        raise StallscopeError("there is no bcc", "install it")

    monkeypatch.setattr(survey, "compile_c", compiled)
    found = survey.questions()
    assert (found.ok, found.needed, found.detail, found.remedy) == (False, False, "there is no bcc", "install it")


def test_with_bcc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survey, "compile_c", lambda *_: Compiled({}, "0.26"))
    assert survey.questions().detail == "bcc 0.26 compiles them"
