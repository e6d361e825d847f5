from __future__ import annotations

import ctypes
import io
import os
import platform
import subprocess
import sys
import time
from typing import Any

import pytest
from stallscope.tracers.engines.eu_stack import looks
from stallscope.tracers.engines.eu_stack.looks import Look, States, is_call, look

PATIENCE = 30
NAP, READ = {"x86_64": (230, 0), "aarch64": (115, 63)}[platform.machine()]
HERE, THERE = 0x1000, 0x2000
RUNNING, GONE = Look("R"), Look()


def asleep(address: int, number: int = NAP, letter: str = "S") -> Look:
    return Look(letter, number=number, address=address)


@pytest.fixture
def states(monkeypatch: pytest.MonkeyPatch) -> States:
    """Every address is one behind a system call."""
    monkeypatch.setattr(looks, "is_call", lambda _pid, _address: True)
    return States()


@pytest.mark.parametrize(
    ("before", "after", "letter"),
    [
        (asleep(HERE), RUNNING, "S"),
        (RUNNING, asleep(HERE), "S"),
        (asleep(THERE), asleep(HERE, letter="D"), "D"),
        (asleep(HERE, -1, "D"), GONE, "D"),
        (asleep(THERE), asleep(THERE), "R"),
        (asleep(THERE, letter="D"), RUNNING, "R"),
        (RUNNING, RUNNING, "R"),
        (asleep(THERE, letter="T"), RUNNING, "T"),
        (Look("S"), RUNNING, "S"),
    ],
)
def test_a_wait_is_where_a_thread_is_seen_asleep(before: Look, after: Look, letter: str, states: States) -> None:
    """A system call is no wait where no thread was seen asleep: __vdso_clock_gettime makes one."""
    assert states.of(1, HERE, before, after) == letter


@pytest.mark.parametrize(
    ("number", "before", "letter"),
    [
        (NAP, RUNNING, "W"),
        (NAP, asleep(THERE), "S"),
        (READ, RUNNING, "R"),
        (READ, asleep(THERE), "S"),
        (-1, asleep(THERE), "R"),
    ],
)
def test_where_threads_were_seen_asleep_earlier(number: int, before: Look, letter: str, states: States) -> None:
    """A call that only waits does not run; of another one the state tells."""
    states.note(1, asleep(HERE, number))
    assert states.of(1, HERE, before, RUNNING) == letter
    assert states.of(2, HERE, before, RUNNING) == "R", "another process"


def test_outside_of_a_system_call(states: States, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looks, "is_call", lambda _pid, address: address != HERE)
    states.note(1, asleep(HERE))
    assert states.of(1, HERE, RUNNING, RUNNING) == "R"
    assert states.of(1, HERE, Look("S"), Look("S")) == "R"
    assert states.of(1, HERE, Look("D"), Look("D")) == "D", "a page fault"


def test_what_is_seen_of_held_threads_is_no_wait(states: States) -> None:
    states.note(1, Look("t", is_traced=True, number=NAP, address=HERE))
    assert states.of(1, HERE, RUNNING, RUNNING) == "R"


def test_few_addresses_are_kept(states: States, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looks, "_MOST", 2)
    for address in (HERE, THERE, 3):
        states.note(1, asleep(address))
    assert states.of(1, HERE, RUNNING, RUNNING) == "R"
    assert states.of(1, 3, RUNNING, RUNNING) == "W"


def test_looks() -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        until = time.monotonic() + PATIENCE
        while look(process.pid, process.pid) != RUNNING:
            assert time.monotonic() < until
        process.kill()
    assert look(process.pid, process.pid) == GONE
    with subprocess.Popen(["/bin/sleep", "60"]) as process:
        while (seen := look(process.pid, process.pid)).number != NAP:
            assert time.monotonic() < until
        assert seen.sleeps
        assert seen.address is not None
        assert is_call(process.pid, seen.address)
        process.kill()


def test_a_state_that_changes_meanwhile_has_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """eu-stack may have stopped the thread at another place by then."""
    with subprocess.Popen(["/bin/sleep", "60"]) as process:
        for now, expected in ((Look("t", is_traced=True),) * 2, (RUNNING, RUNNING), (GONE, GONE)):
            states = iter((Look("S"), now))
            monkeypatch.setattr(looks, "_state", lambda _pid, _tid, states=states: next(states))
            assert look(process.pid, process.pid) == expected
        process.kill()


class Anew(io.RawIOBase):
    """A file of /proc in kernels that make its text anew for each read, and go on where the last one ended."""

    def __init__(self, *texts: bytes) -> None:
        self._texts, self._at = list(texts), 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        rest = self._texts.pop(0)[self._at :] if self._texts else b""
        buffer[: len(rest)] = rest
        self._at += len(rest)
        return len(rest)


def test_what_a_thread_waits_in_is_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that runs when the first bytes are asked for, and sleeps when more are, would have two states."""
    nap = f"{NAP} 0x0 0x0 0x7ffd0000 0x0 0x0 0x0 0x7ffc0000 {HERE:#x}\n".encode()
    files = [Anew(b"running\n", nap), Anew(nap, b"running\n")]

    def opened(_path: str, _mode: str, buffering: int = -1) -> io.RawIOBase | io.BufferedReader:
        raw = files.pop(0)
        return io.BufferedReader(raw) if buffering else raw

    monkeypatch.setattr(looks, "_state", lambda _pid, _tid: Look("S"))
    monkeypatch.setattr(looks, "open", opened, raising=False)
    assert [look(1, 1), look(1, 1)] == [RUNNING, asleep(HERE)]


def test_the_instruction_that_calls_the_kernel() -> None:
    length, call = looks._CALLS[os.uname().machine]
    buffer = ctypes.create_string_buffer(b"\x90" * 8 + call + b"\x90" * 8)
    base = ctypes.addressof(buffer)
    assert is_call(os.getpid(), base + 8 + length)
    assert not is_call(os.getpid(), base + 8 + length + 1)
    assert is_call(os.getpid(), 8), "it cannot be read: then nothing is known"
