"""The page of results, and the tables that it is made from."""

from __future__ import annotations

from pathlib import Path
from pkgutil import resolve_name

import image
import in_guest
import lane
import plan
import pytest
import report
import results
from kernels import KERNELS
from results import Result

PAGE = Path(__file__).resolve().parents[2] / "docs" / "kernels.md"


def result(kernel: str, check: str, failure: str = "") -> Result:
    return Result(
        kernel,
        "6.1.0-50 (6.1.176-1)",
        check,
        "within 2 %",
        failure,
        6.5,
        31.4,
        1,
        "build/vm/log",
        "2026-11-23",
        "0123abc",
    )


def test_page_has_verdicts_figures_and_failures() -> None:
    page = report.page([result("6.1", "truth"), result("6.12", "truth", "too slow"), result("6.12", "load")])
    rows = [line for line in page.splitlines() if line.startswith("|")]
    assert rows[:4] == [
        "| Kernel | libbpf | bcc | stap | perf | eu-stack |",
        "|---|---|---|---|---|---|",
        "| 6.1 | ok (1 check) |  |  |  |  |",
        "| 6.12 | **failed**: 1 of 2 checks |  |  |  |  |",
    ]
    assert rows[4:] == [
        "| | 6.1 | 6.12 |",
        "|---|---|---|",
        "| every program in every shape |  | ok (31 s) |",
        "| times and counts | ok (31 s) | **failed** |",
    ]
    assert "## 6.1: Debian 12" in page
    assert "- times and counts: within 2 % (2026-11-23, 0123abc)" in page
    assert "a job starts after 6.5 to 6.5 s" in page


def test_engines_column_says_what_is_refused() -> None:
    page = report.page([result("5.10", "refused"), result("5.10", "bcc"), result("5.10", "perf", "killed")])
    assert "| 5.10 | refused | ok (1 check) |  | **failed**: 1 of 1 checks |  |" in page


def test_a_page_keeps_what_is_not_run_anew() -> None:
    before = [result("6.1", "wall"), result("6.1", "truth", "too slow: 3 s"), result("7.2", "load")]
    kept = report.kept(report.page(before))
    names = ("kernel", "check", "version", "failure", "date", "commit")
    assert {tuple(getattr(r, n) for n in names) for r in kept} == {tuple(getattr(r, n) for n in names) for r in before}
    assert [each.seconds for each in kept if each.ok] == [31, 31]
    assert {line for line in report.page(kept).splitlines() if line[:1] in "-|"} == {
        line for line in report.page(before).splitlines() if line[:1] in "-|"
    }


def test_title_that_begins_like_another_one_is_kept() -> None:
    checks = ["stap_clock", "stap_deep", "stap_killed", "nvidia_stap"]
    kept = report.kept(report.page([result("6.1", check) for check in checks]))
    assert sorted(each.check for each in kept) == sorted(checks)


def test_every_check_of_an_engine_exists() -> None:
    assert set(plan.ALL) >= {check for checks in plan.ENGINES.values() for check in checks} | set(plan.REFUSALS)


def test_results_are_kept_each_by_itself(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(results, "FOLDER", tmp_path / "results")
    assert results.latest("6.1", "truth") is None
    results.save(result("6.1", "truth"))
    results.save(result("6.1", "truth", "too slow"))
    results.save(result("6.1", "load"))
    assert results.latest("6.1", "truth") == result("6.1", "truth", "too slow")
    assert results.latest("6.1", "load") == result("6.1", "load")


def test_every_check_has_a_function_a_place_and_a_title() -> None:
    named = set(plan.ALL)
    assert named == set(in_guest.CHECKS) | set(plan.NO_SYSTEMTAP) == set(report.TITLES)
    assert all(callable(resolve_name(function)) for function in in_guest.CHECKS.values())


def test_page_in_docs_is_of_these_kernels_and_nothing_of_the_short_set_failed() -> None:
    """`make vm-test-all` writes it."""
    page = PAGE.read_text()
    head = next(line for line in page.splitlines() if line.startswith("| | "))
    assert [cell.strip() for cell in head.strip("|").split("|")][1:] == [kernel.name for kernel in KERNELS]
    assert all(f"| {report.TITLES[check]} |" in page for check in (*plan.SHORT, *plan.REFUSED))
    for check in (*plan.SHORT, *plan.REFUSED):
        (row,) = [line for line in page.splitlines() if line.startswith(f"| {report.TITLES[check]} |")]
        assert "**failed**" not in row


def test_short_set_has_the_kernels_that_ci_boots() -> None:
    assert {kernel for kernel, _ in plan.short_guests()} == {"6.1", "6.12", "7.2"}


def test_every_check_of_the_short_set_is_in_one_guest() -> None:
    planned = [(kernel, check) for kernel, checks in plan.short_guests() for check in checks]
    wanted = [(kernel.name, check) for kernel in KERNELS for check in plan.checks_of(kernel, short=True)]
    assert sorted(planned) == sorted(wanted)


@pytest.mark.parametrize(
    "log", ["[1.0] WARNING: CPU: 0 PID: 1 at kernel/x.c", "[2.0] BUG: unable to handle", "Call Trace:"]
)
def test_trouble_in_the_kernels_log_is_seen(log: str) -> None:
    assert lane._TROUBLE.search(log)
    assert not lane._TROUBLE.search("[0.5] 9pnet: Limiting 'msize' to 512000\n[0.6] rcu: Preemptible hierarchical RCU")


def test_image_that_is_no_kernel_is_told() -> None:
    with pytest.raises(image.ImageError, match="compressed by none of"):
        image._uncompressed(b"MZ" + bytes(4096))
