"""Functions of Python at work, added up."""

from __future__ import annotations

from stallscope.converters.summary.figures import Running, Who
from stallscope.converters.summary.functions_at_work import by_function

WHO = Who("python3", "loader", False, 1, 1, (9,))
HASH = ("load", "t.py:9 tokenise", "hash")


def row(frames: tuple[str, ...], weight: int, who: Who = WHO, *, in_kernel: bool = False) -> Running:
    return Running(frames, in_kernel, weight, weight // 10, 1, 1, 1000, 1, (who,))


def told(*rows: Running) -> list[tuple[tuple[str, ...], int, int, str]]:
    return [(work.frames, work.weight, work.samples, work.mostly) for work in by_function(rows)]


def test_lines_and_what_is_called_are_added_up() -> None:
    rows = row(HASH, 100), row(("load", "t.py:8 tokenise"), 200), row(("load", "t.py:9 tokenise"), 80, in_kernel=True)
    other = row(("load", "t.py:4 other", "hash"), 300)
    assert told(other, *rows) == [(("load", "tokenise"), 380, 38, ""), (other.frames, 300, 30, "")]
    assert not any(work.in_kernel for work in by_function(rows))


def test_what_most_of_it_is_in_is_named() -> None:
    (work,) = by_function([row(HASH, 100), row(("load", "t.py:9 tokenise", "…", "hash"), 50), row(HASH[:2], 90)])
    assert work.frames == HASH[:2]
    assert (work.mostly, work.mostly_weight, work.weight) == ("hash", 150, 240)


def test_one_row_stays_as_it_is() -> None:
    (work,) = by_function([row(HASH, 100, in_kernel=True)])
    assert (work.frames, work.in_kernel, work.mostly) == (HASH, True, "")


def test_what_has_no_line_is_not_added_up() -> None:
    rows = row(("main", "spin"), 100), row(("main", "sort"), 50), row(("main", "sort"), 20, in_kernel=True)
    assert [weight for _, weight, _, _ in told(*rows)] == [100, 50, 20]


def test_other_threads_are_not_added_up() -> None:
    rows = row(HASH, 100), row(HASH[:2], 50, Who("python3", "loader", False, 1, 1, (10,)))
    assert [weight for _, weight, _, _ in told(*rows)] == [100, 50]
