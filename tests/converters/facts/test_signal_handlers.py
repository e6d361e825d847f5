"""Handlers of signals on stacks."""

from __future__ import annotations

from stallscope.converters.facts.signal_handlers import interrupted_in
from stallscope.converters.model import Frame, Module
from summary_profiles import EXE, LIBC, SLEEP, kernel, user

PYTHON = Module("/usr/lib/libpython3.11.so.1.0")
NAP = kernel("__x64_sys_clock_nanosleep", "do_nanosleep")


def python(*names: str) -> tuple[Frame, ...]:
    return tuple(Frame(name, "python", file="/t/job.py", line=4) for name in names)


def test_what_a_handler_interrupted() -> None:
    stack = (*user(EXE, "main", "train", "step"), *user(LIBC, "__restore_rt"), *user(EXE, "on_signal"), *NAP)
    assert interrupted_in(stack) == ("train", "step")
    assert interrupted_in(SLEEP) == ()


def test_handlers_of_scripts() -> None:
    looks = user(PYTHON, "_PyErr_CheckSignalsTstate")
    stack = (*python("train", "evaluate"), *user(PYTHON, "time_sleep"), *looks, *python("on_signal", "clean_up"), *NAP)
    assert interrupted_in(stack) == ("train", "job.py:4 evaluate", "time_sleep")
    assert interrupted_in((*python("train"), *looks, *NAP)) == (), "it looks for signals, and calls nothing"


def test_a_function_of_the_program_with_such_a_name() -> None:
    """No kind of a script's frames."""
    assert interrupted_in((*python("main", "__restore_rt", "work"), *NAP)) == ()
