from __future__ import annotations

import pytest
from rich.cells import cell_len
from scans import HOSTILE, scanned_host
from stallscope.converters.rules.verdict import KINDS
from stallscope.converters.scan.live.message import LiveRow, Message, message_of, read
from stallscope.converters.scan.live.state import ENTER, State
from stallscope.converters.scan.live.view import HELP, lines, page
from stallscope.converters.scan.report import report_of
from stallscope.converters.scan.watch.line import Interval


def row(pid: int, name: str = "train", kind: str = "lock") -> LiveRow:
    threads = [["main", str(pid), "1.0 %", "0.0 %", "99.0 %", "futex_wait"]]
    where = "topk → futex_wait"
    stacks = ["main", "topk"], ["do_futex", "futex_wait"]
    ended = "feed (pid 9): 80.0 %"
    return LiveRow(name, [pid], kind, 0.5, 0.1, 1.0, where, ended, "It waits.", "held-up", *stacks, threads, 3)


def shown(state: State, width: int = 80, height: int = 24) -> list[str]:
    found = [line.plain for line in lines(state, width, height)]
    assert len(found) <= height
    assert all(cell_len(line) <= width for line in found), found
    assert all(line.isprintable() for line in found)
    return found


def state(*rows: LiveRow, keys: tuple[str, ...] = ()) -> State:
    made = State()
    made.take(Message("12:00", "2 s", "9 processes", ["The answer."], list(rows), ["kept x.d"]))
    for key in keys:
        made.press(key)
    return made


def test_the_table_on_a_small_terminal() -> None:
    found = shown(state(row(1), row(2)))
    assert len(found) == 24
    assert found[:2] == ["12:00 2 s  9 processes", "The answer."]
    assert found[3].startswith("> lock         50.0 %   0.10         1 train")
    assert found[4].startswith("  lock")
    assert found[-2:] == ["kept x.d", "s sort (verdict)  / filter  Enter open  f freeze  q quit  h help"]
    assert "topk → futex_wait ← feed (pid 9): 80.0 %" in shown(state(row(1)), 200)[3]


@pytest.mark.parametrize("size", [(80, 24), (20, 8), (200, 60), (5, 3), (1, 1), (80, 2)])
def test_any_size(size: tuple[int, int]) -> None:
    for keys in ((), (ENTER,), ("h",), ("/", "x")):
        shown(state(*map(row, range(1, 40)), keys=keys), *size)


def test_the_chosen_row_is_on_the_screen() -> None:
    made = state(*map(row, range(1, 101)))
    for pid in (1, 50, 100):
        made.selected = "train", pid
        (line,) = [line for line in shown(made) if line.startswith(">")]
        assert line.split()[5] == str(pid)
    assert len([line for line in shown(made) if "train" in line]) == page(24)


def test_a_process_that_is_opened() -> None:
    found = shown(state(row(1), keys=(ENTER,)))
    assert found[1:5] == [
        "train (pid 1)",
        f"lock: {KINDS['lock']}, rule held-up",
        "It waits.",
        "ended by feed (pid 9): 80.0 %",
    ]
    assert "main                      1    1.0 %    0.0 %   99.0 %  futex_wait" in found
    assert "and 3 more" in found
    stack = found.index("Stack, the innermost first")
    assert found[stack + 1 : stack + 4] == ["  kernel: futex_wait ← do_futex", "  topk", "  main"]
    assert found[-1].startswith("Escape back")


def test_what_is_opened_scrolls_to_its_end() -> None:
    made = state(row(1), keys=(ENTER,))
    made.scrolled = 1000
    found = shown(made, 80, 10)
    assert found[-3] == "  main"
    assert made.scrolled < 20


def test_a_process_that_has_ended_is_told() -> None:
    made = state(row(1), keys=(ENTER,))
    made.take(Message("", "", "", [], [row(2)], []))
    assert "It is not there in this interval. Escape goes back." in shown(made)


def test_states_are_told() -> None:
    assert "waiting for the first interval" in shown(State())[0]
    assert shown(state(row(1), keys=("f",)))[0].endswith("FROZEN")
    found = shown(state(row(1), keys=("/", "~")))
    assert found[-2] == "/~█"
    assert "  no process has this in its name, verdict, place or pid" in found
    assert shown(state(row(1), keys=("/", "t", ENTER, "s", "r")))[-1].startswith(
        "s sort (share, reversed)  / filter (t)  "
    )
    assert "sort (share, reversed)" in shown(state(row(1), keys=("s", "r")))[-1]
    assert all(any(what in line for line in shown(state(keys=("h",)), 120)) for _, what in HELP)


def test_what_the_tracer_says_is_shown() -> None:
    made = state(row(1))
    made.notes = ["old", "trace-scan: no space"]
    assert shown(made)[-2] == "kept x.d | trace-scan: no space"


def test_hostile_and_wide_names() -> None:
    profile = scanned_host(name=HOSTILE)
    made = State()
    made.take(read(message_of(Interval.of(profile, report_of(profile)))))
    shown(made)
    made.press(ENTER)
    shown(made, 40, 60)
    shown(state(row(1, "名" * 30), row(2, "e\u0301" * 30), row(3, "\x1b[2J\u202e")))
