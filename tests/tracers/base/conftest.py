from __future__ import annotations

from pathlib import Path

import pytest
from stallscope.tracers.base import file_locks


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file in place of /proc/locks, at which looks may be as often as they like."""
    path = tmp_path / "locks"
    path.touch()
    monkeypatch.setattr(file_locks, "TABLE", str(path))
    monkeypatch.setattr(file_locks, "_SOON", 0)
    monkeypatch.setattr(file_locks, "_SELDOM", 60)
    monkeypatch.setattr(file_locks, "_SHARE", 1e9)
    return path
