"""The steps of a page in the browser."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from job_profiles import job
from pace_profiles import found_by, steps
from scan_pages import ScanPage, write_page
from scans import HOSTILE
from stallscope.converters.base.text import printable
from stallscope.converters.model import Profile
from stallscope.converters.model.steps import Steps

if TYPE_CHECKING:
    from playwright.sync_api import Page


@pytest.fixture
def show(open_file: Callable[..., Page], tmp_path: Path) -> Callable[..., ScanPage]:
    def show(profile: Profile, **options: Any) -> ScanPage:
        path = tmp_path / "scan.html"
        report = write_page(profile, path)
        page = open_file(path, **options)
        page.wait_for_selector("html[data-ready]")
        return ScanPage(page, report)

    return show


def ranks(*found: Steps) -> Profile:
    profile = job(0.3, 0.3, 0.3)
    profile.found_steps = list(found)
    return profile


def test_steps_of_ranks_open_their_evidence(show: Callable[..., ScanPage]) -> None:
    shown = show(ranks(replace(found_by(101, 101), span=198 * 10**8), found_by(100)))
    assert shown.column("steps", "Per s") == ["5.00", "10.0"]
    assert shown.column("steps", "p90") == ["120 ms", "120 ms"]
    assert shown.column("steps", "On CPU") == ["15.0 %", "15.0 %"]
    row = shown.page.locator("#steps .row").first
    row.focus()
    shown.page.keyboard.press("Enter")
    text = shown.page.locator("#steps tr.detail").inner_text()
    assert "By time alone, a step is from one end of the wait in main → next_batch to the next (100 intervals" in text
    assert "1 thread, which takes 80.0 ms for each, 12.5 a second at most" in text
    assert "main → save → fsync" in text
    assert "rank 1" in shown.section("steps").locator("tbody tr").first.inner_text()


def test_steps_that_were_named_and_names_that_are_hostile(show: Callable[..., ScanPage]) -> None:
    profile = ranks()
    profile.steps = [replace(steps(100), name=HOSTILE)]
    shown = show(profile)
    assert printable(HOSTILE) in shown.section("steps").inner_text()
    assert shown.column("steps", "p90") == ["-"]


def test_a_page_without_steps_has_no_section(show: Callable[..., ScanPage]) -> None:
    assert show(ranks()).section("steps").count() == 0
