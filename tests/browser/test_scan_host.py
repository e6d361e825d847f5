"""The host on a page in the browser."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from host_profiles import busy_host
from scan_pages import ScanPage
from scans import HOSTILE, scanned_host

if TYPE_CHECKING:
    from playwright.sync_api import Locator

TITLES = [
    "Pressure",
    "Contended calls and locks",
    "Taken from the cores",
    "Threads that were created",
    "Pools of threads",
    "Quotas of control groups",
    "Neighbours: processes that were not traced",
    "GPUs",
]


def table(shown: ScanPage, title: str) -> Locator:
    return shown.section("machine").locator(f"h3:text-is('{title}') ~ table").first


def cells(shown: ScanPage, title: str) -> list[list[str]]:
    return [row.locator("td").all_inner_texts() for row in table(shown, title).locator("tbody tr").all()]


def test_all_of_a_host(show_scan: Callable[..., ScanPage]) -> None:
    shown = show_scan(busy_host())
    section = shown.section("machine")
    assert section.locator("h3").all_inner_texts() == TITLES
    assert cells(shown, "Pressure")[1] == ["a disk", "host", "30.0 %", "20.0 %"]
    contended = cells(shown, "Contended calls and locks")
    assert contended[0][:4] == ["file lock", "lock on /srv/db.lock (flock)", "2.5 × †", "2.5"]
    assert contended[2][:6] == ["lock", "mutex table+0x40 of train (7)", "3.9 ×", "3.0", "3.67 ms", "14.4 ms"]
    cores = cells(shown, "Taken from the cores")
    assert cores[0][:5] == ["3", "60.0 %", "2.00 s", "4.00 s", "0"]
    assert "train / train (101) had it for" in cores[0][5]
    assert "interrupts" not in cores[1][5], "nothing was taken there"
    assert "soft interrupts 10.0 % (70,000 interrupts)" in section.inner_text()
    assert cells(shown, "Threads that were created")[0][:4] == ["train (100)", "40", "4.0", "30"]
    pool = cells(shown, "Pools of threads")[0]
    assert pool[:5] == ["train (100)", "w", "40", "30", "main → next_epoch"]
    assert cells(shown, "Quotas of control groups") == [["/job_1.slice", "2.00", "40.0 %"]]
    assert cells(shown, "Neighbours: processes that were not traced")[0][:2] == ["backup (77)", "0.30"]
    gpu = cells(shown, "GPUs")[0]
    assert gpu[2:] == ["60.0 GiB of 80.0 GiB", "1,200 MHz of 1,980 MHz", "650 W of 700 W", "power cap 80.0 %"]


def test_tables_are_sorted_and_searched(show_scan: Callable[..., ScanPage]) -> None:
    shown = show_scan(busy_host())
    head = table(shown, "Contended calls and locks").locator("th", has_text="Factor")
    head.locator("button").focus()
    shown.page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    assert cells(shown, "Contended calls and locks")[0][0] == "lock"
    shown.search("db.lock")
    assert [row[0] for row in cells(shown, "Contended calls and locks")] == ["file lock"]


def test_without_anything_it_says_so(show_scan: Callable[..., ScanPage]) -> None:
    profile = scanned_host()
    profile.shared = []
    section = show_scan(profile).section("machine")
    assert section.locator("table").count() == 0
    assert "Nothing was recorded of the host" in section.inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_can_be_read_in_both_themes_and_on_paper(show_scan: Callable[..., ScanPage], scheme: str) -> None:
    """Texts differ from what is behind them by 4.5 at least (WCAG 2.1), also in the cells of the matrix."""
    shown = show_scan(busy_host(), color_scheme=scheme)
    assert shown.page.evaluate(CONTRAST) == []
    shown.page.emulate_media(media="print")
    shown.page.wait_for_timeout(150)
    assert table(shown, "Contended calls and locks").is_visible()
    assert shown.page.evaluate(CONTRAST) == []


def test_the_matrix_has_a_table(show_scan: Callable[..., ScanPage]) -> None:
    shown = show_scan(busy_host())
    pairs = shown.page.locator("#pairs")
    assert pairs.locator("table").count() == 0
    pairs.locator("summary").focus()
    shown.page.keyboard.press("Enter")
    pairs.locator("tbody tr").first.wait_for()  # the table is made when it is opened
    rows = [row.locator("td").all_inner_texts() for row in pairs.locator("tbody tr").all()]
    assert ["saver (200)", "feed (300)", "8.00 s", "25.0 %"] in rows
    assert len(rows) == 4
    shown.search("saver")
    assert pairs.locator("tbody tr").count() == 1


def test_hostile_names_stay_text(show_scan: Callable[..., ScanPage]) -> None:
    shown = show_scan(busy_host(name=HOSTILE))
    shown.page.locator("#pairs summary").click()
    count = "() => document.querySelectorAll('#machine img, #machine script, #waits img, #waits script').length"
    assert shown.page.evaluate(count) == 0
    assert "<img src=x" in shown.section("machine").inner_text()


CONTRAST = """() => {
    const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
    const light = ([red, green, blue]) => [red, green, blue].map((part) => part / 255)
        .map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
        .reduce((sum, part, i) => sum + part * [0.2126, 0.7152, 0.0722][i], 0);
    const over = (top, below) => [0, 1, 2].map((i) => top[i] * (top[3] ?? 1) + below[i] * (1 - (top[3] ?? 1)));
    const behind = (node) => {
        if (!node) {
            return [255, 255, 255];
        }
        const own = rgb(getComputedStyle(node).backgroundColor);
        return over(own, own[3] === undefined ? own : behind(node.parentElement));
    };
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const bad = [];
    while (walker.nextNode()) {
        const node = walker.currentNode.parentElement;
        if (!walker.currentNode.textContent.trim() || !node.closest("#machine, #waits") || !node.checkVisibility()) {
            continue;
        }
        const below = behind(node);
        const [a, b] = [light(over(rgb(getComputedStyle(node).color), below)), light(below)];
        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (ratio < 4.5) {
            bad.push([ratio.toFixed(2), walker.currentNode.textContent]);
        }
    }
    return bad;
}"""
