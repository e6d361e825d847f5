"""Recommended commands in files, which may be anybody's."""

from __future__ import annotations

import json
from importlib.metadata import entry_points

import pytest
from next_steps import step_of
from stallscope.converters.model import next_step
from stallscope.converters.model.display import Display
from stallscope.converters.pprof.display import decoded, encoded
from stallscope.converters.pprof.recommended import TOOLS, is_recommended
from stallscope.converters.summary.next_command import WHEN

OURS = (
    "trace-wakeup -p 4,5 --children -d 5",
    "trace-wakeup -d 5 --critical command -- make",
    "trace-wakeup -n 'a; reboot' -d 5 --critical 77",
    "trace-wall --engine stap --stap-module /root/a.ko -a -d 0.5",
    "trace-offcpu -p 1 -d 1 --per-thread -o stacks.html",
    f"trace-offcpu --cgroup /a/b -t 3 {' '.join(WHEN)}",
    "trace-func ./libx.so:f '/usr/lib/a b.so:g(int)' -p 1 -d 1e+06",
)
OTHERS = (
    "reboot -d 5",
    "./trace-wall -a -d 5",
    "../../tmp/trace-wall -a -d 5",
    "trace-doctor -a -d 5",
    "trace-wall -p '1;reboot' -d 5",
    "trace-wall -a -d 5 -o /etc/passwd",
    "trace-wall -a -d 5 -o ../x.svg",
    "trace-wall -a -d 5 --force",
    "trace-wall -a -d '5; reboot'",
    "trace-wall -a -d",
    "trace-wall --output=/etc/passwd -a -d 5",
    "trace-wakeup -a -d 5 --critical 'x y'",
)


@pytest.mark.parametrize("line", OURS)
def test_ours_are_shown(line: str) -> None:
    assert is_recommended(step_of(line, next_step.PATH))


@pytest.mark.parametrize("line", OTHERS)
def test_others_are_left_out(line: str) -> None:
    step = step_of(line, next_step.PATH)
    assert not is_recommended(step)
    assert decoded(json.loads(json.dumps(encoded(Display(next_step=step))))) == Display()


@pytest.mark.parametrize("line", ["-- reboot", "-o /etc/passwd", "reboot"])
def test_no_word_hides_among_those_of_scope(line: str) -> None:
    step = step_of("trace-wall -a -d 5", next_step.PATH)
    assert not is_recommended(step._replace(whom=step.whom._replace(options=tuple(line.split()))))


def test_what_it_tells_is_no_command_either() -> None:
    ours = step_of("trace-wall -a -d 5")
    told = [*next_step.CODES, "also 1,234 processes that were left out", "which functions take so long: a, b"]
    assert all(is_recommended(ours._replace(tells=text)) for text in told)
    assert not any(
        is_recommended(ours._replace(tells=text)) for text in ("", "x; reboot", "x\nreboot", "$(reboot)", "x|y")
    )


def test_tools_are_those_that_trace() -> None:
    installed = {each.name for each in entry_points(group="console_scripts") if each.name.startswith("trace-")}
    assert {*TOOLS} == installed - {"trace-convert", "trace-doctor"}
