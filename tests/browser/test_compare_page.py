"""The page of a comparison in the browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from compare_profiles import with_steps
from scans import scanned_host
from stallscope.converters.scan.compare import page as pages
from stallscope.converters.scan.compare.comparing import compare
from stallscope.converters.scan.compare.graph import graph_of

if TYPE_CHECKING:
    from playwright.sync_api import Page


@pytest.fixture
def show(open_file: Callable[..., Page], tmp_path: Path) -> Callable[..., Page]:
    def show(**options: Any) -> Page:
        before, after = (with_steps(scanned_host(events=False), load_ms=ms, pid=100) for ms in (30, 60))
        path = tmp_path / "diff.html"
        with path.open("wb") as file:
            pages.write(compare([before], [after]), graph_of([before], [after]), file)
        page = open_file(path, **options)
        page.wait_for_selector("html[data-ready]")
        return page

    return show


def test_the_sentence_the_tables_and_the_graph(show: Callable[..., Page]) -> None:
    page = show()
    assert "takes 75.0 ms instead of 45.0 ms (+67 %)" in page.locator("#answer").inner_text()
    table = page.locator("#compared table").first
    assert table.locator("thead th").all_inner_texts() == ["Before", "After", "Change", "What"]
    assert table.locator("tbody tr").nth(1).locator("td").all_inner_texts() == ["30.00", "60.00", "+30.00"]
    assert table.locator("tbody tr th[scope=row]").count() == table.locator("tbody tr").count()
    box = page.locator("#canvas").bounding_box()
    assert box
    assert box["width"] > 500
    page.locator("#search").fill("read")
    page.wait_for_function("document.getElementById('result').textContent !== ''")


def test_dark_and_printed(show: Callable[..., Page]) -> None:
    light, dark = (
        show(color_scheme=scheme).locator("#answer").evaluate("(it) => getComputedStyle(it).color")
        for scheme in ("light", "dark")
    )
    assert light != dark
    page = show()
    page.emulate_media(media="print")
    assert page.locator("#compared").is_visible()
