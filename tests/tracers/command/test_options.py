from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click
import pytest
from stallscope.converters import cli
from stallscope.converters.errors import StallscopeError
from stallscope.tracers.core import options
from stallscope.tracers.core.scope import Scope
from stallscope.tracers.symbols.lines import LineTool

EXAMPLES = [("trace-x", "a"), ("trace-x", "b"), ("trace-x", "c")]


def parse(*arguments: str) -> dict[str, Any]:
    """What a command with all shared options is given."""
    seen: dict[str, Any] = {}

    @cli.command("trace-x", examples=EXAMPLES)
    @options.scope_options
    @options.naming_options
    @options.engine_options
    @options.output_options
    def main(**given: Any) -> None:
        seen.update(given)

    with main.make_context("trace-x", list(arguments)) as context:
        main.invoke(context)
    return seen


def engine(*arguments: str) -> options.EngineOptions:
    given = parse(*arguments)
    return options.make_engine_options(given, options.make_scope(given), ("a", "b"), {"knob": 1})


@pytest.mark.parametrize(
    ("arguments", "scope"),
    [
        (["-p", "1,2", "-p", "3"], Scope(pids=[1, 2, 3])),
        (["-t", "5", "-p", "1"], Scope(pids=[1], threads=[5])),
        (["-n", "^python"], Scope(name=re.compile("^python"))),
        (["-n", "x", "--cgroup", "/sys/fs/cgroup/a", "-t1"],
         Scope(threads=[1], name=re.compile("x"), cgroup=Path("/sys/fs/cgroup/a"))),
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
        (["-n", "("], r"'\(' is not a regular expression: missing \)"),
        (["-n", "a{99999999999}"], "is not a regular expression: the repetition number is too large"),
        (["-n", "(" * 5000], "is not a regular expression"),
    ],
)
def test_contradictions(arguments: list[str], message: str) -> None:
    with pytest.raises(click.UsageError, match=message):
        options.make_scope(parse(*arguments))


def test_engine_options() -> None:
    made = engine("-p", "1")
    assert (made.scope, made.probes, made.knobs) == (Scope(pids=[1]), ("a", "b"), {"knob": 1})
    assert (made.user_stacks, made.kernel_stacks, made.btf) == (True, True, None)
    assert (made.table_entries, made.buffer_bytes) == (1 << 16, 8 << 20)
    other = engine("-p", "1", "-U", "--btf", "/x", "--table-size", "2000", "--buffer", "64")
    assert (other.user_stacks, other.kernel_stacks, other.btf) == (True, False, Path("/x"))
    assert (other.table_entries, other.buffer_bytes) == (2000, 64 << 20)
    assert (engine("-p1", "-K").user_stacks, engine("-p1", "-K").kernel_stacks) == (False, True)


@pytest.mark.parametrize(
    "arguments",
    [["-U", "-K"], ["--table-size", "1023"], ["--table-size", "5000000"], ["--buffer", "3"], ["--buffer", "0"]],
)
def test_wrong_engine_options(arguments: list[str]) -> None:
    with pytest.raises(click.UsageError):
        engine("-p", "1", *arguments)


def test_buffer_sizes_suit_a_ring_buffer() -> None:
    """The kernel takes powers of two, in whole pages."""
    (choice,) = [p.type for p in click_parameters() if p.name == "buffer_mb"]
    assert isinstance(choice, click.Choice)
    for text in choice.choices:
        size = int(str(text)) << 20
        assert size & (size - 1) == 0


def click_parameters() -> list[click.Parameter]:
    @options.engine_options
    def function() -> None: ...

    return list(function.__click_params__)  # type: ignore[attr-defined]


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
