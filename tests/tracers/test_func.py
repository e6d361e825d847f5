"""trace-func's options. With real calls: tests/live/test_func.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from stallscope.tracers.engines.protocol import Request
from stallscope.tracers.func import main
from stallscope.tracers.measures.calls import Calls
from stallscope.tracers.measures.events import Events

LIBC = next(line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "/libc.so" in line)


def test_what_is_traced(recorded: list[Request]) -> None:
    assert main([f"{LIBC}:getenv", "libm.so.6:sin", "-p", "4711"]) == 1
    (request,) = recorded
    (measure,) = request.measures
    assert (measure.name, request.what, request.command) == ("calls", "Time in calls", ())
    assert isinstance(measure, Calls)
    assert [library.path for library in measure.wanted.libraries] == [LIBC, "libm.so.6"]


def test_what_is_counted(recorded: list[Request]) -> None:
    assert main([f"{LIBC}:getenv", "t:sched:sched_switch", "--count", "-p", "4711"]) == 1
    (measure,) = recorded[0].measures
    assert (measure.name, recorded[0].what) == ("events", "Events")
    assert isinstance(measure, Events)
    assert [library.path for library in measure.wanted.libraries] == [LIBC]


def test_functions_of_the_kernel(recorded: list[Request]) -> None:
    """Timed if they are alone."""
    for options, name in (((), "kernel_calls"), (("--count",), "events"), (("t:sched:sched_switch",), "events")):
        assert main(["k:vfs_read", *options, "-a"]) == 1
        (measure,) = recorded.pop().measures
        assert measure.name == name
    assert main(["k:vfs_read", "--every", "1s", "-a"]) == 2
    assert main(["k:vfs_read", "--over", "1ms", "-a"]) == 2


def test_a_command(recorded: list[Request]) -> None:
    assert main([f"{LIBC}:getenv", "--", "sleep", "1"]) == 1
    assert recorded[0].command == ("sleep", "1")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["-p", "1"],
        ["getenv", "-p", "1"],
        ["k:", "-a"],
        ["t:sched", "-a"],
        ["t:sched:no_such_tracepoint", "-a"],
        ["u:libc.so.6", "-a"],
        [f"{LIBC}:getenv", "t:sched:sched_switch", "-a"],
        [f"{LIBC}:getenv", "--count", "--cpp", "-a"],
        [f"{LIBC}:getenv", "--count", "-a", "-o", "x.pftrace"],
        [f"u:{LIBC}:no_such_probe", "-a"],
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
    assert "  probe: " in capsys.readouterr().out
    assert main([f"{LIBC}:getenvv", "--list"]) == 1
    found = capsys.readouterr()
    assert "it has getenv" in found.out
    assert "no function matches" in found.err
    assert recorded == []
