"""The process that has the terminal, beside a trace that is imitated. With a real one: tests/live/test_scan_live.py."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.command.live_screen import on_screen
from terminals import OTHER_SCREEN, Terminal

TRACE = r"""
import json, os, sys, time
from dataclasses import asdict
from stallscope.converters.scan.live.message import LiveRow, Message
from stallscope.tracers.base.interrupts import Interrupts
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.command.live_screen import on_screen

def row(pid, name, kind, share):
    where = ("topk", "held-up", ["main", "topk"], ["futex_wait"], [["main", str(pid), "1 %", "2 %", "97 %", "topk"]], 0)
    return LiveRow(name, [pid], kind, share, 0.5, share * 100, where[0], "", f"{name} waits.", *where[1:])

def message(number):
    rows = [row(10, "train", "lock", 0.9), row(20, "feed", "io", 0.8), row(30, sys.argv[2], "cpu", 0.1)]
    return Message(f"interval {number}", "1 s", "3 processes", ["Ten wait."], rows, [f"note {number}"])

def trace():
    how = sys.argv[1]
    if how == "fails early":
        raise ValueError("it cannot begin")
    with Interrupts() as interrupts:
        for number in range(1, 10_000):
            try:
                os.write(given["screen"], json.dumps(asdict(message(number))).encode() + b"\n")
            except BrokenPipeError:
                return 7
            if how == "fails" and number == 10:
                raise ValueError("it fails")
            if how == "speaks":
                print(f"said {number} \x1b[2J", flush=True)
            if how == "is short" and number == 10:
                break
            time.sleep(0.1)
            if interrupts.requested:
                break
    print("the last line", flush=True)
    return 3

given, scope = {}, Scope(everything=True)
status = on_screen(given, scope, trace)
print("ours", len(scope.ours), sys.stdin.isatty(), sys.stdout.isatty(), flush=True)
sys.exit(status)
"""
HOSTILE = "evil\x1b]0;pwned\x07\x1b[2J\u202e\udcff"


def traced(tmp_path: Path, how: str = "", name: str = "clock", columns: int = 80, **environment: str) -> Terminal:
    path = tmp_path / "trace.py"
    path.write_text(TRACE)
    return Terminal([sys.executable, path, how, name], columns=columns, **environment)


def test_keys_and_the_end(tmp_path: Path) -> None:
    with traced(tmp_path) as terminal:
        terminal.shows("> lock")
        assert terminal.lines[1] == "Ten wait."
        terminal.press("\x1b[B")
        terminal.shows("> io")
        terminal.press("/clo\r")
        terminal.shows("> cpu")
        terminal.hides("train")
        terminal.press("\r")
        terminal.shows("clock waits.")
        terminal.press("\x1b")
        terminal.hides("clock waits.")
        terminal.press("\x1b")
        terminal.shows("train")
        terminal.press("?")
        terminal.shows("reverse the order")
        terminal.press("qq")
        assert terminal.ended() == 3
        terminal.check_restored()
        assert terminal.settings() == terminal.before
        assert terminal.text.endswith("the last line\nours 1 True True\n" + "\n" * (23 - terminal.screen.cursor.y))


def test_it_refreshes_and_can_be_frozen(tmp_path: Path) -> None:
    with traced(tmp_path) as terminal:
        terminal.shows("interval 3")
        terminal.press("f")
        terminal.shows("FROZEN")
        frozen = terminal.lines[0]
        for _ in range(20):
            terminal.read()
        assert terminal.lines[0] == frozen
        terminal.press("f")
        terminal.hides("FROZEN")
        terminal.wait_until(lambda: terminal.lines[0] != frozen.removesuffix("  FROZEN"), "a new interval")


def test_it_has_the_size_of_the_terminal(tmp_path: Path) -> None:
    with traced(tmp_path, COLUMNS="80", LINES="24") as terminal:
        terminal.shows("> lock")
        terminal.resize(50, 12)
        terminal.wait_until(lambda: "s sort" in terminal.lines[11] and "> lock" in terminal.lines[3], "it fits")
        terminal.resize(120, 40)
        terminal.wait_until(lambda: "h help" in terminal.lines[39] and "> lock" in terminal.lines[3], "it fits")


@pytest.mark.parametrize("how", ["Ctrl-C", "TERM"])
def test_signals_end_the_trace(how: str, tmp_path: Path) -> None:
    with traced(tmp_path) as terminal:
        terminal.shows("> lock")
        terminal.press("\x03") if how == "Ctrl-C" else os.kill(terminal.pid, signal.SIGTERM)
        assert terminal.ended() == 3
        terminal.check_restored()
        assert terminal.settings() == terminal.before
        terminal.shows("the last line")


def test_other_keys_send_no_signal(tmp_path: Path) -> None:
    with traced(tmp_path) as terminal:
        terminal.shows("> lock")
        terminal.press("\x1a\x1c")
        terminal.press("?")
        terminal.shows("reverse the order")


def test_a_tracer_that_is_killed_leaves_no_screen(tmp_path: Path) -> None:
    with traced(tmp_path) as terminal:
        terminal.shows("> lock")
        os.kill(terminal.pid, signal.SIGKILL)
        assert terminal.ended() == -signal.SIGKILL
        terminal.check_restored()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_screen_that_is_killed_ends_the_trace(number: int, tmp_path: Path) -> None:
    with traced(tmp_path) as terminal:
        terminal.shows("> lock")
        children = Path(f"/proc/{terminal.pid}/task/{terminal.pid}/children").read_text().split()
        os.kill(int(children[0]), number)
        assert terminal.ended() == 7
        terminal.check_restored()
        assert terminal.settings() == terminal.before


@pytest.mark.parametrize("how", ["fails", "fails early"])
def test_an_error_is_told_on_the_terminal(how: str, tmp_path: Path) -> None:
    with traced(tmp_path, how) as terminal:
        assert terminal.ended() == 1
        terminal.shows("ValueError: it ")
        if how == "fails":
            terminal.check_restored()
        else:
            assert OTHER_SCREEN not in terminal.raw, "nothing flickers"
        assert terminal.settings() == terminal.before


def test_what_is_said_meanwhile_is_shown_and_stays(tmp_path: Path) -> None:
    with traced(tmp_path, "speaks") as terminal:
        terminal.shows(r"| said 3 \x1b[2J")
        terminal.press("q")
        assert terminal.ended() == 3
        assert terminal.text.count("said ") >= 3


def test_a_trace_that_ends_by_itself(tmp_path: Path) -> None:
    with traced(tmp_path, "is short") as terminal:
        assert terminal.ended() == 3
        terminal.check_restored()


def test_hostile_names_control_nothing(tmp_path: Path) -> None:
    with traced(tmp_path, name=HOSTILE, columns=160) as terminal:
        terminal.shows(r"evil\x1b]0")
        terminal.press("/evil\r\r")
        terminal.shows("waits.")
        assert b"\x1b]0" not in terminal.raw
        assert "\u202e".encode() not in terminal.raw


def test_without_a_terminal_it_says_so() -> None:
    code = "from stallscope.tracers.command import live_screen as s; s.on_screen({}, None, None)"
    done = subprocess.run(
        [sys.executable, "-c", code], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert "StallscopeError" in done.stderr


def test_a_terminal_that_can_do_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "dumb")
    with pytest.raises(StallscopeError, match="needs a terminal: its TERM is dumb") as caught:
        on_screen({}, Scope(everything=True), lambda: 0)
    assert "--watch 2s" in caught.value.remedy
