"""The page of a scan in a browser: read, sorted, opened, searched, switched and zoomed."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from scan_pages import ScanPage
from scans import HOSTILE, scanned_host, three_troubles
from slice_profiles import two_phases
from stallscope.converters.base.text import printable
from stallscope.converters.base.units import duration
from summary_profiles import SECOND

if TYPE_CHECKING:
    from playwright.sync_api import Page


# ---- Tables


def test_the_answer_comes_first_and_tables_follow(show_scan: Callable[..., ScanPage]) -> None:
    shown = show_scan(scanned_host())
    text = shown.page.locator("header").inner_text()
    for sentence in shown.report.summary.answer:
        assert sentence in text
    assert "Missing: 3 intervals." in text
    assert shown.column("verdicts", "Verdict") == [each.kind for each in shown.report.processes]
    assert shown.column("locks", "Waited") == ["90.0 ms"]
    assert shown.column("calls", "Factor") == ["2.5 ×"]
    assert shown.column("lost", "Number") == ["3", "2"]
    assert len(shown.column("threads", "Thread")) == 4


def test_rows_are_sorted_by_any_column(show_scan: Callable[..., ScanPage]) -> None:
    shown = show_scan(three_troubles())
    kinds = shown.column("verdicts", "Verdict")
    assert shown.sort("verdicts", "Verdict") == "ascending"
    assert shown.column("verdicts", "Verdict") == sorted(kinds)
    assert shown.sort("verdicts", "Verdict") == "descending"
    assert shown.column("verdicts", "Verdict") == sorted(kinds, reverse=True)
    assert shown.sort("verdicts", "Cores") == "descending"
    cores = [float(text) for text in shown.column("verdicts", "Cores") if text != "-"]
    assert cores == sorted(cores, reverse=True)
    assert shown.page.evaluate("() => document.activeElement.textContent") == "Cores"


def test_a_row_opens_its_evidence(show_scan: Callable[..., ScanPage]) -> None:
    shown = show_scan(three_troubles())
    row = shown.page.locator("#verdicts .row").first
    first = shown.report.processes[0]
    assert row.get_attribute("aria-expanded") == "false"
    row.focus()
    shown.page.keyboard.press("Enter")
    assert row.get_attribute("aria-expanded") == "true"
    details = shown.page.locator("#verdicts tr.detail")
    text = details.inner_text()
    assert first.told in text
    assert first.verdict
    assert first.verdict.rule in text
    details.locator("details summary").first.click()
    frames = details.locator(".stack li").all_inner_texts()
    assert any(frame.startswith("fsync │ libc.so.6") for frame in frames)
    row.click()
    assert shown.page.locator("#verdicts tr.detail").count() == 0


def test_evidence_leads_to_the_graph_and_the_lanes(show_scan: Callable[..., ScanPage]) -> None:
    shown = show_scan(scanned_host())
    shown.page.locator("#verdicts .row").nth(1).click()
    shown.page.locator(".go", has_text="graph").click()
    chosen = shown.page.locator("#group").evaluate("(each) => each.selectedOptions[0].textContent")
    labels = shown.page.locator("#group option").all_text_contents()
    assert chosen == labels[2]
    shown.page.locator(".go", has_text="over time").click()
    assert shown.page.evaluate("() => document.activeElement.id") == "lanes-canvas"


# ---- Graph


def test_values_and_groups_are_switched(show_scan: Callable[..., ScanPage]) -> None:
    shown = show_scan(scanned_host())
    about = shown.page.locator("#about")
    totals = {"wall": 40, "off-CPU": 32, "on-CPU": 8, "wakers": 32, "calls": 4}
    for name, seconds in totals.items():
        shown.page.locator("#value").select_option(str(list(totals).index(name)))
        assert f"{duration(seconds * SECOND)} {name}" in (about.text_content() or "")
    assert shown.page.locator("#views [aria-pressed=true]").inner_text() == "Icicle"
    groups = shown.page.locator("#group option").all_text_contents()
    assert groups[0] == "All"
    assert shown.page.locator("#group").evaluate("(each) => each.selectedOptions[0].textContent") == groups[1]
    for label in groups:
        shown.page.locator("#group").select_option(label=label)
        assert shown.page.locator("#group").evaluate("(each) => each.selectedOptions[0].textContent") == label
    shown.page.locator("[data-view=table]").click()
    assert shown.page.locator("#table").is_visible()
    assert "under" in shown.page.locator("#scope").inner_text()


def test_one_search_is_for_all_sections(show_scan: Callable[..., ScanPage]) -> None:
    shown = show_scan(scanned_host())
    shown.page.keyboard.press("/")
    shown.page.keyboard.type("fsync")
    assert (shown.page.locator("#result").text_content() or "").startswith("matched")
    assert shown.caption("verdicts").startswith("1 of ")
    assert shown.caption("locks").startswith("0 of 1")
    shown.search("worker-3")
    assert shown.page.locator("#lanes-result").inner_text().startswith("1 thread found")
    shown.search("pipe_read")
    assert "found" in shown.page.locator("#lanes-result").inner_text()
    shown.search("(")
    assert shown.page.locator("#result").inner_text() == "not a regular expression"
    shown.page.keyboard.press("Escape")
    assert shown.page.locator("#search").input_value() == ""
    assert not shown.caption("verdicts").startswith("1 of ")
    assert shown.page.locator("#lanes-result").inner_text().endswith("shown")


# ---- Matrix


def test_the_matrix_is_a_table_for_keys(show_scan: Callable[..., ScanPage]) -> None:
    shown = show_scan(scanned_host())
    matrix = shown.page.locator("#matrix")
    assert matrix.locator("thead th").all_inner_texts() == ["feed (300)"]
    heads = matrix.locator("tbody th").all_inner_texts()
    assert {"saver (200)", "train (100)", "train (101)", "feed (300)"} == set(heads)
    assert matrix.locator("td[tabindex='0']").count() == 1
    matrix.locator("td[tabindex='0']").focus()
    shown.page.keyboard.press("ArrowDown")
    told = shown.section("waits").locator("[role=status]").inner_text()
    assert f"waited {duration(8 * SECOND)} for" in told
    assert "25.0 % of all waiting" in told


# ---- Names and losses


def test_hostile_names_stay_text(show_scan: Callable[..., ScanPage]) -> None:
    count = "() => document.querySelectorAll('img, iframe, object, [onload], [onerror]').length"
    scripts = "() => document.querySelectorAll('script').length"
    shown = show_scan(scanned_host(name=HOSTILE))
    assert shown.page.evaluate(count) == 0
    assert shown.page.evaluate(scripts) == 1
    for row in shown.page.locator(".row").all():
        row.click()
    for box in shown.page.locator(".detail summary").all():
        box.click()
    shown.page.locator("#lanes-canvas").focus()
    shown.page.keyboard.press("ArrowDown")
    shown.page.keyboard.press("ArrowDown")
    shown.page.keyboard.press("ArrowRight")
    assert shown.page.evaluate(count) == 0
    assert shown.page.evaluate(scripts) == 1
    assert printable(HOSTILE) in shown.page.locator("#lanes-phase").inner_text()
    assert printable(HOSTILE) in shown.section("verdicts").inner_text()


def test_without_events_it_says_so(show_scan: Callable[..., ScanPage]) -> None:
    shown = show_scan(scanned_host(events=False))
    assert "no events of the scheduler" in shown.page.locator("#lanes-none").inner_text()
    assert shown.page.locator("#lanes-box").is_hidden()
    shown.search("fsync")
    assert shown.caption("verdicts").startswith("1 of ")


@pytest.mark.parametrize(("block", "where"), [("lanesdata", "#lanes-none"), ("data", "#nothing")])
def test_damaged_data_is_told(
    show_scan: Callable[..., ScanPage], open_file: Callable[..., Page], tmp_path: Path, block: str, where: str
) -> None:
    show_scan(scanned_host())
    source = (tmp_path / "scan.html").read_text()
    path = tmp_path / "damaged.html"
    noise = base64.b64encode(b"x" * 99).decode()
    path.write_text(re.sub(rf'(id="{block}">\n)[A-Za-z0-9+/=\n]+', rf"\g<1>{noise}\n", source, count=1))
    page = open_file(path)
    page.locator(where).filter(has_text="data is damaged").wait_for()


# ---- Dark, print, screen readers


def test_dark_mode_follows_the_system(show_scan: Callable[..., ScanPage]) -> None:
    shown = show_scan(scanned_host(), color_scheme="dark")
    assert shown.page.evaluate("() => getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 27)"
    x, y = shown.lane(0, 0.5)
    assert max(shown.color("lanes-canvas", x, y - 19)) < 60  # the axis
    shown.page.emulate_media(color_scheme="light")
    shown.page.wait_for_timeout(150)
    assert min(shown.color("lanes-canvas", x, y - 19)) > 200
    assert shown.page.evaluate("() => getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_on_paper_there_is_no_tool(show_scan: Callable[..., ScanPage]) -> None:
    shown = show_scan(scanned_host())
    shown.page.emulate_media(media="print")
    shown.page.wait_for_timeout(150)
    assert shown.page.locator("#tools").is_hidden()
    assert shown.page.locator("#lanes-bar").is_hidden()
    assert shown.page.locator("#verdicts table").is_visible()
    assert len(shown.page.pdf()) > 10_000
    shown.page.emulate_media(media="screen")
    assert shown.page.locator("#tools").is_visible()


def test_all_that_can_be_used_has_a_name(show_scan: Callable[..., ScanPage]) -> None:
    shown = show_scan(scanned_host())
    nameless = """() => Array.from(document.querySelectorAll("button, input, select, canvas")).filter((each) =>
        !each.hidden && !(each.getAttribute("aria-label") || each.textContent.trim()
            || (each.labels && each.labels.length))).map((each) => each.outerHTML)"""
    assert shown.page.evaluate(nameless) == []
    assert shown.page.evaluate("() => Array.from(document.querySelectorAll('.host > table')).every((t) => t.caption)")
    assert shown.page.evaluate("() => Array.from(document.querySelectorAll('th')).every((head) => head.scope)")
    assert shown.page.evaluate("() => Array.from(document.querySelectorAll('canvas')).every((c) => c.role === 'img')")
    levels = shown.page.evaluate("() => Array.from(document.querySelectorAll('h1, h2')).map((each) => each.tagName)")
    assert levels == ["H1", *["H2"] * 10]


def test_tab_reaches_every_section(show_scan: Callable[..., ScanPage]) -> None:
    shown = show_scan(scanned_host())
    reached = set()
    for _ in range(160):
        shown.page.keyboard.press("Tab")
        reached.add(shown.page.evaluate("() => (document.activeElement.closest('section, #tools') || {}).id"))
    tables = {"machine", "waits", "locks", "calls", "cores", "threads", "lost"}
    assert reached >= {"tools", "verdicts", "stacks", "lanes", *tables}


def test_sections_are_a_click_away(show_scan: Callable[..., ScanPage]) -> None:
    shown = show_scan(scanned_host())
    shown.page.locator("#sections button", has_text="Locks").click()
    assert shown.page.evaluate("() => document.activeElement.id") == "locks"
    assert shown.page.locator("#h-locks").is_visible()


def test_strips_over_time(show_scan: Callable[..., ScanPage]) -> None:
    """A box for each slice in the colour of its kind, with words for who does not see it."""
    shown = show_scan(two_phases())
    strip = shown.page.locator("#verdicts .strip")
    assert strip.get_attribute("role") == "img"
    assert strip.get_attribute("aria-label") == "Over time, io until second 4.0, lock until second 10.0"
    boxes = strip.locator("i").all()
    colours = [box.evaluate("(each) => getComputedStyle(each).backgroundColor") for box in boxes]
    assert len(boxes) == 10
    assert len(set(colours[:4])) == len(set(colours[4:])) == 1
    assert colours[0] != colours[4]
    assert boxes[0].get_attribute("title") == "From second 0.0 to 1.0: io 100.0 %"
    shown.page.locator("#verdicts .row").first.click()
    over = shown.report.processes[0].over
    assert over
    assert over.told in shown.page.locator("#verdicts tr.detail").inner_text()
    assert shown.sort("verdicts", "Over time") == "ascending"
