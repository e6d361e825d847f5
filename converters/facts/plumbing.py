"""Frames through which every wait goes: the C library, thread starts, the calls of interpreters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from ..model import Frame
from .frame_names import function_name, is_named
from .runtimes import of_go_library

_LIBRARIES = re.compile(
    r"(libc|libpthread|librt|libstdc\+\+|libc\+\+|libgcc_s|ld)[-.](.*\.)?so(\.\d[\w.]*)?( |$)|"
    r"\[?(linux-)?vdso(32|64)?(\.so[\w.]*)?\]?$|\[vsyscall\]"
)
"""Libraries through which every program waits: only their outermost frame, the called function, is informative."""

_ONLY_CALL = (
    # Thread starts and std::function.
    "_start",
    "std::thread::",
    "std::__invoke",
    "std::invoke",
    "std::function::",
    "std::_Function_handler::",
    "pybind11::",
    # Python's evaluator and its calls; see `_PYTHON_CALLS`.
    "_PyEval_",
    "PyEval_",
    "_PyObject_",
    "PyObject_",
    "_PyFunction_Vectorcall",
    "PyVectorcall_",
    # HotSpot's calls of Java's methods.
    "JavaCalls::",
    # V8's entries, and its calls of native functions.
    "Builtins_",
    "v8::",
)
"""Prefixes of functions in the program's own files that only call what matters."""
_PYTHON_CALLS = re.compile(r"(cfunction|method)_(call|vectorcall)(_[A-Z_]+)?|slot_tp_[a-z]+|type_call")
"""Functions of CPython that only call what matters (Objects/methodobject.c, descrobject.c, typeobject.c)."""

_PYTHON = re.compile(r"/(lib)?python3(\.\d+[a-z]*)?(\.so[\w.]*)?$")


def library_call(names: Sequence[str], has_caller: bool) -> str:
    """The function that was called of those that are innermost on a stack, innermost first: "" stands for one that is
    no library's. ``has_caller``: a function of the program comes before them. "" if there is none."""
    called = [i for i, name in enumerate(names) if name]
    if not called or has_caller:
        return names[called[-1]] if called else ""
    # The outermost ones start the thread. What the program calls may have been put into a function of C++'s library.
    end = next((i for i in range(called[0], len(names)) if not names[i]), None)
    return names[called[0] if end is None else end - 1]


def called_by(name: str, path: str) -> str:
    """The library function that the program called, by a function of the file ``path``."""
    if name == "pthread_cond_timedwait" and _PYTHON.search(path):
        # Debian's Python has no name for it, and calls this function nowhere else (Python/ceval_gil.h).
        return "take_gil"
    return name


def in_library(frame: Frame) -> bool:
    """Whether every program waits through its library: the C library, Go's own functions."""
    if frame.kind == "python" or frame.module is None:
        return False
    return _is_library(frame.module.path) or of_go_library(frame.name)


@lru_cache(maxsize=4096)
def _is_library(path: str) -> bool:
    return bool(_LIBRARIES.match(path.rpartition("/")[2]))


def is_plumbing(frame: Frame) -> bool:
    """Whether a frame only passes waits on."""
    if frame.kind == "python":
        return False
    if not is_named(frame) and frame.module is None:
        return True
    return in_library(frame) or only_calls(function_name(frame.name))


def only_calls(function: str) -> bool:
    """Whether a function of a program's own file only calls what matters."""
    return function.startswith(_ONLY_CALL) or _PYTHON_CALLS.fullmatch(function) is not None
