from __future__ import annotations

from typing import Any

import click
import pytest
from stallscope.converters.base import cli
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers.command.target_options import make_targets
from stallscope.tracers.func import main
from stallscope.tracers.probe_targets.events import Events


def parsed(*arguments: str) -> dict[str, Any]:
    return main.make_context("trace-func", list(arguments)).params


def test_targets_and_a_command() -> None:
    found = parsed("libc.so.6:getenv", "-d", "5", "libc.so.6:setenv", "--", "./train", "-p", "--", "x")
    assert found["targets"] == ("libc.so.6:getenv", "libc.so.6:setenv")
    assert found["command"] == ("./train", "-p", "--", "x")
    assert (found["duration"], found["pids"]) == (5, ())


def test_targets_alone() -> None:
    found = parsed("-p", "4711", "libc.so.6:getenv")
    assert (found["targets"], found["command"], found["pids"]) == (("libc.so.6:getenv",), (), (4711,))


def test_several_targets() -> None:
    made = make_targets({"targets": ("libc.so.6:getenv", "libm.so.6:sin"), "cpp": True, "counts": False})
    assert [target.text for target in made.targets] == ["libc.so.6:getenv", "libm.so.6:sin"]
    assert made.returns


def test_wrong_targets() -> None:
    with pytest.raises(cli.MissingScope, match="say which functions"):
        make_targets({"targets": (), "cpp": False, "counts": False})
    with pytest.raises(click.BadParameter, match="is not FILE:FUNCTION"):
        make_targets({"targets": ("getenv",), "cpp": False, "counts": False})
    with pytest.raises(StallscopeError, match=r"there is no file /no/such\\x1b\.so") as caught:
        make_targets({"targets": ("/no/such\x1b.so:f",), "cpp": False, "counts": False})
    assert caught.value.exit_code == 2


def test_what_is_counted() -> None:
    made = make_targets({"targets": ("libc.so.6:getenv", "t:sched:*"), "cpp": False, "counts": True})
    assert isinstance(made, Events)
    assert [event.text for event in made.events] == ["t:sched:*"]
    assert isinstance(make_targets({"targets": ("k:vfs_read",), "cpp": False, "counts": False}), Events)
    with pytest.raises(click.UsageError, match="add --count"):
        make_targets({"targets": ("libc.so.6:getenv", "t:sched:*"), "cpp": False, "counts": False})
    with pytest.raises(click.UsageError, match="--cpp"):
        make_targets({"targets": ("libc.so.6:getenv",), "cpp": True, "counts": True})
