"""Functions read from the memory of interpreters of every version that this machine has."""

from __future__ import annotations

import pytest
from pythons import layout_in, running
from stallscope.tracers.cpython import functions
from stallscope.tracers.cpython.functions import read_function
from stallscope.tracers.cpython.layouts import Layout
from stallscope.tracers.cpython.memory import Memory, memory_of

TELL = """
space = {}
source = "\\n\\ndef plain():\\n    def inner(): return 1\\n    return inner\\n"
source += "def gr\\xfc\\xdfe(): pass\\ndef \\u540d\\u524d(): pass"
exec(compile(source, "/tmp/m\\xf6dul \\U0001f600.py", "exec"), space)
made = [space["plain"], space["plain"](), space["gr\\xfc\\xdfe"], space["\\u540d\\u524d"]]
print(json.dumps([id(function.__code__) for function in made]))
"""
SALT = 7


def checksum_in(memory: Memory, layout: Layout, code: int) -> int:
    return functions._Head.read(memory, layout, code).checksum(memory, layout, SALT)


def test_names(python: tuple[str, ...]) -> None:
    with running(python, TELL) as (pid, codes), memory_of(pid) as memory:
        layout = layout_in(pid, memory)
        found = [read_function(memory, layout, code, checksum_in(memory, layout, code), SALT) for code in codes]
        inner = "plain.<locals>.inner" if layout.code_qualified else "inner"
        assert [function and function.name for function in found] == ["plain", inner, "grüße", "名前"]
        assert {function and function.file for function in found} == {"/tmp/mödul 😀.py"}
        assert [function and function.first_line for function in found] == [3, 4, 6, 7]
        assert [function and function.line(-1) for function in found] == [3, 4, 6, 7]


def test_another_function_at_its_place(python: tuple[str, ...]) -> None:
    with running(python, TELL) as (pid, codes), memory_of(pid) as memory:
        layout = layout_in(pid, memory)
        sums = [checksum_in(memory, layout, code) for code in codes]
        assert len(set(sums)) == len(codes)
        assert read_function(memory, layout, codes[0], sums[1], SALT) is None
        assert read_function(memory, layout, codes[0], sums[0], SALT + 1) is None
        with pytest.raises(OSError, match=r"address|memory|error"):
            read_function(memory, layout, 8, sums[0], SALT)


def test_it_changes_while_it_is_read(python: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    with running(python, TELL) as (pid, codes), memory_of(pid) as memory:
        layout = layout_in(pid, memory)
        wanted = checksum_in(memory, layout, codes[0])
        head = functions._Head.read
        places = iter([codes[0], codes[1]])
        monkeypatch.setattr(functions._Head, "read", lambda memory, layout, _: head(memory, layout, next(places)))
        assert read_function(memory, layout, codes[0], wanted, SALT) is None
