"""The meetings of ranks of a page in the browser."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from collective_profiles import one_late, profile_of, rank, spent, standing
from scan_pages import ScanPage
from scans import HOSTILE
from stallscope.converters.base.text import printable
from summary_profiles import MS, SECOND


def test_ranks_open_what_they_do_between(show_scan: Callable[..., ScanPage]) -> None:
    shown = show_scan(profile_of(one_late()))
    assert shown.column("meetings", "Last") == ["100.0 %", "0.0 %", "0.0 %", "0.0 %"]
    assert shown.column("meetings", "Late") == ["8.00 ms", "0 ns", "0 ns", "0 ns"]
    assert shown.column("meetings", "Waited") == ["0 ns", "1.00 s", "1.00 s", "1.00 s"]
    shown.page.locator("#meetings .row").first.focus()
    shown.page.keyboard.press("Enter")
    text = shown.page.locator("#meetings tr.detail").inner_text()
    assert "train → load_batch → read" in text
    assert "100 meetings, 8.00 ms from the first arrival to the last (median), 16.0 ms at most" in text


def test_where_ranks_stand_and_names_that_are_hostile(show_scan: Callable[..., ScanPage]) -> None:
    found = standing()
    early = rank(1, last=0, late=-3 * MS, waited=SECOND, between=spent(0))
    kinds = (replace(found.kinds[0], what=HOSTILE),)
    shown = show_scan(profile_of(replace(found, ranks=(found.ranks[0], early, *found.ranks[2:]), kinds=kinds)))
    assert shown.column("meetings", "Late") == ["0 ns", "-3.00 ms", "0 ns", "0 ns"]
    shown.page.locator("#meetings .row").nth(1).click()
    text = shown.page.locator("#meetings tr.detail").inner_text()
    assert "in none since its collective 25" in text
    assert printable(HOSTILE) in text


def test_a_page_without_meetings_has_no_section(show_scan: Callable[..., ScanPage]) -> None:
    assert show_scan(profile_of()).section("meetings").count() == 0
