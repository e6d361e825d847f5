from __future__ import annotations

import io
import os
import pty

import pytest
from rich.text import Text
from stallscope.converters.summary.terminal import ENDLESS, encodable, has_color, printed, size_of


def test_what_is_no_terminal_has_a_usual_size() -> None:
    assert size_of(io.StringIO()) == (80, 0)
    with open(os.devnull) as file:
        assert size_of(file) == (80, 0)


def test_colours_are_for_terminals_that_want_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    master, slave = pty.openpty()
    with os.fdopen(slave, "w") as file, os.fdopen(master, "rb"):
        assert has_color(file)
        monkeypatch.setenv("TERM", "dumb")
        assert not has_color(file)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("NO_COLOR", "1")
        assert not has_color(file)
    assert not has_color(io.StringIO())


def test_lines_have_no_spaces_at_their_ends() -> None:
    assert printed([Text("a  "), Text("b")], 20, color=False) == "a\nb\n"


def test_markup_of_names_is_no_markup() -> None:
    assert printed([Text("[red]:smile: a")], 80, color=False) == "[red]:smile: a\n"


def test_a_pipe_gets_long_lines() -> None:
    assert printed([Text("a" * 5_000)], ENDLESS, color=False) == "a" * 5_000 + "\n"


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [(None, "a → b │ é"), ("utf-8", "a → b │ é"), ("latin-1", "a -> b | é"), ("ascii", "a -> b | \\xe9")],
)
def test_what_an_encoding_does_not_have(encoding: str | None, shown: str) -> None:
    assert encodable("a → b │ é", encoding) == shown
