from __future__ import annotations

from collections.abc import Sequence

import pytest
from stallscope.converters.scan.live.message import LiveRow, Message
from stallscope.converters.scan.live.state import (
    BACKSPACE,
    DOWN,
    END,
    ENTER,
    ESCAPE,
    HOME,
    LONGEST_FILTER,
    PAGE_DOWN,
    PAGE_UP,
    SORTS,
    UP,
    State,
)


def row(name: str, pid: int, kind: str, share: float | None, *, cores: float = 0.1, score: float = 1.0) -> LiveRow:
    return LiveRow(name, [pid], kind, share, cores, score, "fsync", "", "told", "rule", ["main"], [], [], 0)


def message(*rows: LiveRow, time: str = "now") -> Message:
    return Message(time, "2 s", "4 processes", ["an answer"], list(rows), [])


ROWS = (
    row("c", 3, "idle", None, cores=0.0, score=0.0),
    row("a", 2, "lock", 0.2, cores=1.5, score=9.0),
    row("b", 1, "cpu", 0.9, cores=0.5, score=4.0),
)


def state(*keys: str) -> State:
    made = State()
    made.take(message(*ROWS))
    press(made, keys)
    return made


def press(made: State, keys: Sequence[str]) -> None:
    for key in keys:
        made.press(key)


def names(made: State) -> str:
    return "".join(each.name for each in made.rows())


@pytest.mark.parametrize(
    ("sort", "order"),
    [("verdict", "abc"), ("share", "bac"), ("cores", "abc"), ("kind", "bca"), ("name", "abc"), ("pid", "bac")],
)
def test_orders(sort: str, order: str) -> None:
    made = state(*["s"] * SORTS.index(sort))
    assert made.sort == sort
    assert names(made) == order
    made.press("r")
    assert names(made) == order[::-1]
    press(made, ["S"] * SORTS.index(sort))
    assert made.sort == SORTS[0]


@pytest.mark.parametrize(("text", "left"), [("LOCK", "a"), ("3", "c"), ("fsync", "abc"), ("b", "b"), ("nothing", "")])
def test_a_filter(text: str, left: str) -> None:
    made = state("/", *text)
    assert made.is_typing
    assert names(made) == left
    press(made, [ENTER])
    assert (made.is_typing, names(made)) == (False, left)
    made.press(ESCAPE)
    assert names(made) == "abc"


def test_typing() -> None:
    made = state("/", "q", "x", BACKSPACE, "s", UP, "\x00")
    assert (made.filter, made.is_done, made.sort) == ("qs", False, "verdict")
    press(made, ["y"] * 100)
    assert len(made.filter) == LONGEST_FILTER
    made.press(ESCAPE)
    assert (made.filter, made.is_typing) == ("", False)


def test_escapes_can_be_searched() -> None:
    made = State()
    made.take(message(row("x\x1by", 1, "io", 0.5)))
    press(made, ["/", *"\\x1b"])
    assert len(made.rows()) == 1


@pytest.mark.parametrize(
    ("keys", "name"),
    [
        ((), "a"),
        ((DOWN,), "b"),
        (("j", "j", "j", "j"), "c"),
        ((END,), "c"),
        ((END, "k"), "b"),
        ((END, UP, UP, UP), "a"),
        ((PAGE_DOWN,), "c"),
        ((PAGE_DOWN, PAGE_UP), "a"),
        ((END, HOME), "a"),
    ],
)
def test_a_row_is_chosen(keys: tuple[str, ...], name: str) -> None:
    made = state(*keys)
    assert made.rows()[made.place(made.rows())].name == name


def test_the_chosen_row_stays_chosen_when_rows_move() -> None:
    made = state(DOWN)
    made.take(message(row("z", 9, "io", 0.5, score=99.0), *ROWS))
    assert made.rows()[made.place(made.rows())].name == "b"
    renamed = message(row("z", 9, "io", 0.5, score=99.0), row("renamed", 1, "io", 0.5, score=0.5))
    made.take(renamed)
    assert made.rows()[made.place(made.rows())].name == "renamed"
    made.take(message(ROWS[0]))
    assert made.place(made.rows()) == 0


def test_a_row_is_opened_and_closed() -> None:
    made = state(DOWN, ENTER)
    assert made.opened
    assert made.opened.name == "b"
    press(made, [DOWN, "j", UP, "k", "k", PAGE_DOWN])
    assert made.scrolled == 10
    made.take(message(ROWS[0]))
    assert made.opened is None, "it has ended"
    assert made.is_open
    press(made, [HOME, ESCAPE])
    assert (made.is_open, made.scrolled) == (False, 0)


def test_nothing_is_opened_before_there_are_rows() -> None:
    made = State()
    press(made, [ENTER, DOWN, END, "s"])
    assert not made.is_open


@pytest.mark.parametrize("key", ["f", " "])
def test_a_frozen_screen_goes_on_with_the_newest(key: str) -> None:
    made = state(key)
    for time in ("1", "2"):
        made.take(message(time=time))
    assert made.message
    assert made.message.time == "now"
    made.press(key)
    assert made.message.time == "2"
    made.take(message(time="3"))
    assert made.message.time == "3"


@pytest.mark.parametrize("key", ["h", "?"])
def test_help_ends_with_any_key(key: str) -> None:
    made = state(key)
    assert made.is_helping
    made.press("s")
    assert (made.is_helping, made.sort) == (False, "verdict")


@pytest.mark.parametrize("keys", ["q", "Q", "hq", "\x00fq"])
def test_the_end(keys: str) -> None:
    assert state(*keys).is_done
