"""The jobs of a page in the browser."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from job_profiles import job, late
from scan_pages import ScanPage
from scans import scanned_host

if TYPE_CHECKING:
    pass


def test_ranks_are_a_heat_map_for_keys(show_scan: Callable[..., ScanPage]) -> None:
    shown = show_scan(late())
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


def test_a_page_without_a_job_has_no_section(show_scan: Callable[..., ScanPage]) -> None:
    shown = show_scan(scanned_host())
    assert shown.section("jobs").count() == 0
    assert "Jobs and their ranks" not in shown.page.locator("#sections").inner_text()


def test_ranks_that_are_alike_have_no_mark(show_scan: Callable[..., ScanPage]) -> None:
    section = show_scan(job(0.1, 0.1, 0.1)).section("jobs")
    assert "all alike" in section.inner_text()
    assert "*" not in section.locator("table").inner_text()
