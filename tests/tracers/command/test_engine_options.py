from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from stallscope.converters.base import cli
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers import wakeup
from stallscope.tracers.command import options
from stallscope.tracers.command.engine_options import engine_options, make_engine
from stallscope.tracers.engines.auto import Auto
from stallscope.tracers.engines.bcc.engine import Bcc
from stallscope.tracers.engines.ebpf.engine import Ebpf
from stallscope.tracers.engines.eu_stack.engine import EuStack
from stallscope.tracers.engines.perf.engine import Perf
from stallscope.tracers.engines.perf.options import How
from stallscope.tracers.engines.protocol import Engine
from stallscope.tracers.engines.stap.engine import Stap


def engine(*arguments: str) -> Engine:
    seen: dict[str, Any] = {}

    @cli.command("trace-x", examples=[("trace-x", "a"), ("trace-x", "b"), ("trace-x", "c")])
    @options.naming_options
    @engine_options
    def main(**given: Any) -> None:
        seen.update(given)

    with main.make_context("trace-x", list(arguments)) as context:
        main.invoke(context)
    return make_engine(seen)


def test_options() -> None:
    assert engine("--engine", "libbpf") == Ebpf()
    given = ("-U", "--btf", "/x", "--table-size", "2000", "--buffer", "64", "--unwind-memory", "3")
    assert engine("--engine", "libbpf", *given) == Ebpf(True, False, Path("/x"), 2000, 64 << 20, 3 << 20)
    assert engine("--engine", "libbpf", "-K") == Ebpf(False, True)


def test_options_of_bcc() -> None:
    assert engine("--engine", "bcc") == Bcc()
    assert engine("--engine", "bcc", "-U", "--table-size", "2000") == Bcc(True, False, 2000)


def test_auto_begins_with_libbpf() -> None:
    found = engine("-K")
    assert isinstance(found, Auto)
    assert found.engines[0] == Ebpf(False, True)
    assert found.engines[1] == Bcc(False, True)


def test_type_information_is_for_libbpf_alone() -> None:
    """Another engine would hide that the file is wrong."""
    assert engine("--btf", "/x") == Ebpf(btf=Path("/x"))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("eu-stack", ["-K"]),
        *((name, ["--call-graph", "dwarf"]) for name in ("libbpf", "bcc", "stap", "eu-stack")),
        *((name, ["--btf", "/x"]) for name in ("bcc", "stap", "perf", "eu-stack")),
        *((name, ["--stap-module", "/x"]) for name in ("libbpf", "bcc", "perf", "eu-stack")),
        ("perf", ["--stap-compile-only", "/x"]),
        ("perf", ["--stap-build", "/x"]),
        ("perf", ["--stap-symbols", "/etc/passwd"]),
    ],
)
def test_an_option_that_the_engine_does_not_have(name: str, arguments: list[str]) -> None:
    with pytest.raises(StallscopeError, match=f"^the engine {name} does not have {arguments[0]}") as raised:
        engine("--engine", name, *arguments)
    assert raised.value.exit_code == 2


def test_options_of_perf_and_stap() -> None:
    assert engine("--engine", "perf", "--call-graph", "fp") == Perf(How(dwarf=False))
    assert engine("--engine", "perf") == engine("--engine", "perf", "--call-graph", "dwarf")
    assert engine("--engine", "perf", "--call-graph", "dwarf,65528") == Perf(How(stack_bytes=65528))
    assert isinstance(engine("--engine", "stap", "-K", "--stap-module", "/x"), Stap)
    assert engine("--engine", "eu-stack", "-U") == EuStack()


@pytest.mark.parametrize(
    "mode", ["lbr", "dwarf,", "dwarf,x", "fp,8192", "dwarf,0", "dwarf,12", "dwarf,65536", "dwarf,-8"]
)
def test_call_graphs_that_perf_does_not_have(mode: str) -> None:
    with pytest.raises(click.BadParameter, match="is not "):
        engine("--engine", "perf", "--call-graph", mode)


def test_auto_takes_the_engine_that_an_option_is_for() -> None:
    assert isinstance(engine("--call-graph", "fp"), Perf)
    assert isinstance(engine("--stap-module", "/x"), Stap)
    with pytest.raises(click.UsageError, match="no engine has --call-graph and --btf"):
        engine("--btf", "/x", "--call-graph", "fp")


def test_an_option_whose_engine_does_not_have_the_command() -> None:
    done = CliRunner().invoke(wakeup.main, ["-a", "--call-graph", "fp", "-o", "-"])
    assert isinstance(done.exception, StallscopeError)
    assert done.exception.exit_code == 2
    assert done.exception.cause == "the engine perf takes only waits and samples, no wakeup"
    assert done.exception.remedy == "leave out the options of --engine perf"


def test_auto_names_no_engine_without_the_option() -> None:
    with_both, without_user = engine(), engine("-K")
    assert isinstance(with_both, Auto)
    assert isinstance(without_user, Auto)
    assert [*with_both.never] == [EuStack()]
    assert not without_user.never


@pytest.mark.parametrize(
    "arguments",
    [
        ["-U", "-K"],
        ["--table-size", "1023"],
        ["--table-size", "5000000"],
        ["--buffer", "3"],
        ["--buffer", "0"],
        ["--engine", "x"],
    ],
)
def test_wrong_options(arguments: list[str]) -> None:
    with pytest.raises(click.UsageError):
        engine(*arguments)


def test_buffer_sizes_suit_a_ring_buffer() -> None:
    """The kernel takes powers of two, in whole pages."""
    (choice,) = [p.type for p in click_parameters() if p.name == "buffer_mb"]
    assert isinstance(choice, click.Choice)
    for text in choice.choices:
        size = int(str(text)) << 20
        assert size & (size - 1) == 0


def click_parameters() -> list[click.Parameter]:
    @engine_options
    def function() -> None: ...

    return list(function.__click_params__)  # type: ignore[attr-defined]
