"""A reader, an output, a measure, an engine, a command and a rule that the project does not know: one line in a list
each, and they are used like the others. A measure with a program in the kernel is in test_new_measure.py."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import pytest
from stallscope.converters import convert
from stallscope.converters.base import cli
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import Frame, Profile, Sample, ValueType
from stallscope.converters.readers import registry as readers
from stallscope.converters.readers.base.options import ReadOptions
from stallscope.converters.readers.base.source import Source
from stallscope.converters.rules.finding import CPU
from stallscope.converters.rules.ranking import judge
from stallscope.converters.rules.registry import RULES
from stallscope.converters.rules.verdict import Verdict
from stallscope.converters.writers import registry as writers
from stallscope.converters.writers.base.options import WriteOptions
from stallscope.tracers.command import engines, options, survey
from stallscope.tracers.command.engine_options import engine_options
from stallscope.tracers.command.run import run
from stallscope.tracers.engines.bcc.engine import Bcc
from stallscope.tracers.engines.ebpf.engine import Ebpf
from stallscope.tracers.engines.ebpf.measures.protocol import Collector, Ended
from stallscope.tracers.engines.ebpf.measures.registry import COLLECTORS, collectors
from stallscope.tracers.engines.perf.engine import Perf
from stallscope.tracers.engines.protocol import Engine, Outcome, Request
from stallscope.tracers.engines.rows import Row
from stallscope.tracers.engines.stap.engine import Stap
from stallscope.tracers.measures import commands
from stallscope.tracers.measures.protocol import Measure, find
from summary_profiles import SECOND, SLEEP, Tracee, empty, facts_of

HEAD = b"@toy\n"


class ToyReader:
    """Reads a number and a name per line."""

    def sniff(self, head: bytes) -> bool:
        return head.startswith(HEAD)

    def read(self, source: Source, _: ReadOptions) -> Profile:
        text = b"".join(source.chunks()).decode().splitlines()[1:]
        pairs = (line.split() for line in text)
        samples = [Sample((Frame("main"), Frame(name)), (int(number),)) for number, name in pairs]
        return Profile([ValueType("toys", "count")], samples)


class ToyWriter:
    """Writes them."""

    def write(self, profile: Profile, file: BinaryIO, _: WriteOptions) -> None:
        lines = (f"{sample.values[0]} {sample.stack[-1].name}\n" for sample in profile.samples)
        file.write(HEAD + "".join(sorted(lines)).encode())


@dataclass(frozen=True)
class Toy(Measure):
    """Toys, of which a thread has so many: the summary knows how to tell of events."""

    name: ClassVar[str] = "toy"
    number: int = 3

    @property
    def columns(self) -> tuple[ValueType, ...]:
        return (ValueType("events", "count"),)


class ToyCollector(Collector):
    """Collects them with no program."""

    name = Toy.name
    programs = ()

    def __init__(self, measure: Toy) -> None:
        self.columns = measure.columns

    def rows(self, ended: Ended) -> list[Row]:
        return []


@dataclass(frozen=True)
class ToyEngine(Engine):
    """Says what the measure says."""

    name: str = "toybox"
    loud: bool = False

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> ToyEngine:
        return cls(loud=given["kernel_only"])

    def refusals(self, measures: Sequence[Measure]) -> Mapping[str, str]:
        return {measure.name: "no toy" for measure in measures if not isinstance(measure, Toy)}

    def missing(self, measures: Sequence[Measure]) -> StallscopeError | None:
        return None

    def trace(self, request: Request) -> Outcome:
        toys = find(request.measures, Toy)
        assert toys
        pid = request.scope.pids[0]
        sample = Sample((Frame("main"), Frame("LOUD" if self.loud else "bear")), (toys.number,), (("pid", pid),))
        return Outcome(Profile(list(toys.columns), [sample], title=request.what))


@pytest.fixture
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(readers.READERS, "toy", readers.Entry(ToyReader()))
    monkeypatch.setitem(writers.WRITERS, "toy", writers.Entry(ToyWriter(), ".toy"))
    monkeypatch.setitem(COLLECTORS, "Toy", ToyCollector)
    monkeypatch.setitem(engines.ENGINES, "toybox", engines.Entry(ToyEngine, ("-K",)))
    monkeypatch.setattr(commands, "COMMANDS", {**commands.COMMANDS, "trace-toy": (Toy(),)})
    monkeypatch.setattr(survey, "COMMANDS", commands.COMMANDS)


@pytest.fixture
def command(toys: None) -> Callable[[list[str]], int]:
    @cli.command("trace-toy", examples=[("trace-toy -p 1", "a"), ("trace-toy -a", "b"), ("trace-toy -- x", "c")])
    @options.scope_options
    @options.naming_options
    @engine_options
    @options.output_options
    def main(**given: Any) -> int:
        """Toys."""
        return run(given, options.make_scope(given), (Toy(),), stem="toy", what="Toys")

    return main


@pytest.mark.usefixtures("toys")
def test_a_reader_and_an_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in").write_bytes(HEAD + b"5 car\n7 ball\n")
    assert convert.main([str(tmp_path / "in"), "-o", str(tmp_path / "out.toy")]) == 0
    assert (tmp_path / "out.toy").read_bytes() == HEAD + b"5 car\n7 ball\n"
    assert convert.main([str(tmp_path / "out.toy"), "-o", "-"]) == 0
    assert sorted(capsys.readouterr().out.splitlines()) == ["main;ball 7", "main;car 5"]


def test_a_measure_with_an_engine(command: Callable[[list[str]], int], tmp_path: Path) -> None:
    out = tmp_path / "x.toy"
    given = ["--engine", "toybox", "-p", str(os.getpid()), "-o", str(out), "--force"]
    assert command(given) == 0
    assert out.read_bytes() == HEAD + b"3 bear\n"
    assert command([*given, "-K"]) == 0
    assert out.read_bytes() == HEAD + b"3 LOUD\n"


@pytest.mark.usefixtures("toys")
def test_a_measure_with_the_other_engines() -> None:
    for engine in (Bcc(), Perf(), Stap()):
        assert list(engine.refusals([Toy()])) == ["toy"]
    assert Ebpf().refusals([Toy()]) == {}
    (made,) = collectors([Toy()])
    assert (made.name, made.columns) == ("toy", Toy().columns)


@pytest.mark.usefixtures("toys")
def test_trace_doctor_knows_the_engine_and_the_command() -> None:
    found = {finding.name: finding.detail for finding in survey.survey(None)}
    assert found["engine toybox"] == "trace-toy"
    assert "trace-toy" not in found["engine perf"]


def test_a_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    profile = empty()
    Tracee(profile, 1, "app", 1, "app").run(SECOND).wait(SLEEP, "interruptible", SECOND, 9)
    verdict = Verdict("toy", CPU, 100 * SECOND, 1.0, frozenset({1}))
    monkeypatch.setitem(RULES, "toy", lambda facts: [verdict] * len(facts.own))
    assert judge(facts_of(profile)).first == verdict
