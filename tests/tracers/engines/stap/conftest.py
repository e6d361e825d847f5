"""A stap and a staprun that need no rights and no kernel that loads modules."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from stallscope.converters.base import helpers
from stallscope.tracers.engines.stap import running

HERE = Path(__file__).parent


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of `fake_stap.py` and `fake_staprun.py`, which are found as stap and staprun; logs are beside it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("stap", "staprun"):
        text = (HERE / f"fake_{name}.py").read_text().replace("/usr/bin/env python3", sys.executable, 1)
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    monkeypatch.setattr(helpers, "FOLDERS", (str(folder),))
    monkeypatch.setattr(helpers, "INHERITED", ("FAKE_",))
    monkeypatch.setenv("FAKE_STAP_LOG", str(tmp_path / "log"))
    monkeypatch.setenv("STALLSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(running, "can_load", lambda: True)
    monkeypatch.setattr(running.os, "geteuid", lambda: 0)
    return folder


@pytest.fixture
def build(tmp_path: Path) -> Path:
    """A kernel's build folder."""
    folder = tmp_path / "build"
    folder.mkdir()
    (folder / "Makefile").touch()
    return folder
