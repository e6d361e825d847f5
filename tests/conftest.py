"""Fixtures for all tests."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

# How long something takes says more of the machine than of the code.
settings.register_profile("shared machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared machine")

# The tests write in folders of their own; a test that is about sudo sets them.
for _name in ("SUDO_UID", "SUDO_GID", "SUDO_COMMAND"):
    os.environ.pop(_name, None)


@pytest.fixture(scope="session", autouse=True)
def _survives_breakpoints() -> None:
    """SIGTRAP does not end the tests: see docs/steps.md on virtual machines."""
    signal.signal(signal.SIGTRAP, lambda *_: None)


def _capabilities() -> list[str]:
    with open("/proc/thread-self/status") as file:
        return [line for line in file if line.startswith(("Cap", "NoNewPrivs"))]


@pytest.fixture(autouse=True)
def _keeps_its_rights() -> Iterator[None]:
    """A trace gives up what it does not need: one in this process would take it from all tests that follow."""
    before = _capabilities()
    yield
    assert _capabilities() == before


@pytest.fixture(scope="session")
def require() -> Callable[[bool, str], None]:
    """``require(condition, reason)``: skips the test where it cannot run, fails it with REQUIRE_LIVE=1."""

    def check(condition: bool, reason: str) -> None:
        if condition:
            return
        if os.environ.get("REQUIRE_LIVE") == "1":
            pytest.fail(f"REQUIRE_LIVE=1, but {reason}", pytrace=False)
        pytest.skip(reason)

    return check


@pytest.fixture
def open_path() -> Iterator[Path]:
    """A new folder that everybody may use: pytest's own are closed to helpers without rights."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        path.chmod(0o777)
        yield path


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """SIGINT is a KeyboardInterrupt, also where the tests were started with it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def chromium(require: Callable[[bool, str], None]) -> Iterator[Browser]:
    """The browser of the distribution, driven through playwright."""
    require(CHROMIUM.exists(), f"there is no {CHROMIUM}: apt-get install chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        require(False, "playwright is not installed: pip install -e .[test]")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()
