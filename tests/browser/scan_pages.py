"""Pages of scans in the browser, and what an opened one shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from stallscope.converters.scan.page import page as pages
from stallscope.converters.scan.report import Report, report_of

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page
    from stallscope.converters.model import Profile


def write_page(profile: Profile, path: Path) -> Report:
    """Writes the page of a profile; returns the report that it shows."""
    report = report_of(profile)
    with path.open("wb") as file:
        pages.write(profile, report, file, pages.lanes_block(profile, report))
    return report


class ScanPage:
    """An opened page, and the report that it should show."""

    def __init__(self, page: Page, report: Report) -> None:
        self.page = page
        self.report = report

    def section(self, name: str) -> Locator:
        return self.page.locator(f"#{name}")

    def column(self, section: str, label: str) -> list[str]:
        """The texts of one column of a section's first table."""
        table = self.section(section).locator("table").first
        heads = table.locator("thead th").all_text_contents()
        rows = table.locator("tbody > tr:not(.detail)").all()
        return [row.locator("td").nth(heads.index(label)).inner_text() for row in rows]

    def sort(self, section: str, label: str) -> str | None:
        """Sorts by a column; returns the direction that is told to screen readers."""
        head = self.section(section).locator("table").first.locator("th", has_text=label).first
        head.locator("button").click()
        return head.get_attribute("aria-sort")

    def search(self, pattern: str) -> None:
        self.page.locator("#search").fill(pattern)

    def caption(self, section: str) -> str:
        return self.section(section).locator("caption").first.inner_text()

    @property
    def times(self) -> tuple[float, float]:
        """Begin and end of what the lanes show, in ms."""
        self.page.wait_for_timeout(80)
        label = self.page.locator("#lanes-canvas").get_attribute("aria-label") or ""
        found = re.search(r"from ([\d.,]+) µs to ([\d.,]+) µs", label)
        assert found, label
        begin, end = (float(text.replace(",", "")) / 1000 for text in found.groups())
        return begin, end

    def lane(self, row: int, part: float) -> tuple[float, float]:
        """A place in the window: of a row of the lanes, at this part of the time that is shown."""
        box = self.page.locator("#lanes-canvas").bounding_box()
        assert box
        gutter = min(230, box["width"] * 0.3)
        return box["x"] + gutter + part * (box["width"] - gutter), box["y"] + 20 + row * 18 + 10

    def color(self, canvas: str, x: float, y: float) -> tuple[int, ...]:
        """The colour of a canvas at a place in the window."""
        script = """([id, x, y]) => {
            const canvas = document.getElementById(id);
            const box = canvas.getBoundingClientRect();
            const copy = document.createElement("canvas");
            copy.width = copy.height = 1;
            const pen = copy.getContext("2d", { willReadFrequently: true });
            const at = (place) => -Math.round(place * devicePixelRatio);
            pen.drawImage(canvas, at(x - box.left), at(y - box.top));
            return Array.from(pen.getImageData(0, 0, 1, 1).data).slice(0, 3);
        }"""
        return tuple(self.page.evaluate(script, [canvas, x, y]))
