"""The page of results, and the tables that it is made from."""

from __future__ import annotations

from pathlib import Path

import image
import in_guest
import lane
import pytest
import report
from kernels import KERNELS
from lane import Result

PAGE = Path(__file__).resolve().parents[2] / "docs" / "kernels.md"


def result(kernel: str, check: str, failure: str = "") -> Result:
    return Result(kernel, "6.1.0-50 (6.1.176-1)", check, "within 2 %", failure, 6.5, 31.4, 1, "build/vm/log")


def test_page_has_verdicts_figures_and_failures() -> None:
    page = report.page([result("6.1", "truth"), result("6.12", "truth", "too slow"), result("6.12", "load")])
    rows = [line for line in page.splitlines() if line.startswith("|")]
    assert rows == [
        "| | 6.1 | 6.12 |",
        "|---|---|---|",
        "| every program in every shape |  | ok (31 s) |",
        "| times and counts | ok (31 s) | **failed** |",
    ]
    assert "## 6.1: Debian 12" in page
    assert "- times and counts: within 2 %" in page
    assert "a job starts after 6.5 to 6.5 s" in page


def test_every_check_has_a_function_a_place_and_a_title() -> None:
    named = set(lane.SHORT + lane.LONG + lane.REFUSED)
    assert named == set(in_guest.CHECKS) == set(report.TITLES)


def test_page_in_docs_is_of_these_kernels_and_nothing_of_the_short_set_failed() -> None:
    """`make vm-test-all` writes it."""
    page = PAGE.read_text()
    head = next(line for line in page.splitlines() if line.startswith("| | "))
    assert [cell.strip() for cell in head.strip("|").split("|")][1:] == [kernel.name for kernel in KERNELS]
    assert all(f"| {report.TITLES[check]} |" in page for check in (*lane.SHORT, *lane.REFUSED))
    for check in (*lane.SHORT, *lane.REFUSED):
        (row,) = [line for line in page.splitlines() if line.startswith(f"| {report.TITLES[check]} |")]
        assert "**failed**" not in row


def test_short_set_has_the_kernels_that_ci_boots() -> None:
    assert {kernel for kernel, _ in lane.short_set()} == {"6.1", "6.12", "7.2"}


@pytest.mark.parametrize(
    "log", ["[1.0] WARNING: CPU: 0 PID: 1 at kernel/x.c", "[2.0] BUG: unable to handle", "Call Trace:"]
)
def test_trouble_in_the_kernels_log_is_seen(log: str) -> None:
    assert lane._TROUBLE.search(log)
    assert not lane._TROUBLE.search("[0.5] 9pnet: Limiting 'msize' to 512000\n[0.6] rcu: Preemptible hierarchical RCU")


def test_image_that_is_no_kernel_is_told() -> None:
    with pytest.raises(image.ImageError, match="compressed by none of"):
        image._uncompressed(b"MZ" + bytes(4096))
