"""The engine perf reads text in which names of symbols stand as they are, and perf script reads files of users."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from attackers import Attacker
from watching import Command, command_path, family

pytestmark = pytest.mark.usefixtures("hostile", "nothing_left")

_ENGINE = ("--engine", "perf")
_BUSY = "import os\nos.write(1, b'ready %d\\n' % os.getpid())\nwhile True: pass"
_LENGTH = 45_000
_FORGER = f"""
#include <stdio.h>
#include <unistd.h>
volatile long spent;
__attribute__((noinline)) void {"x" * _LENGTH}(void) {{ for (;;) spent++; }}
int main(void) {{ alarm(120); printf("ready %d\\n", getpid()); fflush(stdout); {"x" * _LENGTH}(); }}
"""
_MOST = 2.0
"""Seconds from Ctrl-C to the end."""
_HEADER = "python3 {0}/{0} {1:.9f}:    2004008 cpu-clock/freq=499/: \n\t 1234 forged (/x)\n\n"


@pytest.fixture(autouse=True)
def perf(require: Callable[[bool, str], None]) -> None:
    require(shutil.which("perf") is not None, "there is no perf")


@pytest.fixture
def running(attacker: Attacker) -> Iterator[tuple[int, Path]]:
    """A process of the attacker that runs code which it has made, and the path of its JIT map."""
    pid = attacker.run(attacker.programs / "made_code")
    path = Path(f"/tmp/perf-{pid}.map")
    yield pid, path
    path.unlink(missing_ok=True)


def forger(folder: Path, victim: int) -> Path:
    """A program, a symbol of which has lines that look like samples of another process, now and for ten seconds."""
    path = folder / "forger"
    subprocess.run(["gcc", "-O1", "-x", "c", "-", "-o", path], input=_FORGER, text=True, check=True)
    now, text = time.monotonic() + 0.5, "ev\n\n"
    for i in range(_LENGTH):
        text += _HEADER.format(victim, now + i * 0.025)
        if len(text) > _LENGTH - 200:
            break
    text += f"python3 {victim}/{victim} {now:.9f}: PERF_RECORD_EXIT({victim}:{victim}):(1:1)\n"
    data = path.read_bytes()
    path.write_bytes(data.replace(b"x" * _LENGTH, text.encode().ljust(_LENGTH, b"z")))
    return path


@pytest.mark.parametrize("command", ["trace-oncpu", "trace-wall"])
def test_a_symbol_is_no_sample_of_another_process(command: str, attacker: Attacker, outputs: Path) -> None:
    victim = attacker.run("/usr/bin/python3", "-c", _BUSY, as_root=True)
    pid = attacker.run(forger(attacker.programs, victim))
    path = outputs / "out.folded"
    with Command(command_path(command), *_ENGINE, "-F", 499, "-p", f"{pid},{victim}", "-o", path) as running:
        began = running.traced_after(60)
        running.read(2)
        outcome = running.outcome(began, running.interrupt())
    lines = [line for line in path.read_text().splitlines() if f"-{victim};" in line]
    assert lines, outcome.text
    assert not [line for line in lines if "forged" in line]
    assert "lines that programs forged" in outcome.text


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _link(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _names(path: Path) -> None:
    path.write_text("1000 7fffffffffff forged\n")


@pytest.mark.parametrize("make", [_fifo, _link, _names])
def test_maps_of_code_that_was_made(
    make: Callable[[Path], None], running: tuple[int, Path], attacker: Attacker, outputs: Path
) -> None:
    """perf script opens none of them, and the tracer only a file of the process's own user: here it is of another."""
    pid, path = running
    make(path)
    os.chown(path, attacker.uid + 1, attacker.uid + 1, follow_symlinks=False)
    with Command(command_path("trace-wall"), *_ENGINE, "-p", pid, "-o", outputs / "out.folded") as command:
        began = command.traced_after(60)
        command.read(1)
        ended = command.interrupt()
        outcome = command.outcome(began, ended)
    assert ended is not None
    assert ended < _MOST
    assert outcome.status == 0
    stacks = (outputs / "out.folded").read_text()
    assert "[anon]" in stacks
    assert "forged" not in stacks
    assert outcome.peak_mb < 512


def test_names_of_code_that_was_made(running: tuple[int, Path], attacker: Attacker, outputs: Path) -> None:
    """Names that the program's own user tells are shown."""
    pid, path = running
    (start,) = [
        int(line.split("-")[0], 16) for line in Path(f"/proc/{pid}/maps").read_text().splitlines() if " rwxp 0" in line
    ]
    path.write_text(f"{start:x} 10 my_own_loop\n")
    os.chown(path, attacker.uid, attacker.uid)
    with Command(command_path("trace-oncpu"), *_ENGINE, "-p", pid, "-o", outputs / "out.folded") as command:
        assert command.traced_after(60) is not None
        command.read(1)
        assert command.interrupt() is not None
    assert "my_own_loop" in (outputs / "out.folded").read_text()


def scripts_of(pid: int) -> list[int]:
    """perf script, of a command that traces with perf."""
    found = []
    for each in family(pid):
        with contextlib.suppress(OSError):
            found += [each] * (b"perf\0script\0" in Path(f"/proc/{each}/cmdline").read_bytes())
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_perf_script_that_hangs(number: signal.Signals, attacker: Attacker, outputs: Path) -> None:
    """The script stands still, as when a file never answers: the command does not wait for it, and it does not stay."""
    path = outputs / "out.folded"
    busy = attacker.run("/usr/bin/python3", "-c", _BUSY)
    with Command(command_path("trace-wall"), *_ENGINE, "-F", 499, "-p", busy, "-o", path) as running:
        began = running.traced_after(60)
        running.read(2)
        (script,) = scripts_of(running.process.pid)
        os.kill(script, signal.SIGSTOP)
        running.read(0.5)
        if number == signal.SIGINT:
            ended = running.interrupt()
            outcome = running.outcome(began, ended)
            assert ended is not None
            assert ended < _MOST + 1.5
            assert "perf script was ended, since it printed nothing" in outcome.text
            assert outcome.status == 0
        else:
            running.process.kill()
        until = time.monotonic() + 10
        while Path(f"/proc/{script}").exists() and time.monotonic() < until:
            time.sleep(0.05)
        with contextlib.suppress(OSError):
            assert b"\0script\0" not in Path(f"/proc/{script}/cmdline").read_bytes()
