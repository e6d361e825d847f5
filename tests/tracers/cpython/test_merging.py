"""Python functions among native frames."""

from __future__ import annotations

import pytest
from stallscope.converters.model import Frame, Module, Stack
from stallscope.tracers.cpython.merging import Placed, merge

LIBPYTHON, LIBC = Module("/usr/lib/libpython3.12.so.1.0"), Module("/lib/libc.so.6")
EVALUATE = "_PyEval_EvalFrameDefault"


def native(*names: str) -> Stack:
    """Frames of the interpreter's library, or of LIBC if they begin with a dot."""
    return tuple(Frame(name.lstrip("."), module=LIBC if name[0] == "." else LIBPYTHON) for name in names)


def placed(*names: str) -> list[Placed]:
    """Functions; those with a star are entries."""
    return [Placed(Frame(name.lstrip("*"), "python"), name[0] == "*") for name in names]


def names(stack: Stack) -> list[str]:
    return [frame.name for frame in stack]


def test_several_functions_in_one_native_frame() -> None:
    stack = native(
        "._start",
        ".__libc_start_main@@GLIBC_2.34",
        "Py_RunMain",
        EVALUATE,
        "list_sort",
        "_PyObject_Call",
        EVALUATE,
        "time_sleep",
    )
    found = merge((*stack, *native(".nanosleep")), placed("*<module>", "main", "*key", "rest"), whole=True)
    assert names(found) == ["<module>", "main", "list_sort", "key", "rest", "time_sleep", "nanosleep"]


def test_each_function_in_its_own_native_frame() -> None:
    stack = native("thread_run", EVALUATE, "_PyFunction_Vectorcall", f"{EVALUATE}.cold", "os_read")
    assert names(merge(stack, placed("*run", "*work"), whole=True)) == ["run", "work", "os_read"]


def test_with_the_machinery_and_without_native_frames() -> None:
    stack = native(".start_thread", EVALUATE, "_PyFunction_Vectorcall", EVALUATE, "os_read")
    functions = placed("*run", "*work")
    everything = ["start_thread", EVALUATE, "run", "_PyFunction_Vectorcall", EVALUATE, "work", "os_read"]
    assert names(merge(stack, functions, whole=True, machinery=True)) == everything
    assert names(merge(stack, functions, whole=True, only=True)) == ["run", "work"]


def test_native_stack_that_was_cut_at_its_outer_end() -> None:
    found = merge(native("f", EVALUATE, "g"), placed("*a", "b", "*c"), whole=False)
    assert names(found) == ["a", "b", "c", "g"]


@pytest.mark.parametrize(("whole", "expected"), [(True, ["a", "f"]), (False, ["f", "a"])])
def test_native_frame_without_a_function(whole: bool, expected: list[str]) -> None:
    """A function that begins is not in the list yet; one that is cut off is not in it any more."""
    stack = (*native(EVALUATE), Frame("f", module=LIBC), *native(EVALUATE))
    assert names(merge(stack, placed("*a"), whole=whole)) == expected


def test_interpreter_whose_function_has_no_name() -> None:
    stack = native("[python!fn_0x1]", "[python!fn_0x2]", ".qsort", ".compare", "[python!fn_0x3]", ".read")
    found = merge(stack, placed("*<module>", "work", "*compare", "rest"), whole=True)
    assert names(found) == ["<module>", "work", "qsort", "compare", "compare", "rest", "read"]


def test_no_frame_of_an_interpreter() -> None:
    assert names(merge(native(".read"), placed("*a", "b"), whole=True)) == ["a", "b", "read"]
    assert names(merge((), placed("*a"), whole=True)) == ["a"]
    assert names(merge(native(".read"), (), whole=True)) == ["read"]


def test_program_that_contains_an_interpreter() -> None:
    program = Frame("serve", module=Module("/opt/server"))
    main = Frame("main", module=Module("/opt/server"))
    stack = (*native("._start"), main, program, *native("PyObject_CallObject", EVALUATE, ".read"))
    assert names(merge(stack, placed("*handle"), whole=True)) == ["main", "serve", "handle", "read"]


def test_functions_that_a_perf_map_names() -> None:
    """python -X perf."""
    stack = (*native(EVALUATE), Frame("work", "python", file="a.py"), *native(EVALUATE, ".read"))
    assert names(merge(stack, placed("*main", "*work"), whole=True)) == ["main", "work", "read"]
