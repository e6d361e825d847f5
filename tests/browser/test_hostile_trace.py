"""The flame graph of a traced process with hostile names, in a browser: `open_file` sees what it tries."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from commands import Tracer, traced_run
from runner import Workload

if TYPE_CHECKING:
    from playwright.sync_api import Page

FOREIGN = """() => document.querySelectorAll(
    "script, image, img, iframe, object, a, [onload], [onclick], #frames b, #labels b, #tip b b").length"""


@pytest.fixture
def traced(require: Callable[[bool, str], None], tmp_path: Path) -> Path:
    doctor = Path(sys.executable).with_name("trace-doctor")
    able = subprocess.run([str(doctor)], capture_output=True, check=False).returncode == 0
    require(able, "trace-offcpu cannot run here")
    path = tmp_path / "hostile.svg"
    options = ["--max-block", 90_000, "--per-thread", "-o", path]
    with (
        Workload("hostile", 20, linger=True) as workload,
        Tracer("-p", workload.pid, *options) as tracer,
    ):
        traced_run(workload, tracer)
    return path


def test_names_stay_text(traced: Path, open_file: Callable[..., Page]) -> None:
    page = open_file(traced)
    elements = page.evaluate(FOREIGN)
    for symbol in ('quote"amp&<b>', "semi;colon'</g>"):
        page.locator("#bar input").fill(re.escape(symbol))
        hits = page.locator("#frames rect.hit")
        assert hits.count() >= 6  # in each of the threads
        hits.first.hover()
        assert symbol in page.locator("#tip .tip > *").all_text_contents()[0]
        share = re.match(r"matched ([\d.]+) %", page.locator("#bar output").text_content() or "")
        assert share
        assert float(share[1]) > 10
        # Every frame can be clicked and comes back.
        hits.first.click()
        page.locator("#bar button", has_text="Reset").click()
    labels = page.locator("#labels text").all_text_contents()
    assert any(label.startswith("\\x1b[31mred") for label in labels), labels
    assert page.evaluate(FOREIGN) == elements
    assert page.evaluate("() => document.title").startswith("Off-CPU time")
