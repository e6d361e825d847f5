"""Python functions around calls. With real calls: tests/live/test_around.py."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from scheduling_traces import rows
from stallscope.converters.model import Frame, Stack, around
from stallscope.converters.model.around import CATEGORY, drawn_calls
from stallscope.converters.model.scheduling import CALL, NO_STACK, OPEN, THREAD, CallName, Scheduling, Threads

Call = tuple[int, int, int, int, int]
"""begin, end, thread, stack, level."""
Drawn = tuple[str, int, int]
"""Name, begin and end."""
C = Frame("PyObject_Call")


def stack(*names: str) -> Stack:
    """``f:12`` is the function f at line 12."""
    functions = (name.partition(":") for name in names)
    return (C, *(Frame(name, "python", file="t.py", line=int(line or 1)) for name, _, line in functions), C)


def drawn(stacks: list[Stack], *calls: Call, tids: tuple[int, ...] = (7,)) -> dict[int, list[Drawn]]:
    """The functions around the calls, by row of the thread."""
    begin, end, tid, of, level = zip(*calls, strict=True)
    table = rows(CALL, begin=begin, end=end, tid=tid, stack=of, level=level)
    threads = rows(THREAD, tid=tids, tgid=tids)
    made = Scheduling(1_000, threads=threads, calls=table, call_names=[CallName("f", "ioctl")], stacks=stacks)
    found, names = drawn_calls(made, Threads(threads))
    assert [names[i] for i in found["name"][found["level"] >= 0]] == [("f", "ioctl")] * len(calls)
    check_nested(found.tolist())
    of_thread: dict[int, list[Drawn]] = {}
    for first, last, row, name, depth in found.tolist():
        if depth < 0:
            assert names[name].category == CATEGORY
            of_thread.setdefault(row, []).append((names[name].name, first, last))
    return of_thread


def check_nested(spans: list[tuple[int, int, int, int, int]]) -> None:
    """Checks that of two spans of a thread, one is inside the other, or after it."""
    for thread in {span[2] for span in spans}:
        opened: list[tuple[int, int]] = []
        for begin, end, _, _, level in sorted((s for s in spans if s[2] == thread), key=lambda s: (s[0], s[4])):
            while opened and opened[-1][0] <= begin:
                opened.pop()
            assert all(end <= until and level > outer for until, outer in opened)
            opened.append((end, level))


def test_calls_that_follow_each_other_share_the_functions_they_have_in_common() -> None:
    stacks = [stack("main", "load"), stack("main", "train", "step"), stack("main", "train")]
    found = drawn(stacks, (10, 20, 7, 0, 0), (30, 40, 7, 1, 0), (50, 60, 7, 2, 0), (70, 80, 7, 0, 0))
    assert found == {0: [("main", 10, 80), ("load", 10, 20), ("train", 30, 60), ("step", 30, 40), ("load", 70, 80)]}


def test_another_line_is_the_same_function_and_another_file_another_one() -> None:
    other = (Frame("f", "python", file="other.py", line=1),)
    found = drawn([stack("f:1"), stack("f:2"), other], (10, 20, 7, 0, 0), (30, 40, 7, 1, 0), (50, 60, 7, 2, 0))
    assert found == {0: [("f", 10, 40), ("f", 50, 60)]}


def test_a_function_that_calls_itself() -> None:
    found = drawn([stack("f", "f"), stack("f")], (10, 20, 7, 0, 0), (30, 40, 7, 1, 0))
    assert found == {0: [("f", 10, 40), ("f", 10, 20)]}


def test_a_call_without_functions_ends_them() -> None:
    stacks = [stack("f"), (C,)]
    calls = [(10, 20, 7, 0, 0), (30, 40, 7, NO_STACK, 0), (50, 60, 7, 0, 0), (70, 80, 7, 1, 0), (90, 95, 7, 0, 0)]
    assert drawn(stacks, *calls) == {0: [("f", 10, 20), ("f", 50, 60), ("f", 90, 95)]}


def test_each_thread_has_its_own() -> None:
    found = drawn([stack("f")], (10, 20, 7, 0, 0), (15, 40, 8, 0, 0), (30, 50, 7, 0, 0), tids=(7, 8))
    assert found == {0: [("f", 10, 50)], 1: [("f", 15, 40)]}


def test_calls_inside_of_calls_do_not_count() -> None:
    """The second one is called back; the third one has no stack."""
    calls = [(10, 50, 7, 0, 0), (20, 40, 7, 1, 1), (25, 30, 7, NO_STACK, 8), (50, 60, 7, 0, 0)]
    assert drawn([stack("f"), stack("f", "g")], *calls) == {0: [("f", 10, 60)]}


def test_one_that_goes_on() -> None:
    assert drawn([stack("f")], (10, 20, 7, 0, 0), (30, OPEN, 7, 0, 0)) == {0: [("f", 10, 1_001)]}


def test_without_python_there_is_nothing() -> None:
    assert drawn([(C,)], (10, 20, 7, 0, 0), (30, 40, 7, NO_STACK, 0)) == {}


def test_only_so_many_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(around, "DEEPEST", 2)
    assert drawn([stack("a", "b", "c")], (10, 20, 7, 0, 0)) == {0: [("a", 10, 20), ("b", 10, 20)]}


@pytest.mark.parametrize("seed", range(20))
def test_they_never_cross(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many calls of three threads; what is around each outermost one are exactly the functions of its stack."""
    monkeypatch.setattr(around, "_PART", 7)
    choice = random.Random(seed)
    stacks = [stack(*choice.choices("abc", k=choice.randrange(5))) for _ in range(12)]
    calls: list[Call] = []
    for tid in (7, 8, 9):
        times = sorted(choice.choices(range(900), k=120))
        for begin, end in pairwise(times):
            if choice.random() < 0.6:
                calls.append((begin, end, tid, choice.randrange(-1, 12), 0))
                if end - begin > 2:
                    calls.append((begin + 1, end, tid, choice.randrange(12), choice.randrange(1, 9)))
    calls.sort(key=lambda call: (call[0], call[4]))
    found = drawn(stacks, *calls, tids=(7, 8, 9))
    for begin, end, tid, of, level in calls:
        if level == 0 and begin < end:
            names = [frame.name for frame in stacks[of] if frame.kind == "python"] if of != NO_STACK else []
            spans = found.get(tid - 7, [])
            assert [name for name, first, last in spans if first <= begin and end <= last and first < last] == names
