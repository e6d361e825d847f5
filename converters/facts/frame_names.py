"""Names of frames for a summary: bare, bounded, without what compilers and symbol tables add."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from ..model import Frame
from ..names.cython import cython_name

NAME_LIMIT = 120
"""Longest name in a `Site`, in characters; the middle of a longer one is left out."""

_CLONE_SUFFIX = re.compile(r"(\s*\[clone [^\]]*\]|\.(constprop|isra|part|cold|llvm|lto_priv|abi0)(\.\d+)*)+$")
_QUALIFIERS = re.compile(r"(\s+(const|volatile|noexcept)|\s*&&?)+$")
_OPERATOR = re.compile(r"(?<!\w)operator\s*(\(\)|\[\]|[-+*/%^&|~!=<>,]+)")
_UNRESOLVED = re.compile(r"\[(.*(\+|!fn_))?0x[0-9a-f]+\]|\[unknown\]", re.DOTALL)
_ANONYMOUS = "(anonymous namespace)"
_JAVASCRIPT = re.compile(
    r"(?:JS|LazyCompile|Function|Script|Eval):[~^*+]{0,2}([^/]*?) ?((?:node:|file:|/)[^\0]*?):(\d+)(?::\d+)?"
)
"""V8's names in a perf map (src/logging/log.cc): the tier of the code, the function, the file, the line and column."""
_PYTHON = re.compile(r"py::([^/]*?):(\S[^\0]*)")
"""CPython's names in a perf map (Python/perf_trampoline.c)."""
_LINE = re.compile(r"[^/]*?:\d+ ")
_LONGEST_SCRIPT = 4096


class Script(NamedTuple):
    """A function of a script that a compiler at run time has named."""

    function: str
    """"" if it has no name."""
    file: str
    line: str = ""


def script_of(name: str) -> Script | None:
    """The function of a JIT compiler's ``name`` (of kind "jit"); None if that shows no file."""
    if len(name) > _LONGEST_SCRIPT:
        return None
    if found := _JAVASCRIPT.fullmatch(name):
        return Script(*found.groups())
    found = _PYTHON.fullmatch(name)
    return Script(*found.groups()) if found else None


@lru_cache(maxsize=16384)
def function_name(name: str) -> str:
    """A demangled C++ name without return type, parameters and template arguments; the function of a name of Cython's;
    other names as they are.

    ``std::vector<int> ops::topk<float>(at::Tensor const&) const`` → ``ops::topk``. Cut to `NAME_LIMIT`.
    """
    name = _CLONE_SUFFIX.sub("", name)
    name = cython_name(name) or name
    # Go has brackets inside its names: main.(*Server).Serve.
    if name and name[0] not in "[<" and ("(" in name or "<" in name) and ".(*" not in name:
        name = _without_arguments(name) or name
    return _cut(name)


def _cut(name: str) -> str:
    half = NAME_LIMIT // 2
    return name if len(name) <= NAME_LIMIT else f"{name[:half]}…{name[1 - half :]}"


def _without_arguments(name: str) -> str:
    """``name`` without bracketed parts; "" if the brackets do not match."""
    kept: list[str] = []
    depth = i = 0
    while i < len(name):
        operator = _OPERATOR.match(name, i) if depth == 0 and name[i] == "o" else None
        if operator:
            kept.append(operator.group())
            i = operator.end()
        elif depth == 0 and name.startswith(_ANONYMOUS, i):
            kept.append("{anonymous}")
            i += len(_ANONYMOUS)
        else:
            depth += (name[i] in "(<") - (name[i] in ")>")
            if depth < 0:
                return ""
            if depth == 0 and name[i] not in ")>":
                kept.append(name[i])
            i += 1
    return "" if depth else _without_return_type("".join(kept))


def _without_return_type(name: str) -> str:
    name = _QUALIFIERS.sub("", name)
    if "operator " in name:
        return name
    head, brace, tail = name.partition("{")
    return head.rsplit(" ", 1)[-1] + brace + tail


def label(frame: Frame) -> str:
    """Text for a frame: its function, or the file of a frame without a name in brackets."""
    if not is_named(frame) and frame.module:
        return f"[{file_name(frame).strip('[]')}]"
    if frame.kind == "jit" and (script := script_of(frame.name)):
        return _cut(script.function or f"{script.file.rpartition('/')[2]}:{script.line}")
    return function_name(frame.name) if frame.kind in ("native", "kernel", "api") else _cut(frame.name)


def located(frame: Frame) -> str:
    """``train.py:41 next_batch``: a Python function with the line that runs; "" where that is not known."""
    if frame.kind != "python" or not frame.line or not frame.file:
        return ""
    return _cut(f"{frame.file.rpartition('/')[2]}:{frame.line} {frame.name}")


def without_line(name: str) -> str:
    """``next_batch`` of ``train.py:41 next_batch``; other names as they are."""
    return _LINE.sub("", name, count=1) if _LINE.match(name) else name


def bare(name: str) -> str:
    """A library function without what its symbol table adds: ``__GI___libc_read``, ``read@@GLIBC_2.2.5`` → ``read``."""
    if not name.startswith("_") and "@" not in name:
        return function_name(name)
    stem = name.partition("@")[0].removeprefix("__GI_").lstrip("_").removeprefix("libc_")
    return function_name(stem or name)


def is_named(frame: Frame) -> bool:
    """Whether a function is known, not only an address."""
    return frame.name[:1] != "[" or not _UNRESOLVED.fullmatch(frame.name)


def file_name(frame: Frame) -> str:
    """The name of its module's file without folders; "" without a module."""
    return frame.module.path.rpartition("/")[2] if frame.module else ""
