"""--critical: whose path, and what it needs."""

from __future__ import annotations

import os
from typing import Any

import click
import pytest
from stallscope.tracers.command.critical_options import COMMANDS_OWN, critical_option, make_events


def parse(*arguments: str) -> Any:
    """The option's value."""

    @click.command()
    @critical_option
    def main(**given: Any) -> Any:
        return given["critical"]

    return main.main(list(arguments), standalone_mode=False)


def test_whose_path() -> None:
    assert parse() is None
    assert parse("--critical", "4711") == 4711
    assert parse("--critical", "command") == COMMANDS_OWN


@pytest.mark.parametrize("wrong", ["0", "-1", "me", "4711 ", "1" * 10])
def test_who_there_is_not(wrong: str) -> None:
    with pytest.raises(click.BadParameter, match="is not the id of a process or thread"):
        parse("--critical", wrong)


def given(**changed: object) -> dict[str, object]:
    return {"critical": os.getpid(), "command": (), "merge": False, "everything": False, "outputs": [], **changed}


def test_events_are_recorded_for_it() -> None:
    assert make_events(given(critical=None)) == ()
    assert len(make_events(given())) == len(make_events(given(critical=COMMANDS_OWN, command=("true",)))) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"critical": COMMANDS_OWN},
        {"critical": 999_999_999},
        {"merge": True},
        {"graph": "x.svg"},
        {"outputs": ["x.dot"]},
    ],
)
def test_where_there_is_no_path(wrong: dict[str, object]) -> None:
    with pytest.raises(click.UsageError):
        make_events(given(**wrong))
