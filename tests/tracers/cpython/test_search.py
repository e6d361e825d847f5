"""Functions found in the memory of interpreters of every version that this machine has."""

from __future__ import annotations

import pytest
from pythons import inside_of, running
from stallscope.tracers.cpython import search
from stallscope.tracers.cpython.memory import memory_of
from stallscope.tracers.cpython.search import Found

TELL = """
space = {}
source = "def plain():\\n    def inner(): return 1\\n    return inner\\nclass C:\\n    def method(self): pass\\n"
exec(compile(source, "/tmp/searched.py", "exec"), space)
gone = {}
exec(compile("def gone(): return 'freed'", "/tmp/searched.py", "exec"), gone)
gone.clear()
blocks = [bytearray(1 << 20) for _ in range(8)]
print(json.dumps([id(space["plain"].__code__), id(space["C"].method.__code__), id(space["plain"]().__code__)]))
"""


def found_in(pid: int) -> list[Found]:
    with memory_of(pid) as memory:
        inside = inside_of(pid, memory, 0)
    pieces = search.search(pid, inside, lambda path: path == "/tmp/searched.py")
    return [found for piece in pieces for found in piece]


def test_functions_that_are_on_no_stack(python: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    with running(python, TELL) as (pid, codes):
        found = found_in(pid)
        monkeypatch.setattr(search, "_PIECE", 1 << 12)  # objects are cut
        assert {each.code for each in found_in(pid)} >= set(codes)
    names = {each.code: each.function.name.rpartition(".")[2] for each in found}
    assert [names[code] for code in codes] == ["plain", "method", "inner"]
    assert "gone" not in names.values()
    assert len(found) == len(names)


def test_a_process_that_is_gone() -> None:
    with running(("/usr/bin/python3",), "print(1)") as (pid, _), memory_of(pid) as memory:
        inside = inside_of(pid, memory, 0)
    with pytest.raises(OSError, match="No such"):
        list(search.search(pid, inside, lambda _: True))
