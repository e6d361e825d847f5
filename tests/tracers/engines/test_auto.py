from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import Profile
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.auto import Auto
from stallscope.tracers.engines.protocol import Engine, EngineUnavailable, Outcome, Request
from stallscope.tracers.measures.offcpu import OffCpu
from stallscope.tracers.measures.protocol import Measure

REQUEST = Request(Scope(), (OffCpu(),), "Off-CPU time")


@dataclass
class Fake(Engine):
    """An engine that fails with this error, or has a profile with its name."""

    name: str
    error: StallscopeError | None = None
    refused: Mapping[str, str] = field(default_factory=dict)
    asked: int = 0

    def refusals(self, measures: Sequence[Measure]) -> Mapping[str, str]:
        return self.refused

    def missing(self, measures: Sequence[Measure]) -> StallscopeError | None:
        return self.error

    def trace(self, request: Request) -> Outcome:
        self.asked += 1
        if self.error:
            raise self.error
        return Outcome(Profile([], title=self.name, comments=["x"]), ["own"])


def test_the_first_one_that_can() -> None:
    engines = Fake("a"), Fake("b")
    outcome = Auto(engines).trace(REQUEST)
    assert outcome.profile.title == "a"
    assert outcome.profile.comments == ["x"]
    assert outcome.details == ["engine: a", "own"]
    assert engines[1].asked == 0


def test_it_says_why_it_is_another_one() -> None:
    engines = Fake("a", EngineUnavailable("no root")), Fake("b", EngineUnavailable("not there")), Fake("c")
    outcome = Auto(engines).trace(REQUEST)
    assert outcome.profile.title == "c"
    assert outcome.profile.comments == [
        "taken with c, because other engines cannot be used (a: no root; b: not there)",
        "x",
    ]


def test_other_errors_are_those_of_the_trace() -> None:
    engines = Fake("a", StallscopeError("there is no process 1")), Fake("b")
    with pytest.raises(StallscopeError, match="there is no process 1"):
        Auto(engines).trace(REQUEST)
    assert engines[1].asked == 0


def test_the_first_refusal_is_told_if_none_can() -> None:
    engines = Fake("a", EngineUnavailable("no root", "sudo")), Fake("b", EngineUnavailable("not there"))
    with pytest.raises(StallscopeError, match="no root") as raised:
        Auto(engines).trace(REQUEST)
    assert raised.value.remedy == "sudo"
    assert Auto(engines).missing(REQUEST.measures) is engines[0].error
    assert Auto((*engines, Fake("c"))).missing(REQUEST.measures) is None


def test_an_engine_without_the_measure_is_not_asked() -> None:
    engines = Fake("a", EngineUnavailable("no root")), Fake("b", refused={"offcpu": "never"})
    with pytest.raises(StallscopeError, match="no root"):
        Auto(engines).trace(REQUEST)
    assert engines[1].asked == 0
    assert Auto(engines).refusals(REQUEST.measures) == {}
    assert Auto(engines[1:]).refusals(REQUEST.measures) == {"offcpu": "never"}


def test_another_one_is_named_where_none_can_be_used() -> None:
    error = EngineUnavailable("no root", "be root")
    able, refuses, lacks = Fake("able"), Fake("refuses", refused={"offcpu": "no"}), Fake("lacks", error)
    with pytest.raises(EngineUnavailable, match="no root") as raised:
        Auto((Fake("a", error),), never=(lacks, refuses, able)).trace(REQUEST)
    assert raised.value.remedy == "be root; for your own processes: --engine able"
    assert able.asked == 0
    for never, scope in (((lacks, refuses), Scope()), ((able,), Scope(everything=True))):
        with pytest.raises(EngineUnavailable) as raised:
            Auto((Fake("a", error),), never=never).trace(replace(REQUEST, scope=scope))
        assert raised.value.remedy == "be root"


def test_what_each_engine_needs_is_told_once() -> None:
    root, lower = (
        EngineUnavailable("no root", "be root"),
        EngineUnavailable("no", "lower, or be root", needs="lower it"),
    )
    only_wall = OnlyWall("wall")
    engines = Fake("a", root), Fake("b", root), Fake("c", lower)
    for never, told in (((only_wall,), ", or trace-wall --engine wall"), ((Fake("d"),), ", or --engine d"), ((), "")):
        with pytest.raises(EngineUnavailable, match="no root") as raised:
            Auto(engines, never=never).trace(REQUEST)
        assert raised.value.remedy == f"be root; for your own processes: lower it (for c){told}"
    with pytest.raises(EngineUnavailable) as raised:
        Auto(engines, never=(only_wall,)).trace(replace(REQUEST, scope=Scope(everything=True)))
    assert raised.value.remedy == "be root"


class OnlyWall(Fake):
    """Engine that takes waits and samples, not one of them."""

    def refusals(self, measures: Sequence[Measure]) -> Mapping[str, str]:
        return {} if len(measures) == 2 else {"offcpu": "no"}
