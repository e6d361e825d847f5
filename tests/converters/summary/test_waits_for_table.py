"""The table and the matrix of who blocks whom."""

from __future__ import annotations

import io

from rich.console import Console
from stallscope.converters.model.waits_for import waits_for
from stallscope.converters.summary.waits_for import blocking_of
from stallscope.converters.summary.waits_for_table import blocking_blocks
from wait_graphs import chained, profile_of


def printed(*samples: tuple[int, int, str, int], width: int = 80, name: str = "") -> str:
    """(pid, ms, waker, its tid)"""
    chains = [chained(pid, pid, ms * 1_000_000, (waker, tid, "w"), process=name) for pid, ms, waker, tid in samples]
    file = io.StringIO()
    console = Console(file=file, width=width, markup=False, emoji=False, highlight=False)
    for block in blocking_blocks(blocking_of(waits_for(profile_of(*chains)), set())):
        console.print(block)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


def test_a_table_and_a_knot() -> None:
    assert printed((7, 60, "disk-9", 9), (9, 30, "app-7", 7), (9, 10, "[timer]", 0)) == (
        "Blocked   Blocks  Who blocks whom, by process\n"
        "60.0 ms  30.0 ms  app (pid 7)\n"
        "                  blocked by disk (pid 9) 100.0 %\n"
        "                  blocks disk (pid 9) 100.0 %\n"
        "40.0 ms  60.0 ms  disk (pid 9)\n"
        "                  blocked by app (pid 7) 75.0 %, [timer] 25.0 %\n"
        "                  blocks app (pid 7) 100.0 %\n"
        "      -  10.0 ms  [timer]\n"
        "                  blocks disk (pid 9) 100.0 %\n"
        "A knot: t7 (tid 7) and w (tid 9) wait for each other, 90.0 % of all waiting."
    )


def test_a_matrix_fits_into_80_columns() -> None:
    ring = [(100_000 + i, 10 + i, f"p-{100_000 + (i + 1) % 9}", 100_000 + (i + 1) % 9) for i in range(9)]
    text = printed(*ring)
    assert max(map(len, text.splitlines())) <= 80
    (head,) = (i for i, line in enumerate(text.splitlines()) if "Who waits" in line)
    rows = text.splitlines()[head + 1 : head + 9]
    columns = text.splitlines()[head].split()[:-2]
    assert len(columns) == 6
    assert {"100000", "100008"} <= set(columns)
    assert sum(row.count("%") for row in rows) == 6


def test_hostile_names() -> None:
    text = printed((7, 60, "x\x1b[2J\n-9", 9), (9, 30, "app-7", 7), (8, 5, "[interrupt \x07]", 0), name="\x1b]0;a\x07")
    assert "\x1b" not in text
    assert "\x07" not in text


def test_nothing_without_waits() -> None:
    assert printed() == ""
