"""A perf that needs no rights."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from stallscope.converters.base import helpers

FAKE = Path(__file__).with_name("fake_perf.py")


@pytest.fixture
def fake_perf(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The path of `fake_perf.py`, which is found as perf; its log is beside it."""
    path = tmp_path / "bin" / "perf"
    path.parent.mkdir()
    path.write_text(FAKE.read_text().replace("/usr/bin/env python3", sys.executable, 1))
    path.chmod(0o755)
    monkeypatch.setattr(helpers, "FOLDERS", (str(path.parent), *helpers.FOLDERS))
    monkeypatch.setattr(helpers, "INHERITED", ("FAKE_",))
    monkeypatch.setenv("FAKE_FOLDER", str(path.parent))
    monkeypatch.setenv("FAKE_PERF_LOG", str(tmp_path / "log"))
    (tmp_path / "log").touch()
    (tmp_path / "log").chmod(0o666)  # perf script is nobody
    assert helpers.find_program("perf") == str(path)
    return path
