"""The compiled programs: they must suit kernels that know little. They are loaded in tests/live/test_bcc.py."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers.bcc_compiler.place import find
from stallscope.tracers.engines.bcc import programs
from stallscope.tracers.engines.bcc.source import SAMPLE, TRACEPOINTS, Choice
from stallscope.tracers.kernel.tracepoint_format import Format

INSTRUCTION = struct.Struct("<BBhi")
HELPERS = {
    "map_lookup_elem": 1,
    "map_update_elem": 2,
    "map_delete_elem": 3,
    "ktime_get_ns": 5,
    "get_current_pid_tgid": 14,
    "get_current_comm": 16,
    "get_stack": 67,
}
"""All older than 4.18, but the last one, which that brought; none needs type information."""
MOST_INSTRUCTIONS = 4096
"""Number of instructions of a program, at most, before 5.2."""


@pytest.fixture
def code(
    require: Callable[[bool, str], None], formats: dict[str, Format], monkeypatch: pytest.MonkeyPatch
) -> dict[str, list[tuple[int, int, int, int]]]:
    """Instructions by program."""
    try:
        find()
    except StallscopeError as error:
        require(False, str(error))
    monkeypatch.setattr(programs, "read_format", formats.__getitem__)
    made = programs.make(Choice(samples=True))
    assert made.letters[1] == "S"
    return {name: list(INSTRUCTION.iter_unpack(text)) for name, text in made.code.items()}


def followers(code: list[tuple[int, int, int, int]], at: int) -> list[int]:
    """Places where the program can go on."""
    operation, _, offset, _ = code[at]
    if operation == 0x18:
        return [at + 2]
    if operation & 7 not in (5, 6) or operation == 0x85:
        return [at + 1]
    if operation == 0x95:
        return []
    return [at + 1 + offset] if operation == 0x05 else [at + 1, at + 1 + offset]


def has_loop(code: list[tuple[int, int, int, int]]) -> bool:
    done, path = set[int](), set[int]()
    stack = [(0, iter(followers(code, 0)))]
    path.add(0)
    while stack:
        at, rest = stack[-1]
        following = next(rest, None)
        if following is None:
            path.discard(at)
            done.add(at)
            stack.pop()
        elif following in path:
            return True
        elif following not in done:
            path.add(following)
            stack.append((following, iter(followers(code, following))))
    return False


def test_old_kernels_take_them(code: dict[str, list[tuple[int, int, int, int]]]) -> None:
    assert set(code) == {*TRACEPOINTS, SAMPLE}
    called = set()
    for name, text in code.items():
        assert len(text) <= MOST_INSTRUCTIONS, name
        assert not has_loop(text), name
        for operation, registers, _, number in text:
            if operation == 0x85:
                assert registers >> 4 == 0, "a call of a helper, not of a function or of the kernel"
                called.add(number)
            if operation == 0x18:
                assert registers >> 4 in (0, 1), "a number or a map"
    assert called == set(HELPERS.values())


def test_a_loop_would_be_found() -> None:
    assert has_loop([(0xB7, 0, 0, 0), (0x15, 0, 1, 0), (0x05, 0, -2, 0), (0x95, 0, 0, 0)])
    assert not has_loop([(0x05, 0, 1, 0), (0x95, 0, 0, 0), (0x05, 0, -2, 0)])
