"""Common code of the tests of `trace-convert`."""

from __future__ import annotations

from pathlib import Path

from stallscope.converters.convert import main

DATA = Path(__file__).resolve().parent / "data"
FOLDED = "a;b;read_[k] 3\na;c 4\n"


def convert(*arguments: str | Path) -> int:
    """The exit status of `trace-convert` with these arguments, in this process."""
    return main([str(argument) for argument in arguments])
