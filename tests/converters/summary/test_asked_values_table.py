from __future__ import annotations

import io

from rich.console import Console
from stallscope.converters.model.asked_values import AskedValues
from stallscope.converters.summary.asked_values_table import answer_blocks


def text(answers: list[AskedValues], top: int = 5) -> str:
    console = Console(file=io.StringIO(), width=100)
    for block in answer_blocks(answers, top):
        console.print(block)
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def test_a_histogram() -> None:
    shown = text([AskedValues("hist", "n", "take", "w", 6, 21, [(-1, -1, 2), (0, 0, 1), (4, 7, 4)])])
    assert "n of take w: mean 3.5" in shown
    rows = [line.split() for line in shown.splitlines()]
    assert ["-1", "2", "|" + "*" * 20, "|"] in rows
    assert ["4", "->", "7", "4", "|" + "*" * 40 + "|"] in rows


def test_sums_those_of_most_calls_first() -> None:
    shown = text([AskedValues("sum", "n", f"f{i}", "w", i, 1000 * i) for i in range(1, 8)], top=2)
    assert shown.index("n of f7 w") < shown.index("n of f6 w") < shown.index("of 5 more functions")
    assert "7,000" in shown


def test_how_often_each_value_was_there() -> None:
    values = [(f"v{i}\x1b[2J", 100 - i) for i in range(30)]
    total = sum(number for _, number in values) + 5
    shown = text([AskedValues("count-by", "s", "f", "w", total, 0, values=values, others=5)], top=2)
    assert "s of f w: how often each value" in shown
    rows = [line.split() for line in shown.splitlines()]
    assert rows.count(["100", "3.9", "%", r"v0\x1b[2J"]) == 1
    rest = total - sum(number for _, number in values[:20])
    assert [row[-1] for row in rows if row][-1] == "[others]"
    assert rows[-1][0] == f"{rest}"
    assert "\x1b" not in shown


def test_names_are_safe() -> None:
    for ask in ("sum", "hist"):
        shown = text([AskedValues(ask, "n\x1b[2J", "f\x1b[2J\u202e", "w\n", 1, 1, [(1, 1, 1)])])
        assert "\x1b" not in shown
        assert "\u202e" not in shown
        assert "\\x1b[2J" in shown


def test_without_answers() -> None:
    assert text([]) == ""
