"""The page of versions: how it is made, and that the other pages agree with it."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import debian_python
import pytest
import python_versions
import version_page
from pythons import NEWEST, OLDEST
from version_page import TITLES, Interpreter, Result, Run

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "python-versions.md"
VERSION = re.compile(r"\b3\.(?:[89]|1[0-9])\.\d+\b")
STACKS, STEPS = "test_python.py::test_functions", "test_python_steps.py::test_each_call_is_a_step"
BUILD = ("GCC 12.2.0", True, "Debian 12")


def made(*results: Result) -> str:
    interpreters = [Interpreter("3.8.18", *BUILD), Interpreter("3.14.10", *BUILD)]
    run = Run("23 November 2026", "0123456789ab", "6.1.0", 2, (0.5, 2.0), "0.4.3", interpreters, list(results))
    assert Run.of(asdict(run)) == run
    return version_page.page(run)


def cells(page: str, title: str) -> list[str]:
    """The cells of the first row with this title, without the title."""
    begin = f"| {title} |" if title else "| |"
    row = next(line for line in page.splitlines() if line.startswith(begin))
    return [cell.strip() for cell in row.removeprefix(begin).removesuffix("|").split("|")]


def test_page_has_verdicts_by_version() -> None:
    page = made(
        Result(STACKS, "3.8.18", "passed", "", 30),
        Result(STACKS, "3.14.10", "failed", "AssertionError: `a` != b", 60),
        Result(STEPS, "3.8.18", "passed"),
        Result(STEPS, "3.8.18", "passed"),
        Result(STEPS, "3.14.10", "passed"),
        Result(STEPS, "3.14.10", "skipped", "no root"),
    )
    assert cells(page, "") == ["3.8.18", "3.14.10"]
    assert cells(page, TITLES[STACKS]) == ["passed", "**failed**"]
    assert cells(page, TITLES[STEPS]) == ["2 passed", "**1 of 2 not run**"]
    assert cells(page, TITLES["test_gil.py::test_holder"]) == ["", ""]
    assert f"- {TITLES[STACKS]}, 3.14.10: **failed**: `AssertionError: 'a' != b`" in page
    assert "Run on 23 November 2026 at commit 0123456789ab, with Linux 6.1.0 and 2 cores, in 2 minutes" in page
    assert "| 3.8.18 | Debian 12 | GCC 12.2.0 | libpython |" in page
    assert "## What did not pass" not in made(Result(STACKS, "3.8.18", "passed"))


def test_long_failures_are_cut() -> None:
    assert len(version_page._plain("x" * 1000)) < 130


def test_each_test_of_the_page_is_there_and_has_a_title_of_its_own() -> None:
    for test in TITLES:
        file, _, name = test.partition("::")
        assert f"\ndef {name}(" in (ROOT / "tests" / "live" / file).read_text(), test
    assert len(set(TITLES.values())) == len(TITLES)


def test_each_test_with_a_version_is_of_the_page() -> None:
    """Pytest ends with an error if one has no title."""
    code = (
        "import sys, pytest, python_versions as p; c = p.Collected(); "
        "s = pytest.main(['--collect-only', '-qq', '-p', 'no:cacheprovider', 'tests/live'], plugins=[c]); "
        "print(len(c._tests), c.untitled, file=sys.stderr); sys.exit(s)"
    )
    folders = ":".join(f"tests/{folder}" for folder in ("versions", "vm", "workloads"))
    command = ["env", f"PYTHONPATH={folders}", sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    collected, untitled = done.stderr.split(maxsplit=1)
    assert int(collected) > len(TITLES)
    assert untitled == "[]\n"


def test_where_an_interpreter_is_from_names_no_folder(tmp_path: Path) -> None:
    fetched = debian_python.command(python_versions.UNPACKED).split()
    assert python_versions.source_of(tuple(fetched)) == "Debian sid, with its own C library"
    assert python_versions.source_of(("/root/.pyenv/versions/3.8.18/bin/python3",)) == "pyenv"
    assert str(tmp_path) not in python_versions.source_of((f"{tmp_path}/bin/python3",))


def test_page_in_docs_has_each_minor_version_and_their_stacks_passed() -> None:
    """`make python-versions` writes it."""
    page = PAGE.read_text()
    versions = cells(page, "")
    assert {tuple(map(int, version.split(".")[:2])) for version in versions} == {
        (3, minor) for minor in range(OLDEST[1], NEWEST[1] + 1)
    }
    assert cells(page, TITLES[STACKS]) == ["passed"] * len(versions)
    for test, title in TITLES.items():
        assert len(cells(page, title)) == len(versions), test
    assert str(Path.home()) not in page
    assert "/tmp" not in page


@pytest.mark.parametrize("name", sorted(path.name for path in PAGE.parent.glob("*.md")))
def test_versions_that_a_page_names_are_in_it(name: str) -> None:
    """The page has all versions that others name, but for those of other programs' output, in indented blocks."""
    told = [line for line in (PAGE.parent / name).read_text().splitlines() if not line.startswith("    ")]
    assert set(VERSION.findall("\n".join(told))) <= set(cells(PAGE.read_text(), ""))


@pytest.mark.parametrize("name", ["python.md", "steps.md", "README.md"])
def test_page_is_linked(name: str) -> None:
    assert "(python-versions.md)" in (PAGE.parent / name).read_text()
