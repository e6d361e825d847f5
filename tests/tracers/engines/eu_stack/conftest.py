"""An eu-stack that does what it is told to."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from stallscope.converters.base import helpers


@pytest.fixture
def fake_eu_stack(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], Path]:
    """``fake_eu_stack(script)``: the path of a shell script, found as eu-stack; its arguments are ``-p PID``."""
    path = tmp_path / "bin" / "eu-stack"
    path.parent.mkdir()

    def make(script: str) -> Path:
        path.write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setattr(helpers, "FOLDERS", (str(path.parent), *helpers.FOLDERS))
        return path

    return make


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process that sleeps."""
    with subprocess.Popen(["/bin/sleep", "60"]) as process:
        yield process
        process.kill()
