"""The driver of `make userland-test`, without any other userland."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

import other_userlands as subject
import pytest
from other_userlands import STEPS, WHEEL_STEPS, Failure, Userland


class Fake(Userland):
    """A userland in which all commands succeed but those that hold ``broken``."""

    def __init__(self, cache: Path, broken: str = "nothing", suite: str = "sid") -> None:
        super().__init__(suite, cache)
        self.broken = broken
        self.commands: list[str] = []

    def bootstrap(self, mirror: str, log: IO[bytes]) -> int:
        self.commands.append(f"debootstrap {mirror}")
        return int(self.broken == "debootstrap")

    def copy(self) -> None:
        (self.root / "src/stallscope/bpf").mkdir(parents=True)
        (self.root / "src/stallscope/bpf/stallscope.bpf.o").write_bytes(b"an object")

    def run(self, command: str, log: IO[bytes]) -> int:
        self.commands.append(command)
        log.write(b"3 passed\nthe end of it\n")
        return int(self.broken in command)


@pytest.fixture(autouse=True)
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(subject, "_RESULTS", tmp_path / "results")
    return tmp_path / "results"


def test_the_mirror_is_debians_own() -> None:
    lines = ["Other|Other|http://x/", "Debian|Debian-Security|http://s/", "Debian|Debian|http://d/debian/"]
    assert subject.mirror_of("\n".join(lines), "Debian") == "http://d/debian/"
    with pytest.raises(Failure, match="USERLAND_MIRROR"):
        subject.mirror_of("Ubuntu|Ubuntu|http://u/\n||http://not-read-yet/\n", "Debian")


@pytest.mark.parametrize("name", ["", "..", "../sid", "-sid", "sid/x", "Sid", "sid\n"])
def test_names_that_are_none(name: str, tmp_path: Path) -> None:
    with pytest.raises(Failure):
        Userland(name, tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


def test_all_steps(tmp_path: Path, results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    userland = Fake(tmp_path / "cache")
    assert subject.check(userland, "http://d/", refresh=False)
    assert userland.commands == ["debootstrap http://d/", *(step.command for step in STEPS)]
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[-3] for line in lines if not line.startswith(" ")] == ["ok"] * (len(STEPS) + 1)
    assert "         3 passed" in lines
    assert (results / "sid/stallscope.bpf.o").read_bytes() == b"an object"
    assert not userland.root.exists()
    text = (results / "sid.log").read_text()
    assert [line[3:] for line in text.splitlines() if line.startswith("== ")][1:] == [step.name for step in STEPS]


def test_ubuntu_gets_the_wheel(tmp_path: Path) -> None:
    userland = Fake(tmp_path / "cache", suite="jammy")
    assert subject.check(userland, "http://u/", refresh=False)
    assert userland.commands == ["debootstrap http://u/", *(step.command for step in WHEEL_STEPS)]


def test_ubuntus_keys_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "_KEYRINGS", tmp_path)
    userland = Userland("jammy", tmp_path / "cache")
    with (tmp_path / "log").open("w+b") as log, pytest.raises(Failure, match="ubuntu-keyring"):
        userland.bootstrap("http://u/", log)


def test_a_step_that_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    userland = Fake(tmp_path / "cache", broken="make demo")
    assert not subject.check(userland, "http://d/", refresh=False)
    assert userland.commands[-1] == STEPS[-1].command
    out = capsys.readouterr().out
    assert [line.split()[2] for line in out.splitlines() if "FAILED" in line] == ["demo"]
    assert "         the end of it" in out.splitlines()
    assert "sid: failed: make demo; see " in out


@pytest.mark.parametrize("broken", ["debootstrap", "make build"])
def test_nothing_is_tried_without_a_build(broken: str, tmp_path: Path, results: Path) -> None:
    (results / "sid").mkdir(parents=True)
    (results / "sid/stallscope.bpf.o").write_bytes(b"an object of the last time")
    userland = Fake(tmp_path / "cache", broken)
    assert not subject.check(userland, "http://d/", refresh=False)
    assert broken in userland.commands[-1]
    assert not (results / "sid/stallscope.bpf.o").exists()
    assert not userland.root.exists()


def test_what_is_kept_is_made_anew_when_it_is_old(tmp_path: Path) -> None:
    userland = Fake(tmp_path / "cache")
    userland.base.mkdir()
    for age, refresh, expected in ((1, False, 0), (1, True, 1), (8, False, 1)):
        userland.commands.clear()
        then = time.time() - age * 86400
        os.utime(userland.base, (then, then))
        assert subject.check(userland, "http://d/", refresh)
        assert userland.commands.count("debootstrap http://d/") == expected


def test_two_runs_are_one_too_many(tmp_path: Path) -> None:
    userland = Fake(tmp_path / "cache")
    with userland.locked(), pytest.raises(Failure, match="another run"):
        subject.check(Fake(tmp_path / "cache"), "http://d/", refresh=False)
    assert userland.commands == []


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_step_that_does_not_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "_STEP_LIMIT", 0.5)
    pid = tmp_path / "pid"
    with (tmp_path / "log").open("w+b", buffering=0) as log:
        assert subject.run(["bash", "-c", f"sleep 600 & echo $! >{pid}; wait"], log) == 124
    wait_until(lambda: not runs(int(pid.read_text())))
    assert (tmp_path / "log").read_text() == "ended after 0.5 s\n"


def test_the_exit_status_of_a_step(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w+b", buffering=0) as log:
        assert subject.run(["bash", "-c", "echo out; echo err >&2; exit 7"], log) == 7
    assert (tmp_path / "log").read_text() == "out\nerr\n"


def stay_in(root: Path) -> None:
    os.chroot(root)
    signal.pause()


def test_what_still_runs_there_is_ended(require: Callable[[bool, str], None], tmp_path: Path) -> None:
    require(os.geteuid() == 0, "chroot takes root")
    child = multiprocessing.get_context("fork").Process(target=stay_in, args=(tmp_path,))
    child.start()
    wait_until(lambda: os.path.samefile(tmp_path, f"/proc/{child.pid}/root"))
    subject.end_processes_in(tmp_path)
    child.join(60)
    assert child.exitcode == -signal.SIGKILL


def test_root_is_needed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(sys, "argv", ["other_userlands.py", "sid"])
    assert subject.main() == 2
    assert "other userlands need root" in capsys.readouterr().err
