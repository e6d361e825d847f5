from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from next_steps import step_of, whom
from stallscope.converters.base.text import printable
from stallscope.converters.model.next_step import LEFT_OUT
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.command.wider import chosen, is_repeated, with_children


class LeftOut(Scope):
    def __init__(self, *busy: int) -> None:
        super().__init__()
        self.busy = set(busy)

    def busy_left_out(self) -> set[int]:
        return self.busy


def given(**values: Any) -> dict[str, Any]:
    return {"pids": (), "tids": (), "name": None, "cgroup": None, "duration": None, **values}


@pytest.mark.parametrize(
    ("values", "command"),
    [
        ({"pids": (7, 8), "duration": 10.0}, "trace-wall -p 7,8 --children -d 10"),
        ({"name": "^train$", "duration": 0.5}, "trace-wall -n '^train$' --children -d 0.5"),
        ({"name": "train"}, "trace-wall -n train --children"),
        ({"name": "a'b\x1b[2J", "tids": (9,)}, "trace-wall -t 9 -n 'a'\"'\"'b\\x1b[2J' --children"),
        ({"targets": ("libc.so.6:get*",), "pids": (7,)}, "trace-wall 'libc.so.6:get*' -p 7 --children"),
        ({"pids": (7,), "cgroup": Path("/a b")}, "trace-wall -p 7 --cgroup '/a b' --children"),
    ],
)
def test_same_trace_with_children(values: dict[str, Any], command: str) -> None:
    step = with_children(given(**values), LeftOut(1, 2), "wall")
    assert step
    assert printable(step.command) == command
    assert (step.tells, step.left_out) == (LEFT_OUT, 2)


def test_one_child() -> None:
    step = with_children(given(pids=(7,)), LeftOut(1), "offcpu")
    assert step
    assert (step.tells, step.left_out) == (LEFT_OUT, 1)


def test_nobody_was_left_out() -> None:
    assert with_children(given(pids=(7,)), LeftOut(), "offcpu") is None


def test_the_choice_is_told_where_ids_do_not_say_it() -> None:
    nothing: dict[str, Any] = dict.fromkeys(("pids", "tids", "name", "cgroup", "children", "command"))
    assert chosen({**nothing, "pids": (4, 5)}) is None
    assert chosen({**nothing, "pids": (4, 5), "children": True}) == whom("-p 4,5 --children")
    assert chosen({**nothing, "name": "a b"}) == whom("-n 'a b'")
    assert chosen({**nothing, "command": ("python3", "my job.py")}) == whom("", "python3 'my job.py'")
    assert chosen({**nothing, "command": ("echo", "x" * 999)}) == whom("", "COMMAND")
    assert chosen({**nothing, "command": ("echo", "\x1b[31m")}) == whom("", "COMMAND")


WHEN = "trace-offcpu -p 7 -d 2 -o when.pftrace"


@pytest.mark.parametrize(
    ("command", "values", "stem"),
    [
        (WHEN, {"pids": (7,), "outputs": ("other.pftrace",), "duration": 9.0}, "offcpu"),
        ("trace-offcpu -a -d 5", {"everything": True}, "offcpu"),
        ("trace-wall -n '^a -- b$' -d 5", {"name": "^a -- b$"}, "wall"),
        ("trace-wall -d 5 -- python3 'my job.py' -o x.svg", {"command": ("python3",)}, "wall"),
        ("trace-wakeup -p 7,8 -d 5 --critical 8", {"pids": (8, 7), "critical": 8}, "wakeup"),
    ],
)
def test_what_was_just_run(command: str, values: dict[str, Any], stem: str) -> None:
    assert is_repeated(step_of(command), given(**values), stem)


@pytest.mark.parametrize(
    ("command", "values", "stem"),
    [
        (WHEN, {"pids": (7,), "outputs": ("x.svg",)}, "offcpu"),
        (WHEN, {"pids": (7,), "outputs": ("x.pftrace",)}, "wall"),
        (WHEN, {"pids": (7, 8), "outputs": ("x.pftrace",)}, "offcpu"),
        (WHEN, {"pids": (7,)}, "offcpu"),
        ("trace-offcpu -a -d 5", {"pids": (7,)}, "offcpu"),
        ("trace-wakeup -p 7,8 -d 5 --critical 8", {"pids": (8, 7)}, "wakeup"),
        ("trace-wall -d 5 -- python3", {"pids": (7,)}, "wall"),
        ("trace-offcpu -p 7 -d 1 --per-thread -o stacks.html", {"pids": (7,), "outputs": ("x.html",)}, "offcpu"),
    ],
)
def test_what_would_show_more(command: str, values: dict[str, Any], stem: str) -> None:
    assert not is_repeated(step_of(command), given(**values), stem)
