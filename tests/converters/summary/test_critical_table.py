"""The table of a critical path, as text."""

from __future__ import annotations

import io

from rich.console import Console
from stallscope.converters.summary.critical import Contribution, Critical
from stallscope.converters.summary.critical_table import critical_table


def text(critical: Critical) -> str:
    file = io.StringIO()
    Console(file=file, width=200, color_system=None, markup=False, highlight=False).print(critical_table(critical))
    return file.getvalue()


def test_largest_parts_and_the_rest() -> None:
    parts = [Contribution(f"t-{i}", i, "running", ("f",) if i else (), 100 - i, 1) for i in range(12)]
    said = text(Critical("t-0", 0, sum(part.time for part in parts), 12, tuple(parts)))
    assert "Critical path of t-0: 1.13 µs" in said
    assert "t-9: running in f" in said
    assert "t-10" not in said
    assert "2 more parts" in said


def test_hostile_names_are_made_printable() -> None:
    said = text(Critical("\x1b[2J", 0, 5, 1, (Contribution("\x1b[2J", 1, "running", ("\u202e",), 5, 1),)))
    assert "\x1b" not in said
    assert "\u202e" not in said
