"""Functions read from the memory of interpreters of every version that this machine has."""

from __future__ import annotations

import pytest
from pythons import inside_of, running
from stallscope.tracers.cpython import functions
from stallscope.tracers.cpython.functions import Function, Inside, is_alive, read_function, read_functions
from stallscope.tracers.cpython.memory import Memory, Readable, memory_of
from stallscope.tracers.outside.client import CLIENT

TELL = """
space = {}
source = "\\n\\ndef plain():\\n    def inner(): return 1\\n    return inner\\n"
source += "def gr\\xfc\\xdfe(): pass\\ndef \\u540d\\u524d(): pass"
exec(compile(source, "/tmp/m\\xf6dul \\U0001f600.py", "exec"), space)
made = [space["plain"], space["plain"](), space["gr\\xfc\\xdfe"], space["\\u540d\\u524d"]]
print(json.dumps([id(function.__code__) for function in made]))
"""
SALT = 7


def checksum_in(memory: Memory, inside: Inside, code: int) -> int:
    head = functions._Head.read(memory, inside, code)
    assert head
    return head.checksum(memory, inside)


def test_names(python: tuple[str, ...]) -> None:
    with running(python, TELL) as (pid, codes), memory_of(pid) as memory:
        inside = inside_of(pid, memory, SALT)
        found = [read_function(memory, inside, code, checksum_in(memory, inside, code)) for code in codes]
        inner = "plain.<locals>.inner" if inside.layout.code_qualified else "inner"
        assert [function and function.name for function in found] == ["plain", inner, "grüße", "名前"]
        assert {function and function.file for function in found} == {"/tmp/mödul 😀.py"}
        assert [function and function.first_line for function in found] == [3, 4, 6, 7]
        assert [function and function.line(-1) for function in found] == [3, 4, 6, 7]


def test_another_function_at_its_place(python: tuple[str, ...]) -> None:
    with running(python, TELL) as (pid, codes), memory_of(pid) as memory:
        inside = inside_of(pid, memory, SALT)
        sums = [checksum_in(memory, inside, code) for code in codes]
        assert len(set(sums)) == len(codes)
        assert read_function(memory, inside, codes[0], sums[1]) is None
        assert read_function(memory, inside._replace(salt=SALT + 1), codes[0], sums[0]) is None
        with pytest.raises(OSError, match=r"address|memory|error"):
            read_function(memory, inside, 8, sums[0])


def test_it_changes_while_it_is_read(python: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    with running(python, TELL) as (pid, codes), memory_of(pid) as memory:
        inside = inside_of(pid, memory, SALT)
        wanted = checksum_in(memory, inside, codes[0])
        head = functions._Head.read
        places = iter([codes[0], codes[1]])
        monkeypatch.setattr(functions._Head, "read", lambda memory, inside, _: head(memory, inside, next(places)))
        assert read_function(memory, inside, codes[0], wanted) is None


def test_many_at_once(python: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    with running(python, TELL) as (pid, codes), memory_of(pid) as memory:
        inside = inside_of(pid, memory, SALT)
        sums = [checksum_in(memory, inside, code) for code in codes]
        alone = [read_function(memory, inside, *each) for each in zip(codes, sums, strict=True)]
        asked = []
        ask = CLIENT.ask
        monkeypatch.setattr(CLIENT, "ask", lambda *words, **more: asked.append(words) or ask(*words, **more))
        wanted = [*zip(codes, sums, strict=True), (codes[0], sums[1]), (8, sums[0]), (codes[0] + 16, sums[0])]
        assert read_functions(memory, inside, wanted) == [*alone, None, None, None]
        assert all(alone)
        assert len(asked) < 12, "four, and some for what is not there"


def test_one_of_many_changes_while_they_are_read(python: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    with running(python, TELL) as (pid, codes), memory_of(pid) as memory:
        inside = inside_of(pid, memory, SALT)
        wanted = [(code, checksum_in(memory, inside, code)) for code in codes]
        draft = functions._draft

        def other(memory: Readable, inside: Inside, code: int, wanted: int) -> tuple[functions._Head, Function] | None:
            found = draft(memory, inside, code, wanted)
            return (found[0]._replace(line=99), found[1]) if found and code == codes[1] else found

        monkeypatch.setattr(functions, "_draft", other)
        found = read_functions(memory, inside, wanted)
        assert [each is None for each in found] == [False, True, False, False]


def test_freed_objects(python: tuple[str, ...]) -> None:
    """A free block begins with the address of another one, or with 0; malloc() has its own mark behind that."""
    with running(python, TELL) as (pid, codes), memory_of(pid) as memory:
        inside = inside_of(pid, memory, SALT)
        data, version = memory.read(codes[0], 16), inside.layout.version
        assert is_alive(data, version, inside.code_type)
        assert is_alive(data, version, 0)
        assert not is_alive(data, version, inside.text_type)
        for first in (0, 0x7F12_3456_7890, 0x5555_1234_5670):
            assert not is_alive(first.to_bytes(8, "little") + data[8:], version, inside.code_type)
        other = inside._replace(code_type=inside.text_type)
        assert read_function(memory, other, codes[0], checksum_in(memory, inside, codes[0])) is None
