"""trace-func's options. With real calls: tests/live/test_func.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers.engines.ebpf.engine import Ebpf
from stallscope.tracers.engines.protocol import Request
from stallscope.tracers.func import main

LIBC = next(line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "/libc.so" in line)


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Request]:
    """What was to be traced; nothing is."""
    seen: list[Request] = []

    def trace(_: Ebpf, request: Request) -> None:
        seen.append(request)
        raise StallscopeError("recorded")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Ebpf, "trace", trace)
    return seen


def test_what_is_traced(recorded: list[Request]) -> None:
    assert main([f"{LIBC}:getenv", "libm.so.6:sin", "-p", "4711"]) == 1
    (request,) = recorded
    (measure,) = request.measures
    assert (measure.name, request.what, request.command) == ("calls", "Time in calls", ())
    assert measure.modules[1:] == (LIBC, "libm.so.6")


def test_a_command(recorded: list[Request]) -> None:
    assert main([f"{LIBC}:getenv", "--", "sleep", "1"]) == 1
    assert recorded[0].command == ("sleep", "1")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["-p", "1"],
        ["getenv", "-p", "1"],
        ["k:vfs_read", "-a"],
        [f"{LIBC}:getenv"],
        [f"{LIBC}:getenv", "-a", "-p", "1"],
        [f"{LIBC}:no_such_function", "-p", "1"],
        [f"{LIBC}:re:(", "-p", "1"],
        [f"{LIBC}:_setjmp", "-p", "1"],
        ["/no/such/file:f", "-p", "1"],
        [f"{__file__}:f", "-p", "1"],
        [f"{LIBC}:getenv", "--list", "--json"],
    ],
)
def test_wrong_usage(arguments: list[str], recorded: list[Request], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith("trace-func: ")
    assert recorded == []


def test_help_begins_with_three_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    said = capsys.readouterr().out
    assert said.count("sudo trace-func ") == 3
    assert said.startswith("Usage: trace-func TARGET... [OPTIONS] [-- COMMAND...]")


def test_a_list_traces_nothing(recorded: list[Request], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([f"{LIBC}:getenv", "--list"]) == 0
    assert "getenv  probe: " in capsys.readouterr().out
    assert main([f"{LIBC}:getenvv", "--list"]) == 1
    found = capsys.readouterr()
    assert "it has getenv" in found.out
    assert "no function matches" in found.err
    assert recorded == []
