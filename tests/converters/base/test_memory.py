"""The limit of a command's memory, in a process of its own."""

from __future__ import annotations

import subprocess
import sys

BEGIN = """
import resource
from stallscope.converters.base import memory
from stallscope.converters.base.errors import StallscopeError

def limit():
    return resource.getrlimit(resource.RLIMIT_DATA)

before = limit()
"""


def said(script: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + script], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.splitlines()


def test_what_is_used() -> None:
    (grown,) = said("used = memory.used()\nkept = b'x' * (64 << 20)\nprint((memory.used() - used) >> 20)")
    assert 60 <= int(grown) <= 70


def test_limited_and_restored() -> None:
    lines = said("with memory.limited(): print(limit()[0] == memory.most())\nprint(limit() == before)")
    assert lines == ["True", "True"]


def test_memory_that_is_used_up() -> None:
    lines = said(
        "memory.most = lambda: 256 << 20\n"
        "try:\n"
        "  with memory.limited():\n"
        "    kept = [bytes(1 << 20) for _ in range(1000)]\n"
        "except StallscopeError as error:\n"
        "  print(error.cause)\n"
        "print(limit() == before)"
    )
    assert lines == ["the memory that this command may take, 256 MiB, is used up", "True"]
