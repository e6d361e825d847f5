from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console
from stallscope.converters.model.steps import Steps
from stallscope.converters.summary.steps import steps_of
from stallscope.converters.summary.steps_table import steps_tables, text_of
from step_traces import LOOP, recorded


def lines(found: Sequence[Steps], top: int = 5) -> list[str]:
    file = io.StringIO()
    console = Console(file=file, width=220, markup=False)
    for each in steps_tables(found, top):
        console.print(each)
    return [" ".join(line.split()) for line in file.getvalue().splitlines()]


def test_what_is_printed() -> None:
    assert lines(steps_of(recorded([*LOOP, (550, -1)]))) == [
        "Steps Per s Mean Median Max On CPU Blocked No core Step: shares of the steps' time; between: from one to the "
        "next, and its share of the loop",
        "3 6,060,606 106 ns 100 ns 150 ns 56.2 % 34.4 % 9.4 % demo:train_step in python3 (worker 7); between 40 ns, "
        "20.0 %; 1 step not whole, and not counted",
        "Share A step Count Mean Blocked in and between steps of demo:train_step in python3 (worker 7); share of "
        "the loop",
        "27.5 % 36 ns 3 36 ns in: train_step → synchronise → read │ pipe_read",
        "10.0 % 13 ns 2 20 ns between: main → next_batch → read │ pipe_read",
        "Step At Took On CPU Blocked No core Slowest steps of demo:train_step in python3 (worker 7); longest wait",
        "2 250 ns 150 ns 90 ns 60 ns 0 ns train_step → synchronise → read 60 ns",
        "1 100 ns 100 ns 50 ns 40 ns 10 ns train_step → synchronise → read 40 ns",
        "3 430 ns 70 ns 40 ns 10 ns 20 ns train_step → synchronise → read 10 ns",
    ]


def test_few_rows() -> None:
    (found,) = steps_of(recorded())
    printed = lines([found] * 4, top=2)
    assert printed[3] == "2 more: these functions in other threads"
    several = [found, replace(found, tid=8), replace(found, name="b"), replace(found, name="c")]
    printed = lines(several, top=1)
    assert [each in line for each, line in zip((found.name, "b in", "c in"), printed[1:4], strict=True)] == [True] * 3
    assert printed[4] == "1 more: these functions in other threads"
    assert len([line for line in printed if line.startswith("Step At")]) == 3


def test_hostile_names() -> None:
    found = steps_of(recorded(names=["\x1b[2J", "[red]"]))
    assert "\x1b" not in "\n".join(lines(found))
    assert "[red]" in "\n".join(lines(found))


def test_as_text() -> None:
    found = steps_of(recorded(names=["\x1b[2J", "[red]"]))
    text = list(text_of(found, 5))
    assert text[0].startswith("3 steps of demo:train_step take 106 ns in the mean")
    assert [" ".join(line.split()) for line in text[1:] if line][:2] == lines(found)[:2]
    assert "\x1b" not in "\n".join(text)
    assert max(map(len, text[1:])) <= 160
