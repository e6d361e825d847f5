"""Leftovers of a stage: what it starts is gone after it."""

from __future__ import annotations

from pathlib import Path

import pytest
from stage import Failed, Stage


def test_what_was_started_is_gone_with_its_children_and_its_folder() -> None:
    with Stage() as stage:
        shell = stage.start("sh", "-c", "sleep 60 & echo ready; wait", ready="ready")
        pids = stage.tree(shell.pid, least=2)
        assert len(pids) == 2
        folder = stage.folder
        assert folder.is_dir()
    assert not folder.exists()
    with Stage() as another:
        another.until(lambda: not any(map(_runs, pids)), "all have ended")


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_program_that_fails_is_told_with_what_it_said() -> None:
    with Stage() as stage, pytest.raises(Failed, match="status 3: no such table"):
        stage.start("sh", "-c", "echo no such table; exit 3", ready="ready")


def test_a_command_that_fails_is_told_with_what_it_said() -> None:
    with Stage() as stage, pytest.raises(Failed, match="status 4: broken"):
        stage.run("sh", "-c", "echo broken >&2; exit 4")


def test_the_callers_environment_is_not_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHOSE", "mine")
    with Stage() as stage:
        assert "WHOSE" not in stage.run("env")
        assert "RANK=1" in stage.run("env", environment={"RANK": "1"})
