"""Stacks with Python functions."""

from __future__ import annotations

import pytest
from stallscope.converters.model import Frame
from stallscope.tracers.cpython.functions import Function
from stallscope.tracers.engines.ebpf.capture import PythonFunctions
from stallscope.tracers.engines.ebpf.pythonic import PLAIN, Python, PythonStacks, python_first
from stallscope.tracers.kernel import python

CODE = 0x7F00_0000_1000
WORDS = (python.PROCESS << 56 | 1, python.CODE << 56 | CODE, 9 << 32 | 2 << 1 | 1)
FUNCTIONS = PythonFunctions({(CODE, 9): Function("work", "/a.py", 7, (3, 8), b"\x02\x01")}, are_there=True)


def stacks(how: Python = PLAIN, functions: PythonFunctions = FUNCTIONS) -> PythonStacks:
    return PythonStacks(functions, how)


def test_split() -> None:
    assert stacks().split((1, 2, *WORDS)) == ((1, 2), WORDS)
    assert stacks().split((1, 2)) == ((1, 2), ())
    assert stacks().split(()) == ((), ())
    assert stacks(functions=PythonFunctions({}, are_there=True)).split((1, *WORDS)) == ((1,), WORDS)


def test_line_of_what_runs() -> None:
    native = (Frame("_PyEval_EvalFrameDefault"), Frame("read"))
    (function, read) = stacks().joined(native, WORDS, whole=True)
    assert function == Frame("work", "python", file="/a.py", line=8)
    assert read.name == "read"
    assert stacks().joined(native, (), whole=True) == native
    assert stacks(Python(only=True)).joined(native, WORDS, whole=True) == (function,)
    names = [frame.name for frame in stacks(Python(machinery=True)).joined(native, WORDS, whole=True)]
    assert names == ["_PyEval_EvalFrameDefault", "work", "read"]


def test_function_without_a_name() -> None:
    """Another one had its address, or its checksum."""
    made = stacks()
    for second in (8 << 32 | 1, 9 << 32 | 1, 9 << 32 | 1):
        words = (WORDS[0], WORDS[1] + (second >> 32 == 9), second)
        assert made.joined((), words, whole=True) == (Frame("[Python function]", "python"),)
    made.joined((), WORDS, whole=True)
    assert made.nameless == {(CODE, 8), (CODE + 1, 9)}


@pytest.mark.parametrize(("end", "name"), [(1, "[more Python functions]"), (2, "[Python not readable]")])
def test_functions_that_are_missing(end: int, name: str) -> None:
    found = stacks().joined((), (*WORDS, python.CUT << 56 | end), whole=True)
    assert [frame.name for frame in found] == [name, "work"]


def test_cut_stacks_begin_like_complete_ones() -> None:
    found = python_first({1: (10, 11, *WORDS), 2: (10, 11, 12, *WORDS), 3: (10,)})
    assert found[2][: len(found[1])] == found[1]
    assert found[3] == (10,)
    plain = {3: (10,)}
    assert python_first(plain) is plain
