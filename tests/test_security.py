"""SECURITY.md promises nothing that no test shows."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from test_layout import ROOT

PAGE = ROOT / "SECURITY.md"
_ROW = re.compile(r"^\| (?P<promise>[^|]+) \| (?P<tests>`[^|]+`) \|$", re.MULTILINE)
_TEST = re.compile(r"`(?P<path>tests/[\w/]+\.py)(?:::(?P<name>\w+))?`")


def promises() -> list[tuple[str, str]]:
    """The rows of the table: what is promised, and the tests that show it."""
    return [(row["promise"].strip(), row["tests"]) for row in _ROW.finditer(PAGE.read_text())]


def functions(path: Path) -> set[str]:
    """The names of the functions of a module."""
    return {each.name for each in ast.walk(ast.parse(path.read_text())) if isinstance(each, ast.FunctionDef)}


def test_the_table_is_read() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ") and "`tests/" in line]
    assert len(promises()) == len(rows) > 20


@pytest.mark.parametrize(("promise", "tests"), promises(), ids=[promise[:40] for promise, _ in promises()])
def test_each_promise_names_tests_that_exist(promise: str, tests: str) -> None:
    found = list(_TEST.finditer(tests))
    assert found, f"no test is named for {promise!r}"
    assert not _TEST.sub("", tests).strip(" ,"), f"{tests!r} has more than tests"
    for test in found:
        path = ROOT / test["path"]
        assert path.is_file(), f"{test['path']} does not exist"
        if test["name"]:
            assert test["name"] in functions(path), f"{test['path']} has no {test['name']}()"
            assert test["name"].startswith("test_")
        else:
            assert any(name.startswith("test_") for name in functions(path))
