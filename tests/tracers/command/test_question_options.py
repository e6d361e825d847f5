from __future__ import annotations

import pytest
from stallscope.tracers.command.question_options import Printer, marked
from stallscope.tracers.measures.questions import Line


@pytest.mark.parametrize(
    ("text", "fault", "line", "mark"),
    [
        ("nn > 4", "nn", "nn > 4", "^^"),
        ("a + b", "b", "a + b", "    ^"),
        ("名 + b", "b", "名 + b", "     ^"),
        ("\x1b + b", "b", r"\x1b + b", "       ^"),
        ("a\n+ b", "b", r"a\x0a+ b", "       ^"),
        ("x" * 60 + "?", "?", "…" + "x" * 40 + "?", " " * 41 + "^"),
        ("a", "", "a", " ^"),
    ],
)
def test_the_mark_is_under_the_fault(text: str, fault: str, line: str, mark: str) -> None:
    begin = text.index(fault) if fault else len(text)
    assert marked(text, begin, begin + max(len(fault), 1)) == (line, mark)


def test_lines_are_safe(capsys: pytest.CaptureFixture[str]) -> None:
    printer = Printer(to_stderr=False)
    printer.show("f\x1b[2J", Line(1, 2, 0, "n=\x1b[31m\u202e\udcff", False))
    printer.show("f", Line(1, 2, 0, "a\nb", True))
    assert capsys.readouterr().out == "1 2 f\\x1b[2J: n=\\x1b[31m\\u202e\\xff\na\\x0ab\n"
    Printer(to_stderr=True).show("f", Line(1, 2, 0, "x", True))
    found = capsys.readouterr()
    assert (found.out, found.err) == ("", "x\n")
