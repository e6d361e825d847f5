"""Fixtures for the tests of the converters."""

from __future__ import annotations

from pathlib import Path

import pytest
from conversions import FOLDED


@pytest.fixture
def folded(tmp_path: Path) -> Path:
    """A file with `FOLDED`."""
    path = tmp_path / "in.folded"
    path.write_text(FOLDED)
    return path
