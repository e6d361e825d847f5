"""The jobs of a page in the browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from job_profiles import job, late
from scan_pages import ScanPage, write_page
from scans import scanned_host
from stallscope.converters.model import Profile

if TYPE_CHECKING:
    from playwright.sync_api import Page


@pytest.fixture
def show(open_file: Callable[..., Page], tmp_path: Path) -> Callable[..., ScanPage]:
    def show(profile: Profile, fragment: str = "", **options: Any) -> ScanPage:
        path = tmp_path / "scan.html"
        report = write_page(profile, path)
        page = open_file(path, fragment, **options)
        page.wait_for_selector("html[data-ready]")
        return ScanPage(page, report)

    return show


def test_ranks_are_a_heat_map_for_keys(show: Callable[..., ScanPage]) -> None:
    shown = show(late())
    section = shown.section("jobs")
    assert "keeps the other 7 ranks waiting" in section.inner_text()
    table = section.locator("table")
    assert table.locator("thead th").all_inner_texts() == ["Running", "Queued", "Ranks", "sleep"]
    rows = table.locator("tbody tr")
    assert rows.count() == 9
    first = rows.first.locator("td").all_inner_texts()
    assert first == ["", "", "20", "80"]
    assert rows.first.locator("th").inner_text() == "rank 3 (pid 103, GPU 3) *"
    strong, weak = (
        rows.nth(i).locator("td").nth(3).locator("span").evaluate("(it) => getComputedStyle(it).backgroundColor")
        for i in (0, 1)
    )
    assert strong != weak
    table.locator("td[tabindex='0']").focus()
    for _ in range(3):
        shown.page.keyboard.press("ArrowRight")
    told = section.locator("[role=status]").inner_text()
    assert told == "rank 3 (pid 103, GPU 3) is for 80.0 % of its time asleep (median: 10.0 %)"


def test_a_page_without_a_job_has_no_section(show: Callable[..., ScanPage]) -> None:
    shown = show(scanned_host())
    assert shown.section("jobs").count() == 0
    assert "Jobs and their ranks" not in shown.page.locator("#sections").inner_text()


def test_ranks_that_are_alike_have_no_mark(show: Callable[..., ScanPage]) -> None:
    section = show(job(0.1, 0.1, 0.1)).section("jobs")
    assert "all alike" in section.inner_text()
    assert "*" not in section.locator("table").inner_text()
