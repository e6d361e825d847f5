"""Lines and captures of a scan that goes on. With real traces: tests/live/test_scan_watch.py."""

from __future__ import annotations

import errno
import io
import json
import os
from pathlib import Path
from typing import Any

import pytest
from scans import three_troubles
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import Profile
from stallscope.converters.scan.live.message import read
from stallscope.tracers.command.watching import WatchResults
from summary_profiles import READ, SECOND, Tracee, empty
from verdict_profiles import LOCK

TIMES = "x-%Y%m%d-%H%M%S"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def plan(*outputs: Path | str, **given: object) -> WatchResults:
    values: dict[str, Any] = {
        **dict.fromkeys(("force", "per_thread", "as_json", "merge", "verbose", "idle", "children"), False),
        **dict.fromkeys(("graph", "name", "cgroup", "critical", "when"), None),
        **dict.fromkeys(("pids", "tids", "command"), ()),
        **dict.fromkeys(("every", "pause"), 1.0),
        "mode": 0o600,
        "by": "process",
        "everything": True,
        "keep": 3,
        "keep_bytes": 1 << 30,
        "outputs": tuple(map(str, outputs)),
        **given,
    }
    return WatchResults.plan("scan", values)


def at(second: int, profile: Profile | None = None) -> Profile:
    made = profile or three_troubles()
    made.start_ns = (1_700_000_000 + second) * SECOND
    return made


def stuck(time: int = SECOND) -> Profile:
    """A whole host where a process waits for a lock, and one for its client, and do nothing else."""
    profile = empty()
    Tracee(profile, 3, "queue", 3, "queue").wait(LOCK, "interruptible", 10 * time, 1)
    Tracee(profile, 9, "cron", 9, "cron").wait(READ, "interruptible", 10 * time, 1)
    return profile


class Full(io.StringIO):
    """A stream to a file system that is full."""

    encoding = "utf-8"

    def write(self, _: str) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("as_json", [False, True])
def test_a_full_standard_output_is_told(as_json: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", Full())
    with pytest.raises(StallscopeError, match="cannot write to standard output: No space left on device"):
        plan(as_json=as_json).publish(at(0))


def test_without_outputs_there_are_only_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = plan()
    results.publish(at(0))
    results.write(at(1))
    lines = capsys.readouterr().out.splitlines()
    assert ["io 90.0 %  app (pid 1)" in line for line in lines] == [True, True]
    assert list(tmp_path.iterdir()) == []


def test_objects(capsys: pytest.CaptureFixture[str]) -> None:
    results = plan(as_json=True)
    results.publish(at(0))
    results.publish(at(1))
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["start_ns"] // SECOND for each in found] == [1_700_000_000, 1_700_000_001]


def test_each_interval_is_kept_up_to_a_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = plan(tmp_path / f"{TIMES}.d", tmp_path / f"{TIMES}.pb.gz")
    for second in range(5):
        results.publish(at(second))
    folders, captures = sorted(tmp_path.glob("*.d")), sorted(tmp_path.glob("*.pb.gz"))
    assert (len(folders), len(captures)) == (3, 3)
    assert all((each / "summary.json").is_file() for each in folders)
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.endswith(f"kept {folders[-1]}, {captures[-1]}")


def test_pages_are_written(tmp_path: Path) -> None:
    plan(tmp_path / f"{TIMES}.html").publish(at(0))
    (page,) = tmp_path.iterdir()
    assert page.read_text().startswith("<!DOCTYPE html>")


def test_a_condition_keeps_an_interval_once_while_it_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = plan(tmp_path / f"{TIMES}.d", when="lock > 10%")
    no_lock = empty()
    Tracee(no_lock, 3, "queue", 3, "queue").run(10 * SECOND)
    for second, profile in enumerate((None, None, no_lock, None)):
        results.publish(at(2 * second, profile))
    kept = ["kept" in line for line in capsys.readouterr().out.splitlines()]
    assert kept == [True, False, False, True]
    assert len(list(tmp_path.iterdir())) == 2


def test_there_is_a_pause_between_two_captures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A process for which it holds is not forgotten: it is kept after the pause."""
    results = plan(tmp_path / f"{TIMES}.d", when="lock > 10%", pause=10.0)
    other = three_troubles()
    for pid in (5, 6):
        Tracee(other, pid, "late", pid, "late").run(SECOND).wait(LOCK, "interruptible", 9 * SECOND, 900)
    for second in (0, 3, 9, 10, 13):
        results.publish(at(second, other if second else None))
    lines = capsys.readouterr().out.splitlines()
    assert ["kept" in line for line in lines] == [True, False, False, True, False]
    assert all("when: " in line for line in lines)


def test_the_name_of_what_a_condition_keeps(tmp_path: Path) -> None:
    plan(when="lock > 10%").publish(at(0))
    (folder,) = tmp_path.iterdir()
    assert folder.name.startswith("scan-2023111")


def test_a_process_that_was_at_work_and_hangs_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """One that only waits for a client is idle, whatever it did before. The condition is for those that worked."""
    results = plan(when="blocked(main) > 50% and pid > 2")
    results.publish(at(0, stuck()))
    line = capsys.readouterr().out
    assert "lock 100.0 %  queue (pid 3)" in line
    assert "when: " not in line
    assert "cron" not in line
    worked = empty()
    for pid, name in ((3, "queue"), (9, "cron")):
        Tracee(worked, pid, name, pid, name).run(10 * SECOND)
    results.publish(at(1, worked))
    capsys.readouterr()
    results.publish(at(2, stuck()))
    line = capsys.readouterr().out
    assert "lock 100.0 %  queue (pid 3)" in line
    assert "when: queue (pid 3): blocked(main) 100.0 %" in line
    assert "cron" not in line


def test_chosen_processes_are_told_whatever_they_did(capsys: pytest.CaptureFixture[str]) -> None:
    plan(everything=False, name="queue").publish(at(0, stuck()))
    assert "lock 100.0 %  queue (pid 3)" in capsys.readouterr().out


def test_what_cannot_be_written_is_told_in_the_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = plan(tmp_path / f"{TIMES}.d")
    results.publish(at(0))
    with pytest.raises(StallscopeError, match="exists"):
        results.publish(at(0))
    assert "not kept: " in capsys.readouterr().out


def test_names_without_a_time_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StallscopeError, match="--watch needs a name for each interval"):
        plan(tmp_path / "x.d")


def test_a_wrong_condition_is_refused_before_the_trace() -> None:
    with pytest.raises(StallscopeError, match="no quantity"):
        plan(when="blockd > 5%")


def test_a_screen_gets_the_intervals(capsys: pytest.CaptureFixture[str]) -> None:
    read_end, write_end = os.pipe()
    results = plan(screen=write_end)
    results.publish(at(0))
    assert capsys.readouterr().out == ""
    results.write(at(1))
    assert "io 90.0 %" in capsys.readouterr().out, "the last one stays on the terminal"
    os.close(write_end)
    with os.fdopen(read_end, "rb") as file:
        messages = [read(json.loads(line)) for line in file]
    assert [each.rows[0].kind for each in messages] == ["io", "io"]


def test_the_trace_ends_when_the_screen_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: sent.append((pid, number)))
    read_end, write_end = os.pipe()
    os.close(read_end)
    results = plan(screen=write_end)
    results.publish(at(0))
    assert sent == [], "it is the tracer itself"
    object.__setattr__(results, "tracer", 4711)
    with pytest.raises(SystemExit):
        results.publish(at(1))
    assert [pid for pid, _ in sent] == [4711]
    os.close(write_end)
