"""Keys of the JSON of trace-scan: docs/scan-json.md has each of them, and no others."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from stallscope import converters

ROOT = Path(__file__).resolve().parents[3]
WRITERS = (
    *Path(converters.__path__[0], "scan").resolve().rglob("*.py"),
    *(Path(converters.__path__[0], "facts", name) for name in ("pools.py", "teams.py")),
)
PAGE = ROOT / "docs" / "scan-json.md"
NAMED_TUPLES = {"rate", "share", "kind", "frames", "kernel", "process", "rank", "name", "before", "after"}
"""Fields that ``_asdict()`` of a comparison's rows writes."""
FUNCTIONS = re.compile(r"to_json|\w*_json|_cost|_shed")


def written() -> dict[str, str]:
    """Keys that the functions for JSON write, with the file of each."""
    files = [path for path in WRITERS if "page" not in path.parts]
    return {key: str(path) for path in files for key in _keys(ast.parse(path.read_text()))}


def _keys(tree: ast.Module) -> Iterator[str]:
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and FUNCTIONS.fullmatch(function.name):
            for node in ast.walk(function):
                if isinstance(node, ast.Dict):
                    yield from (key.value for key in node.keys if isinstance(key, ast.Constant))


def documented() -> set[str]:
    """Words between backticks in the tables of the page."""
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("|")]
    return {word for row in rows for word in re.findall(r"`([a-z][a-z0-9_]*)`", row)}


def keys_documented() -> set[str]:
    """Words in the first column of the tables."""
    rows = [line.split("|")[1] for line in PAGE.read_text().splitlines() if line.startswith("|")]
    return {word for row in rows for word in re.findall(r"`([a-z][a-z0-9_]*)`", row)}


def test_each_key_is_described() -> None:
    missing = {key: path for key, path in written().items() if key not in documented()}
    assert not missing


def test_what_is_described_is_written() -> None:
    assert len(written()) > 100
    assert not keys_documented() - written().keys() - NAMED_TUPLES
