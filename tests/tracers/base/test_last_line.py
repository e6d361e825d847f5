"""The limits of the tracer's own process, each in a process of its own."""

from __future__ import annotations

import subprocess
import sys

BEGIN = """
import resource
from pathlib import Path
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers.base import last_line
from stallscope.tracers.base.launch import Launch

def state():
    return resource.getrlimit(resource.RLIMIT_DATA)[0], Path("/proc/self/oom_score_adj").read_text().strip()

before = state()
"""


def said(script: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + script], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.splitlines()


def test_held_and_restored() -> None:
    lines = said(
        "with last_line.held():\n"
        "  print(state()[0] == last_line.most(), int(state()[1]) >= 500)\n"
        "print(state() == before)"
    )
    assert lines == ["True True", "True"]


def test_a_command_does_not_inherit_them() -> None:
    lines = said(
        "with last_line.held():\n"
        "  made = Launch(['sh', '-c', 'cat /proc/self/oom_score_adj; ulimit -d'])\n"
        "  made.go()\n  made.wait()\n"
        "  inside = state()\n"
        "print(before[1], inside != before, flush=True)"
    )
    score, limit, rest = lines
    assert rest == f"{score} True"
    assert limit == "unlimited"


def test_memory_that_is_used_up_is_an_error_with_a_remedy() -> None:
    lines = said(
        "last_line.most = lambda: 256 << 20\n"
        "try:\n"
        "  with last_line.held():\n"
        "    kept = [bytes(1 << 20) for _ in range(1000)]\n"
        "except StallscopeError as error:\n"
        "  print(error.cause)\n"
        "print(state() == before)"
    )
    assert lines == ["the tracer's memory is used up", "True"]
