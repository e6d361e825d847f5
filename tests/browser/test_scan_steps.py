"""The steps of a page in the browser."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from job_profiles import job
from pace_profiles import found_by, steps
from scan_pages import ScanPage
from scans import HOSTILE
from stallscope.converters.base.text import printable
from stallscope.converters.model import Profile
from stallscope.converters.model.steps import Steps

if TYPE_CHECKING:
    pass


def ranks(*found: Steps) -> Profile:
    profile = job(0.3, 0.3, 0.3)
    profile.found_steps = list(found)
    return profile


def test_steps_of_ranks_open_their_evidence(show_scan: Callable[..., ScanPage]) -> None:
    shown = show_scan(ranks(replace(found_by(101, 101), span=198 * 10**8), found_by(100)))
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


def test_steps_that_were_named_and_names_that_are_hostile(show_scan: Callable[..., ScanPage]) -> None:
    profile = ranks()
    profile.steps = [replace(steps(100), name=HOSTILE)]
    shown = show_scan(profile)
    assert printable(HOSTILE) in shown.section("steps").inner_text()
    assert shown.column("steps", "p90") == ["-"]


def test_a_page_without_steps_has_no_section(show_scan: Callable[..., ScanPage]) -> None:
    assert show_scan(ranks()).section("steps").count() == 0
