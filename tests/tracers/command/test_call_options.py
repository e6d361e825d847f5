"""--sort, --by, --rows, --histograms."""

from __future__ import annotations

from typing import Any

import click
import pytest
from click.testing import CliRunner
from stallscope.converters.model.display import CallsView
from stallscope.tracers.command.call_options import call_options, make_view


def parsed(*arguments: str) -> CallsView | None:
    found: list[CallsView | None] = []

    @click.command()
    @call_options("function")
    def main(**given: Any) -> None:
        found.append(make_view(given))

    result = CliRunner().invoke(main, arguments, standalone_mode=False)
    if result.exception:
        raise result.exception
    return found[0]


def test_defaults_are_the_usual_table() -> None:
    assert parsed() == CallsView()


def test_all_are_taken() -> None:
    assert parsed("--sort", "p99", "--by", "thread", "--rows", "40") == CallsView("p99", "thread", 40)


@pytest.mark.parametrize("wrong", [("--sort", "mean"), ("--by", "host"), ("--rows", "0")])
def test_others_are_wrong_usage(wrong: tuple[str, str]) -> None:
    with pytest.raises(click.BadParameter) as raised:
        parsed(*wrong)
    assert wrong[0] in raised.value.format_message()


def test_histograms() -> None:
    assert parsed("--histograms", "5") == CallsView(histograms=5)


def test_commands_without_calls_have_no_table() -> None:
    assert make_view({}) is None
