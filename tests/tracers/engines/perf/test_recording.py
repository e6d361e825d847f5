from __future__ import annotations

import builtins
import fcntl
import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from stallscope.converters.base import helpers
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers.base import privilege
from stallscope.tracers.base.interrupts import Interrupts
from stallscope.tracers.engines.perf import recording
from stallscope.tracers.engines.perf.recording import Recording, Rights, Tool, find_perf, rights, start
from stallscope.tracers.engines.protocol import EngineUnavailable
from stallscope.tracers.kernel import tracefs

PATIENCE = 30
F_GETPIPE_SZ = 1032
"""fcntl.h"""
HOLD = """
import os, sys, time
from stallscope.converters.base import helpers
helpers.FOLDERS = (os.environ["FAKE_FOLDER"], *helpers.FOLDERS)
helpers.INHERITED = ("FAKE_",)
from stallscope.tracers.base.interrupts import Interrupts
from stallscope.tracers.engines.perf.recording import Recording, find_perf
recording = Recording(find_perf().path, ["-p", "1"], "comm")
recording.ready(Interrupts())
print("ready", flush=True)
time.sleep(60)
"""


@pytest.fixture
def no_end() -> Iterator[Interrupts]:
    made = Interrupts()
    yield made
    os.close(made.wakeup)
    os.close(made._write)


def test_there_is_no_perf(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(helpers, "FOLDERS", (str(tmp_path),))
    with pytest.raises(EngineUnavailable, match="there is no perf") as raised:
        find_perf()
    assert "linux-perf" in raised.value.remedy


@pytest.mark.parametrize(
    ("says", "told"),
    [
        (
            "WARNING: perf not found for kernel 5.15.0-1\n\n  You may need to \x1b[1minstall",
            "You may need to \\x1b[1minstall",
        ),
        (" Usage: perf record\n --switch-events --clockid", "this perf is too old: it has no --control"),
        ("", "it said nothing"),
    ],
)
def test_a_perf_that_cannot_be_used(says: str, told: str, fake_perf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_perf() == (str(fake_perf), ())
    monkeypatch.setenv("FAKE_PERF_HELP", says)
    with pytest.raises(EngineUnavailable) as raised:
        find_perf()
    assert told in raised.value.cause


@pytest.mark.parametrize(
    ("level", "capable", "expected"),
    [
        (2, True, Rights(2, True)),
        (4, True, Rights(4, True)),
        (2, False, Rights(2, False)),
        (1, False, Rights(1, False)),
        (3, False, None),
        (None, True, None),
    ],
)
def test_rights(level: int | None, capable: bool, expected: Rights | None, monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(path: str, *_: Any) -> io.StringIO:
        assert path == "/proc/sys/kernel/perf_event_paranoid"
        if level is None:
            raise FileNotFoundError(2, "none")
        return io.StringIO(f"{level}\n")

    monkeypatch.setattr(privilege, "may_measure", lambda: capable)
    monkeypatch.setattr(builtins, "open", opened)
    if expected:
        assert rights() == expected
        return
    with pytest.raises(EngineUnavailable) as raised:
        rights()
    assert ("no perf events" if level is None else "perf_event_paranoid is 3") in raised.value.cause


def test_what_rights_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    readable = True
    monkeypatch.setattr(tracefs, "folder", lambda: Path("/there"))
    monkeypatch.setattr(os, "access", lambda *_: readable)
    assert [Rights(level, all=False).kernel for level in (-1, 0, 1, 2)] == [True, True, True, False]
    assert [Rights(level, all=False).tracepoints for level in (-1, 0, 1, 2)] == [True, False, False, False]
    assert Rights(2, all=True).kernel
    assert Rights(2, all=True).tracepoints
    readable = False
    assert not Rights(2, all=True).tracepoints
    assert Rights(2, all=True).no_tracefs == "this user may not read tracepoints"

    def refuse() -> NoReturn:
        raise StallscopeError("tracefs is not mounted")

    monkeypatch.setattr(tracefs, "folder", refuse)
    assert not Rights(2, all=True).tracepoints
    assert Rights(2, all=True).no_tracefs == "tracefs is not mounted"


def text_of(made: Recording) -> str:
    text = b""
    while data := os.read(made.text, 1 << 16):
        text += data
    return text.decode()


def test_it_records_from_enable_to_stop(
    fake_perf: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, no_end: Interrupts
) -> None:
    monkeypatch.setenv("FAKE_PERF_TEXT", "at {0}\n")
    before = set(os.listdir("/proc/self/fd"))
    made = Recording(find_perf().path, ["-e", "x", "-p", "7"], "comm,ip")
    try:
        made.ready(no_end)
        began = made.enable(no_end)
        ended = made.stop()
        (_, _, at) = text_of(made).strip().partition(" ")
        assert made.failure() is None
    finally:
        made.close()
    assert began <= int(at.replace(".", "")) <= ended <= time.monotonic_ns()
    record, script = sorted((tmp_path / "log").read_text().splitlines(), key=lambda line: "script" in line)
    assert "-o - -k CLOCK_MONOTONIC --switch-events -D -1 --control fd:" in record
    assert record.endswith(" -e x -p 7")
    assert script.endswith("-F comm,ip")
    assert set(os.listdir("/proc/self/fd")) == before


def test_it_says_what_perf_says(fake_perf: Path, monkeypatch: pytest.MonkeyPatch, no_end: Interrupts) -> None:
    monkeypatch.setenv("FAKE_PERF_FAILS", "No permission\x07 to trace")
    made = Recording(find_perf().path, ["-p", "7"], "comm")
    try:
        with pytest.raises(EngineUnavailable, match=r"perf record failed: No permission\\x07 to trace") as raised:
            made.ready(no_end)
        assert "your own processes" in raised.value.remedy
    finally:
        made.close()


def test_perf_ends_with_us(fake_perf: Path, tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE) as ours:
        assert ours.stdout is not None
        assert ours.stdout.readline() == b"ready\n"
        until = time.monotonic() + PATIENCE
        while len(lines := (tmp_path / "log").read_text().splitlines()) < 2 and time.monotonic() < until:
            time.sleep(0.01)
        pids = [int(line.split()[0]) for line in lines]
        assert len(pids) == 2
        ours.send_signal(signal.SIGKILL)
    until = time.monotonic() + PATIENCE
    while any(map(is_there, pids)) and time.monotonic() < until:
        time.sleep(0.01)
    assert not any(map(is_there, pids))


def is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_perf_that_does_not_answer_is_given_up(
    fake_perf: Path, monkeypatch: pytest.MonkeyPatch, no_end: Interrupts
) -> None:
    monkeypatch.setattr(recording, "_PATIENCE", 0.2)
    fake_perf.write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    made = Recording(str(fake_perf), ["-p", "7"], "comm")
    try:
        with pytest.raises(EngineUnavailable, match="did not answer within"):
            made.ready(no_end)
    finally:
        made.close()


def test_a_perf_that_does_not_answer_is_ended_by_ctrl_c(fake_perf: Path, no_end: Interrupts) -> None:
    fake_perf.write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    no_end.requested = True
    began = time.monotonic()
    with pytest.raises(StallscopeError, match="perf record was not ready"):
        start(Tool(str(fake_perf)), ["-p", "7"], "comm", no_end)
    assert time.monotonic() - began < recording._PATIENCE / 2


_WAITS = "#include <unistd.h>\nint main(void) { if (!vfork()) { alarm(30); pause(); _exit(0); } }"
"""A program that waits in the kernel, for a child."""


def test_a_perf_record_that_waits_in_the_kernel(tmp_path: Path) -> None:
    path = tmp_path / "waits"
    subprocess.run(["gcc", "-x", "c", "-", "-o", path], input=_WAITS, text=True, check=True)
    made = Recording(str(path), ["-p", "7"], "comm")
    try:
        until = time.monotonic() + 20
        while not made.is_held and time.monotonic() < until:
            time.sleep(0.01)
        assert made.is_held
    finally:
        made.close()


def test_one_that_cannot_be_killed_is_waited_for_once(fake_perf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Recording(str(fake_perf), ["-p", "7"], "comm")
    waited: list[float] = []
    with monkeypatch.context() as patch:
        patch.setattr(helpers, "wait", lambda _process, seconds: waited.append(seconds))
        made.give_up()
        made.close()
    assert len(waited) == 2
    assert waited[1] <= waited[0] <= recording._AT_ONCE
    assert made._record.wait() < 0


@pytest.mark.parametrize("option", ["--buildid-mmap", "--no-buildid-mmap"])
def test_no_build_ids_are_asked_for(
    option: str, fake_perf: Path, no_end: Interrupts, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The files of the traced processes would be opened by perf record for them."""
    start(find_perf(), ["-p", "7"], "comm", no_end).close()
    assert "buildid" not in (tmp_path / "log").read_text()
    monkeypatch.setenv("FAKE_PERF_HELP", f"Usage: perf record --control --switch-events --clockid {option}")
    start(find_perf(), ["-p", "8"], "comm", no_end).close()
    assert "--no-buildid-mmap -p 8" in (tmp_path / "log").read_text()
    monkeypatch.setenv("FAKE_PERF_FAILS", "no")
    with pytest.raises(EngineUnavailable, match="perf record failed: no"):
        start(find_perf(), ["-p", "9"], "comm", no_end)


def test_pipes_hold_what_waits_for_a_core(fake_perf: Path, no_end: Interrupts) -> None:
    """Pipes of ours hold it, and those that are open in the other programs only."""
    made = start(find_perf(), ["-p", "7"], "comm", no_end)
    try:
        assert made._script
        ends = [(made._record.pid, 1, os.O_WRONLY), (made._script.pid, 0, os.O_RDONLY)]
        others = [os.open(f"/proc/{pid}/fd/{fd}", flags | os.O_NONBLOCK) for pid, fd, flags in ends]
        sizes = [fcntl.fcntl(pipe, F_GETPIPE_SZ) for pipe in (made.notices, made.text, *others)]
        for pipe in others:
            os.close(pipe)
        assert sizes == [1 << 20] * 4
    finally:
        made.close()


def test_the_process_between_is_killed(fake_perf: Path, no_end: Interrupts) -> None:
    made = start(find_perf(), ["-p", "7"], "comm", no_end)
    try:
        made.enable(no_end)
        os.kill(made._passing, signal.SIGKILL)
        assert text_of(made) == ""
        made.stop(is_over=True)
        assert made.failure() is None
        assert made.cut() == "the process between perf record and perf script was ended by SIGKILL"
    finally:
        made.close()


def test_nobody_has_to_wait_for_children(fake_perf: Path, no_end: Interrupts) -> None:
    """SIGCHLD can be ignored from the start."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        made = start(find_perf(), ["-p", "7"], "comm", no_end)
        made.enable(no_end)
        made.stop()
        assert text_of(made) == ""
        made.close()
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_it_stops_while_nobody_reads(fake_perf: Path, monkeypatch: pytest.MonkeyPatch, no_end: Interrupts) -> None:
    """perf record waits for perf script, and that for us."""
    monkeypatch.setenv("FAKE_PERF_TEXT", f"{'x' * 100_000}\n")
    monkeypatch.setattr(recording, "_PATIENCE", PATIENCE)
    made = start(find_perf(), ["-p", "7"], "comm", no_end)
    try:
        began = made.enable(no_end)
        assert made.stop() - began < PATIENCE * 1e9 / 2
        assert len(text_of(made)) <= 100_001
    finally:
        made.close()
