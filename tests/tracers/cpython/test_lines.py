"""Lines of instructions, against what the interpreters say of their own tables."""

from __future__ import annotations

import json
import subprocess

import pytest
from pythons import interpreters
from stallscope.tracers.cpython.layouts import Version
from stallscope.tracers.cpython.lines import line_of

TELL = """
import argparse, dis, json, sys, types
def walk(code):
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from walk(const)
def lines(code):
    if hasattr(code, "co_lines"):
        return [(begin, line or 0) for begin, end, line in code.co_lines() if end > begin]
    return list(dis.findlinestarts(code))
source = open(argparse.__file__).read() + "\\n" * 300 + "def far():\\n    return (\\n" + "\\n" * 200 + "1 + x)\\n"
for code in walk(compile(source, "argparse.py", "exec")):
    table = code.co_linetable if sys.version_info >= (3, 10) else code.co_lnotab
    print(json.dumps([code.co_firstlineno, table.hex(), lines(code)]))
"""


@pytest.mark.parametrize("version", list(interpreters()))
def test_lines_of_a_module(version: str) -> None:
    said = subprocess.run([*interpreters()[version], "-c", TELL], capture_output=True, text=True, check=True).stdout
    major, minor, _ = map(int, version.split("."))
    checked = 0
    for text in said.splitlines():
        first, table, lines = json.loads(text)
        for begin, line in lines:
            checked += 1
            assert line_of((major, minor), bytes.fromhex(table), first, begin) == (line or first)
    assert checked > 1000


@pytest.mark.parametrize("version", [(3, 8), (3, 10), (3, 14)])
def test_instruction_outside_of_the_table(version: Version) -> None:
    assert line_of(version, b"", 7, -1) == 7
    assert line_of(version, b"", 7, 10) == 7


@pytest.mark.parametrize("version", [(3, 8), (3, 10), (3, 11)])
def test_damaged_tables(version: Version) -> None:
    for table in (b"\xff", b"\x01", b"\xf0\x7f\x7f", b"\x80" * 9, bytes(range(256))):
        assert isinstance(line_of(version, table, 1, 5), int)
