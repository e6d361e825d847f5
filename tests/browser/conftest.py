"""Pages of the browser (`chromium` of tests/conftest.py) for tests of what opens in one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from scan_pages import ScanPage, write_page
from stallscope.converters.flame.tree import build
from stallscope.converters.writers.base.options import WriteOptions
from stallscope.converters.writers.svg import writer as svg
from svg_graphs import Graph

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page
    from stallscope.converters.model import Profile


@pytest.fixture
def open_file(chromium: Browser) -> Iterator[Callable[..., Page]]:
    """``open_file(path, fragment="", **context options)`` → page.

    At the end of the test: no script error, no console message, no dialog, and no request but for the
    files that were opened.
    """
    contexts: list[Any] = []
    faults: list[str] = []
    opened: set[str] = set()

    def watch_request(url: str) -> None:
        if url.split("#", maxsplit=1)[0] not in opened:
            faults.append(f"request: {url}")

    def watch_dialog(dialog: Any) -> None:
        faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def open_file(path: Path, fragment: str = "", **options: Any) -> Page:
        opened.add(path.as_uri())
        context = chromium.new_context(**{"viewport": {"width": 1200, "height": 900}, **options})
        contexts.append(context)
        context.set_default_timeout(20_000)
        page: Page = context.new_page()
        page.on("request", lambda request: watch_request(request.url))
        page.on("dialog", watch_dialog)
        page.on("console", lambda message: faults.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: faults.append(f"error: {error}"))
        page.goto(path.as_uri() + fragment)
        return page

    open_file.opened = opened  # type: ignore[attr-defined]
    yield open_file
    for context in contexts:
        context.close()
    assert not faults


@pytest.fixture
def show_graph(open_file: Callable[..., Page], tmp_path: Path) -> Callable[..., Graph]:
    """``show_graph(profile, fragment="", wanted=None, **context options)``: the profile's SVG, opened."""

    def show(profile: Profile, fragment: str = "", wanted: WriteOptions | None = None, **options: Any) -> Graph:
        wanted = wanted or WriteOptions()
        path = tmp_path / "graph.svg"
        with path.open("wb") as file:
            svg.write(profile, file, wanted)
        return Graph(open_file(path, fragment, **options), build(profile, wanted))

    return show


@pytest.fixture
def show_scan(open_file: Callable[..., Page], tmp_path: Path) -> Callable[..., ScanPage]:
    """``show_scan(profile, fragment="", **context options)``: the page of a scan, opened."""

    def show(profile: Profile, fragment: str = "", **options: Any) -> ScanPage:
        path = tmp_path / "scan.html"
        report = write_page(profile, path)
        page = open_file(path, fragment, **options)
        page.wait_for_selector("html[data-ready]")
        return ScanPage(page, report)

    return show
