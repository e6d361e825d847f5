"""Parts of a summary that are shown where there is little room."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import termios
import threading
from dataclasses import replace

import pytest
from stallscope.converters.summary.figures import Summary
from stallscope.converters.summary.render import render
from stallscope.converters.summary.summarize import summarize
from stallscope.converters.summary.waits_for import Blocking, Named
from summary_profiles import EXE, MS, MUTEX, SECOND, Tracee, many_places, model_case, user
from summary_texts import shown


def test_one_process_fits_a_terminal_of_80_columns_and_24_lines() -> None:
    text = shown(many_places(1), width=80)
    assert len(text.splitlines()) <= 23
    assert "more places" in text
    assert text.splitlines()[-1].startswith("Next: trace-wakeup -p 1 ")
    assert "more places" not in shown(many_places(1), width=80, top=12)


def test_a_few_processes_fit_too_and_then_without_the_table_of_processes() -> None:
    for number in (2, 3, 4):
        text = shown(many_places(number), width=80)
        assert len(text.splitlines()) <= 23
        assert "more places" in text


@pytest.mark.parametrize("number", [5, 8, 100])
def test_many_processes_fit_a_larger_screen(number: int) -> None:
    profile = many_places(number)
    profile.comments = [f"note {note}: " + "words " * 20 for note in range(6)]
    text = shown(profile, width=80)
    assert 23 < len(text.splitlines()) <= 39
    assert "more places" in text
    *_, told, step = text.splitlines()
    assert told == "Shortened to fit a screen: -v prints all rows."
    assert step.startswith("Next: ")
    whole = shown(profile, width=80, top=15)
    assert len(whole.splitlines()) > 39
    assert "Shortened" not in whole
    assert "Shortened" not in shown(profile), "a pipe"


def on_terminal(summary: Summary, columns: int, lines: int) -> str:
    primary, secondary = pty.openpty()
    fcntl.ioctl(secondary, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    got: list[bytes] = []

    def read() -> None:
        while not got or not got[-1].endswith(b"\0"):
            got.append(os.read(primary, 1 << 16))

    reader = threading.Thread(target=read)
    reader.start()
    with open(secondary, "w", encoding="utf-8") as terminal:
        render(summary, terminal, color=False)
        terminal.write("\0")
        terminal.flush()
        reader.join(10)
    os.close(primary)
    return b"".join(got).decode().rstrip("\0").replace("\r\n", "\n")


def waits_for_locks(pids: int) -> Summary:
    profile = many_places(pids)
    profile.comments = [f"note {note}: " + "words " * 20 for note in range(6)]
    summary = summarize(profile)
    names = [Named("thread", f"p{i}", "main", i, i, True, SECOND, SECOND) for i in range(12)]
    ends = {(i, (i + 1) % 12): SECOND for i in range(12)}
    return replace(summary, blocking=Blocking("thread", 12 * SECOND, 0, tuple(names), ends))


@pytest.mark.parametrize("pids", [1, 4, 5, 8, 100])
@pytest.mark.parametrize("lines", [24, 30, 40, 50, 60])
def test_it_fits_the_height_of_the_terminal(pids: int, lines: int) -> None:
    summary = waits_for_locks(pids)
    text = on_terminal(summary, 80, lines)
    printed = text.splitlines()
    assert len(printed) < lines
    assert " ".join(text.split()).startswith(" ".join(" ".join(summary.answer).split()))
    whole = io.StringIO()
    render(summary, whole, width=80, top=15)
    assert "ho blocks whom" in " ".join(text.split()), "the table, or a line that names it"
    assert len(whole.getvalue().splitlines()) > len(printed)


def test_a_large_terminal_shows_what_a_small_one_leaves_out() -> None:
    summary = waits_for_locks(1)
    small, large, larger = (on_terminal(summary, 120, lines) for lines in (24, 60, 90))
    assert "Shortened: no room for who blocks whom; -v prints all.\n" in small
    assert "Shortened" not in large
    assert len(small.splitlines()) < 24 < len(large.splitlines()) < 60
    assert larger == large


def test_nothing_but_sentences_is_left_where_even_one_row_of_each_table_is_too_much() -> None:
    summary = replace(waits_for_locks(8), answer=("A sentence of several lines: " + "word " * 120 + "end.",))
    text = on_terminal(summary, 80, 24)
    assert len(text.splitlines()) < 24
    assert "end." in text
    assert "no room for waits, who blocks whom" in " ".join(text.split())


@pytest.mark.parametrize("words", [30, 60, 90, 120, 150])
def test_room_is_left_only_where_no_row_fits(words: int) -> None:
    summary = replace(summarize(many_places(1)), answer=("A sentence of several lines: " + "word " * words + "end.",))
    text = on_terminal(summary, 80, 24)
    used = len(text.splitlines())
    assert used <= 23
    # A row has up to three lines; a table of one row, and of one for the others, five with the empty line before it.
    assert used >= (20 if " │ " in text else 18)


def test_many_notes_are_counted_where_they_do_not_fit() -> None:
    profile = many_places(3)
    profile.comments = [f"note {number}: " + "words " * 20 for number in range(6)]
    profile.lost |= {"stacks not complete: no unwind rule": 2, "frames without a name": 5}
    text = shown(profile, width=80)
    assert len(text.splitlines()) <= 23
    assert " not complete. 6 notes not shown (--json).\n" in text
    assert "10 stacks and frames not complete" not in text
    assert "7 stacks and frames not complete" in text
    assert shown(profile).count("Note: note ") == 6


def test_a_pipe_has_room_for_more() -> None:
    assert shown(many_places(1)).count(" │ ") == 12


def test_little_is_folded() -> None:
    profile = model_case()
    Tracee(profile, 1, "x", 1, "x").run(1).wait((*user(EXE, "little"), *MUTEX), "uninterruptible", 100 * MS)
    text = shown(profile)
    assert "little" not in text
    assert "1 more place\n" in text
