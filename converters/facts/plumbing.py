"""Frames through which every wait goes: the C library, thread starts, the calls of interpreters."""

from __future__ import annotations

import re
from functools import lru_cache

from ..model import Frame
from .frame_names import function_name, is_named
from .runtimes import of_go_library

_LIBRARIES = re.compile(
    r"(libc|libpthread|librt|libstdc\+\+|libc\+\+|libgcc_s|ld)[-.](.*\.)?so(\.\d[\w.]*)?( |$)|"
    r"\[?(linux-)?vdso(32|64)?(\.so[\w.]*)?\]?$|\[vsyscall\]"
)
"""Libraries through which every program waits: only their outermost frame, the called function, is informative."""

ONLY_CALL = (
    # Thread starts and std::function.
    "_start",
    "std::thread::",
    "std::__invoke",
    "std::invoke",
    "std::function::",
    "std::_Function_handler::",
    "pybind11::",
    # Python's evaluator and its calls.
    "_PyEval_",
    "PyEval_",
    "_PyObject_",
    "PyObject_",
    "_PyFunction_Vectorcall",
    "PyVectorcall_",
    "cfunction_",
    "method_vectorcall",
    "slot_tp_",
    "type_call",
    # HotSpot's calls of Java's methods.
    "JavaCalls::",
    # V8's entries, and its calls of native functions.
    "Builtins_",
    "v8::",
)
"""Prefixes of functions in the program's own files that only call what matters."""

_PYTHON = re.compile(r"/(lib)?python3(\.\d+[a-z]*)?(\.so[\w.]*)?$")


def called_by(name: str, caller: Frame | None) -> str:
    """The library function that the program called."""
    if name == "pthread_cond_timedwait" and caller and caller.module and _PYTHON.search(caller.module.path):
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
    return in_library(frame) or function_name(frame.name).startswith(ONLY_CALL)
