"""Places of the threads of the programs without frame pointers in the end.

By program and thread: functions that are on its stack in this order, the outermost first, with others between them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

Path = tuple[str, ...]

TOO_DEEP = "too_deep"
"""The one thread whose stack has more frames than are taken."""

_CPP = {
    "catch": ("in_handler", "doze", "nanosleep"),
    "cleanup": ("cleanup_1", "cleanup_2", "~Guard", "doze", "nanosleep"),
    "condition": ("run", "wait", "pthread_cond_clockwait"),
    "holder": ("hold_lock", "doze", "nanosleep"),
    "mutex": ("lock_held", "pthread_mutex_lock"),
    "deep": (*["descend"] * 60, "doze", "nanosleep"),
    TOO_DEEP: (*["descend"] * 300, "doze", "nanosleep"),
    "signal": ("wait_in_handler", "spin", "restore_rt", "on_signal", "doze", "nanosleep"),
    "alternate": ("wait_in_handler", "spin", "restore_rt", "on_signal", "doze", "nanosleep"),
    "alloca": ("dynamic_frame", "doze", "nanosleep"),
    "realigned": ("aligned_frame", "doze", "nanosleep"),
    "realigned_args": ("aligned_dynamic_frame", "doze", "nanosleep"),
    "page_fault": ("touch_page",),
    "pager": ("serve_pages", "doze", "nanosleep"),
}
_RUST = {
    "sleep": ("stay", "sleep", "nanosleep"),
    "deep": (*["descend"] * 40, "sleep", "nanosleep"),
    "receive": ("receive",),
    "condvar": ("wait_condition",),
    "park": ("park_here", "park_timeout"),
    "cleanup": ("catch_fall", "clean_up", "drop", "sleep", "nanosleep"),
    "busy": ("burn", "sleep", "nanosleep"),
}
_PYTHON_THREAD = ("_PyEval_EvalFrameDefault", "_PyFunction_Vectorcall", "_PyEval_EvalFrameDefault")
_CHAIN = ("next_library", "pass_through", "inner_.", "next_library")

PATHS: dict[str, dict[str, Path]] = {
    "cpp_frames": {thread: ("start_thread", "work", *path) for thread, path in _CPP.items()}
    | {f"busy-{i}": ("start_thread", "pause") for i in range(5)},
    "rust_frames": {thread: ("start_thread", "rust_begin_short_backtrace", *path) for thread, path in _RUST.items()},
    "python_threads": {
        "sleep": (*_PYTHON_THREAD, "clock_nanosleep"),
        "lock": (*_PYTHON_THREAD, "PyThread_acquire_lock_timed"),
        "condition": (*_PYTHON_THREAD, "PyThread_acquire_lock_timed"),
        "select": (*_PYTHON_THREAD, "select"),
        "queue": (*_PYTHON_THREAD, "PyThread_acquire_lock_timed"),
        "extension": (*_PYTHON_THREAD, "ffi_call", "msort_with_tmp", *_PYTHON_THREAD[:1], "ffi_call", "usleep"),
        "zlib": (*_PYTHON_THREAD, "clock_nanosleep"),
    },
    "jit_mixed": {
        f"wait-{i}": ("start_thread", *["through_jit", "called_back"] * (1 + i), "through_jit", "doze", "nanosleep")
        for i in range(3)
    }
    | {f"busy-{i}": ("start_thread", "thread_main", "pause") for i in range(2)},
    "many_mappings": {f"chain-{i}": ("start_thread", "chain_main", *_CHAIN * 4, "doze", "nanosleep") for i in range(4)}
    | {"reload": ("reload_main", "pass_through", "inner_[05]", "reload_wait", "doze", "nanosleep")},
}
"""Names are expressions: whole words of a function's name."""


def follows(names: Iterable[str], path: Sequence[str]) -> bool:
    """Whether the functions of ``path`` are among ``names``, in this order."""
    rest = iter(names)
    return all(any(_is(function, name) for name in rest) for function in path)


def _is(function: str, name: str) -> bool:
    """Namespaces, arguments and leading underscores of the C library aside."""
    return bool(re.search(rf"(?:^|::|(?<=\W)|^_+|__GI_+|:_+){function}(?:\W|$)", name))
