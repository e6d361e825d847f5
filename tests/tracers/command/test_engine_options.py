from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from stallscope.converters.base import cli
from stallscope.tracers.command import options
from stallscope.tracers.command.engine_options import engine_options, make_engine
from stallscope.tracers.engines.auto import Auto
from stallscope.tracers.engines.bcc.engine import Bcc
from stallscope.tracers.engines.ebpf.engine import Ebpf
from stallscope.tracers.engines.protocol import Engine


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
