"""SVG by graphviz."""

from __future__ import annotations

import io
import shutil
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest
from stallscope.converters.base import helpers
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.writers.base.options import WriteOptions
from stallscope.converters.writers.waits_for import drawing
from wait_graphs import chained, profile_of

PROFILE = profile_of(chained(7, 7, 5, ("disk-9", 10, "reader")))


def test_a_drawing(require: Callable[[bool, str], None]) -> None:
    require(shutil.which("dot") is not None, "graphviz is not installed")
    file = io.BytesIO()
    drawing.write(PROFILE, file, WriteOptions())
    assert ET.fromstring(file.getvalue()).tag == "{http://www.w3.org/2000/svg}svg"
    assert b"disk-9/reader-10" in file.getvalue().replace(b"&#45;", b"-")


def test_without_graphviz(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(helpers, "FOLDERS", (str(tmp_path),))
    with pytest.raises(StallscopeError, match="which is not installed") as error:
        drawing.write(PROFILE, io.BytesIO(), WriteOptions())
    assert "apt-get install graphviz" in error.value.remedy


@pytest.mark.parametrize("script", ["#!/bin/sh\nexit 3\n", "#!/bin/sh\ncat > /dev/null\n", "no program"])
def test_graphviz_that_fails(monkeypatch: pytest.MonkeyPatch, open_path: Path, script: str) -> None:
    program = open_path / "dot"
    program.write_text(script)
    program.chmod(0o755)
    monkeypatch.setattr(drawing, "check", lambda: str(program))
    with pytest.raises(StallscopeError, match="dot"):
        drawing.write(PROFILE, io.BytesIO(), WriteOptions())
