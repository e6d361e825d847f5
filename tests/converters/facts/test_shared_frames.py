from __future__ import annotations

from stallscope.converters.facts.shared_frames import NOTHING_SHARED, shared_frames
from stallscope.converters.model import Stack
from summary_profiles import EXE, LIBC, user

CALL = user(LIBC, "read")


def stack(*names: str) -> Stack:
    return (*user(EXE, *names), *CALL)


def telling(made: Stack, *others: tuple[Stack, int]) -> int:
    shared = shared_frames([(made, 100), *others])
    return shared.telling(made[: -len(CALL)])


def test_a_function_with_several_callers_tells_little() -> None:
    assert telling(stack("main", "load", "fetch"), (stack("main", "save", "fetch"), 100)) == 2
    assert telling(stack("main", "load", "fetch")) == 3


def test_neither_do_those_that_call_only_it() -> None:
    assert telling(stack("main", "load", "fetch", "inner"), (stack("main", "save", "fetch", "inner"), 100)) == 2


def test_a_function_that_calls_several_tells_something() -> None:
    others = [(stack("main", "eval", "step", "fetch"), 100), (stack("main", "train", "step", "reduce"), 100)]
    assert telling(stack("main", "train", "step", "fetch"), *others) == 4


def test_a_rare_caller_counts_for_nothing() -> None:
    assert telling(stack("main", "load", "fetch"), (stack("main", "save", "fetch"), 1)) == 3


def test_recursion_is_no_caller() -> None:
    assert telling(stack("main", "walk", "walk", "walk")) == 4


def test_functions_of_one_name_in_two_programs_are_two() -> None:
    assert telling(stack("main", "load", "fetch"), ((*user(LIBC, "other", "fetch"), *CALL), 100)) == 3


def test_names_that_are_not_known_are_not_shared() -> None:
    assert telling(stack("main", "load", "[app+0x10]"), (stack("main", "save", "[app+0x10]"), 100)) == 3


def test_nothing_is_shared_without_waits() -> None:
    assert shared_frames([]) == NOTHING_SHARED
    assert NOTHING_SHARED.telling(stack("main")) == 2
