"""trace-nccl's options. With real calls: tests/live/test_collectives.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from stallscope.tracers.engines.protocol import Request
from stallscope.tracers.measures.argument_options import ArgumentOptions
from stallscope.tracers.measures.calls import Calls
from stallscope.tracers.nccl import main
from stallscope.tracers.probe_targets.collectives import Collectives
from stallscope.tracers.probe_targets.wanted import Library


def test_defaults(recorded: list[Request]) -> None:
    assert main(["-p", "4711"]) == 1
    (request,) = recorded
    assert [each.name for each in request.measures] == ["offcpu", "oncpu", "wakeup", "locks", "timeline", "calls"]
    assert request.measures[-1] == Calls(Collectives(), arguments=ArgumentOptions())


def test_libraries_and_a_limit(recorded: list[Request], tmp_path: Path) -> None:
    file = tmp_path / "libmine.so"
    file.write_bytes(b"")
    assert main(["-p", "4711", "--lib", str(file), "--lib", "libx.so.1", "--collective-limit", "7"]) == 1
    calls = recorded[0].measures[-1]
    assert isinstance(calls, Calls)
    assert calls.arguments == ArgumentOptions(limit=7)
    assert calls.wanted.libraries == (Library.at(str(file)), Library("libx.so.1"))


@pytest.mark.parametrize(
    "arguments",
    [[], ["-p", "1", "--sym", "x"], ["-p", "1", "--collective-limit", "0"], ["-p", "1", "--lib", "/nowhere/x"]],
)
def test_wrong_usage(arguments: list[str], recorded: list[Request], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith("trace-nccl: ")
    assert recorded == []


def test_help_begins_with_three_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert capsys.readouterr().out.count("sudo trace-nccl ") == 3
