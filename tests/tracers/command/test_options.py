from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click
import pytest
from stallscope.converters.base import cli
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.command import options
from stallscope.tracers.measures.timeline import Timeline
from stallscope.tracers.symbols.lines import LineTool

EXAMPLES = [("trace-x", "a"), ("trace-x", "b"), ("trace-x", "c")]


def parse(*arguments: str) -> dict[str, Any]:
    """Values that a command with all shared options is given."""
    seen: dict[str, Any] = {}

    @cli.command("trace-x", examples=EXAMPLES)
    @options.scope_options
    @options.timeline_options
    @options.naming_options
    @options.output_options
    def main(**given: Any) -> None:
        seen.update(given)

    with main.make_context("trace-x", list(arguments)) as context:
        main.invoke(context)
    return seen


@pytest.mark.parametrize(
    ("arguments", "scope"),
    [
        (["-p", "1,2", "-p", "3"], Scope(pids=[1, 2, 3])),
        (["-t", "5", "-p", "1"], Scope(pids=[1], threads=[5])),
        (["-n", "^python"], Scope(name=re.compile("^python"))),
        (["-n", "x", "--cgroup", "/sys/fs/cgroup/a", "-t1"],
         Scope(threads=[1], name=re.compile("x"), cgroup=Path("/sys/fs/cgroup/a"))),
        (["-p", "1", "--children"], Scope(pids=[1], descendants=True)),
        (["-a", "--no-children"], Scope(everything=True, children=False)),
        (["--", "./train", "--epochs", "1", "-p"], Scope()),
        (["--no-children", "sleep", "5"], Scope(children=False)),
    ],
)  # fmt: skip
def test_scope(arguments: list[str], scope: Scope) -> None:
    assert options.make_scope(parse(*arguments)) == scope


def test_command_is_left_as_it_is() -> None:
    assert parse("-d", "1", "--", "./train", "--epochs", "-d", "--")["command"] == ("./train", "--epochs", "-d", "--")
    assert parse("-p", "1")["command"] == ()


@pytest.mark.parametrize("arguments", [[], ["--no-children"], ["-d", "1"], ["-n", ""]])
def test_no_scope(arguments: list[str]) -> None:
    with pytest.raises(cli.MissingScope, match="say what to trace: -p PID, -t TID"):
        options.make_scope(parse(*arguments))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-p", "1", "--", "true"], "either a COMMAND or processes"),
        (["-a", "--", "true"], "either a COMMAND or processes"),
        (["-p", "1", "surplus"], "either a COMMAND or processes"),
        (["-a", "-p", "1"], "-a is everything"),
        (["-a", "-t", "1"], "-a is everything"),
        (["-a", "-n", "x"], "-a is everything"),
        (["-a", "--cgroup", "/x"], "-a is everything"),
        (["-a", "--children"], "--children adds to -p PID and -n REGEX"),
        (["-t", "1", "--children"], "--children adds to -p PID and -n REGEX"),
        (["-p", "1", "--children", "--no-children"], "--children adds to -p PID"),
        (["-n", "("], r"'\(' is not a regular expression: missing \)"),
        (["-n", "a{99999999999}"], "is not a regular expression: the repetition number is too large"),
        (["-n", "(" * 5000], "is not a regular expression"),
    ],
)
def test_contradictions(arguments: list[str], message: str) -> None:
    with pytest.raises(click.UsageError, match=message):
        options.make_scope(parse(*arguments))


def test_output_options() -> None:
    given = parse("-p1", "-o", "a.svg", "--output", "-", "--force", "--per-thread", "--json", "-v")
    assert given["outputs"] == ("a.svg", "-")
    assert given["force"] is given["per_thread"] is given["as_json"] is given["verbose"] is True
    given = parse("-p1")
    assert given["outputs"] == ()
    assert given["force"] is given["per_thread"] is given["as_json"] is given["verbose"] is False


def test_line_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LineTool, "find", lambda: "found")
    assert options.make_line_tool(parse("-p1")) is None
    assert options.make_line_tool(parse("-p1", "--lines")) == "found"
    assert options.make_line_tool(parse("-p1", "--container-pid")) is None
    with pytest.raises(click.UsageError, match="--container-pid tells them apart"):
        options.make_line_tool(parse("-p1", "--container-pid", "--merge"))


@pytest.mark.parametrize(
    ("value", "ns"), [(None, 42), (0.0, 0), (1.0, 1000), (0.5, 500), (1e6, 10**9), (2.0015, 2002), (-0.0, 0)]
)
def test_microseconds(value: float | None, ns: int) -> None:
    assert options.microseconds(value, 42) == ns


@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf"), -float("inf"), 1e15])
def test_no_waiting_time(value: float) -> None:
    with pytest.raises(StallscopeError, match="is not a waiting time") as caught:
        options.microseconds(value, 0)
    assert caught.value.exit_code == 2


def timeline(*arguments: str) -> tuple[Timeline, ...]:
    return options.make_timeline(parse("-p1", *arguments))


def test_a_timeline_is_recorded_where_it_shows() -> None:
    assert timeline() == timeline("-o", "x.svg", "-o", "x.trace.json", "-o", "x.speedscope.json") == ()
    for arguments in (["-o", "x.pftrace"], ["-o", "x.trace.json", "--timeline"], ["-o", "X.PFTRACE", "-o", "x.svg"]):
        (measure,) = timeline(*arguments)
        assert (measure.limit, measure.kept, measure.every_switch) == (2_000_000, "newest", False)
    given = ("--max-events", "1000,first", "--event-buffer", "128")
    (measure,) = timeline("-o", "x.pftrace", *given)
    assert (measure.limit, measure.kept) == (1000, "first")
    assert measure.buffer_bytes == 128 << 20
    (measure,) = options.make_timeline(parse("-a", "-o", "x.pftrace", "--max-events", "7,newest"))
    assert (measure.limit, measure.kept, measure.every_switch) == (7, "newest", True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--timeline"], "--timeline shows in no output: add -o x.pftrace"),
        (["--timeline", "-o", "x.svg"], "--timeline shows in no output"),
        (["-o", "x.pftrace", "--merge"], "a timeline shows each"),
        (["--max-events", "0"], "'0' is not a number from 1 to 100000000"),
        (["--max-events", "-1"], "is not a number"),
        (["--max-events", "1e6"], "is not a number"),
        (["--max-events", "100000001"], "is not a number"),
        (["--max-events", "5,last"], "or one with ',first'"),
        (["--max-events", "\u0663"], "is not a number"),
        (["--event-buffer", "3"], "'3' is not one of"),
    ],
)
def test_no_such_timeline(arguments: list[str], message: str) -> None:
    with pytest.raises(click.UsageError, match=message):
        timeline(*arguments)
