"""Python functions among the native frames of a stack.

A native function of the interpreter runs Python functions: one up to 3.10, from 3.11 on also those that Python code
calls. The first one of them, its entry, is known. So the functions from an entry on take the place of that native
frame.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ...converters.model import Frame, Stack

_EVALUATES = re.compile(r"_PyEval_EvalFrameDefault\b")
_MACHINERY = re.compile(
    r"_?Py(Eval|Vectorcall|Object_(Fast|Make(Tp)?)?(Call|Vectorcall)|Function_(Fast|Vector)[Cc]all|Run_|Method_|"
    r"CFunction_|MethodDef_)\w*|"
    r"_?PyObject_(Call|Fast|Vectorcall|MakeTpCall)\w*|(Py_|pymain_|pyrun_|run_(eval_code_obj|mod))\w*|"
    r"\w*(vectorcall|_fastcall|FastCall)\w*|call_function|do_call_core|function_code_fastcall|cfunction_\w+|"
    r"slot_tp_\w+|builtin_exec\w*|method_call|object_vacall|_Py_HandlePending|trace_call_function|_TAIL_CALL_\w+"
)
"""Functions that only lead from one Python function to the next."""
_STARTS = re.compile(
    r"_start|_?_?libc_start\w*|__libc_start_main\S*|Py_\w*Main\w*|start_thread|_?_?clone3?|thread_run|"
    r"pythread_wrapper|thread_PyThread_start_new_thread|t_bootstrap"
)
"""Functions that lead to the first Python function of a thread."""
_INTERPRETER = re.compile(r"(^|/)(lib)?python\d[^/]*$")
_CLONED = re.compile(r"\.(constprop|isra|part|cold|lto_priv|llvm)[.\d]*")


class Placed(NamedTuple):
    """A Python function on a stack."""

    frame: Frame
    is_entry: bool


def merge(
    native: Stack, placed: Sequence[Placed], *, whole: bool, only: bool = False, machinery: bool = False
) -> Stack:
    """The stack with its Python functions in their places, outermost first, like ``native``.

    ``placed``: outermost first. ``whole``: neither ``native`` nor ``placed`` is cut short at its outer end. ``only``:
    without the native frames. ``machinery``: with the interpreter's own frames.
    """
    if only:
        return tuple(function.frame for function in placed)
    # With `python -X perf` they are here already, by their names in a map.
    native = tuple(frame for frame in native if frame.kind != "python")
    groups = _groups(placed)
    runs = [i for i, frame in enumerate(native) if _is_evaluation(frame)]
    at = _aligned(runs, groups, whole=whole)
    inside: set[object] = {native[i].module for i in runs}
    if not runs:
        at, inside = _after_interpreter(native, groups)
    return _joined(native, at, inside, machinery=machinery)


def _groups(placed: Sequence[Placed]) -> list[list[Frame]]:
    """The functions from one entry to the next."""
    groups: list[list[Frame]] = []
    for function in placed:
        if function.is_entry or not groups:
            groups.append([])
        groups[-1].append(function.frame)
    return groups


def _aligned(runs: Sequence[int], groups: list[list[Frame]], *, whole: bool) -> dict[int, list[Frame]]:
    """Groups by the native frame at which they come; those of native frames that are missing, with the outermost
    one."""
    if not runs:
        return {}
    surplus = len(groups) - len(runs)
    if surplus < 0 and whole:
        # The innermost native frames are about to begin a function, or to end it.
        return dict(zip(runs, groups, strict=False))
    if surplus < 0:
        return dict(zip(runs[-len(groups) :], groups, strict=True))
    at = dict(zip(runs, groups[surplus:], strict=True))
    at[runs[0]] = [frame for group in groups[:surplus] for frame in group] + at[runs[0]]
    return at


def _after_interpreter(native: Stack, groups: list[list[Frame]]) -> tuple[dict[int, list[Frame]], set[object]]:
    """Groups by native frame where the interpreter's native function has no name (3.14 can be built without a function
    that stays on the stack): they come where runs of its file's frames end, one at each, and those that are left at the
    outermost."""
    modules = [frame.module for frame in native]
    inside: set[object] = {module for module in modules if module and _INTERPRETER.search(module.path)}
    ends = [i for i, m in enumerate(modules) if m in inside and (i + 1 == len(modules) or modules[i + 1] not in inside)]
    return _aligned(ends, groups, whole=False) or {-1: [frame for group in groups for frame in group]}, inside


def _joined(native: Stack, at: dict[int, list[Frame]], inside: set[object], *, machinery: bool) -> Stack:
    frames: list[Frame] = list(at.get(-1, ()))
    first, last = min(at, default=-1), max(at, default=-1)
    for i, frame in enumerate(native):
        hidden = not machinery and (
            i in at
            or _is_machinery(frame)
            or (i < first and _leads_there(frame, inside))
            or (i < last and frame.module in inside and frame.name[:1] == "[")
        )
        if not hidden:
            frames.append(frame)
        frames += at.get(i, ()) if i >= 0 else ()
    return tuple(frames)


def _is_evaluation(frame: Frame) -> bool:
    return frame.kind == "native" and bool(_EVALUATES.match(frame.name))


def _is_machinery(frame: Frame) -> bool:
    return frame.kind == "native" and bool(_MACHINERY.fullmatch(_CLONED.sub("", frame.name)) or _is_evaluation(frame))


def _leads_there(frame: Frame, inside: set[object]) -> bool:
    module = frame.module
    return module in inside or bool(
        _STARTS.fullmatch(frame.name) or (module is not None and _INTERPRETER.search(module.path))
    )
