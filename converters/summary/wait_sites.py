"""Which frames of an off-CPU stack tell where a thread waits: the caller, the API, the system call, the kernel wait.

Three or four names in a stack of 40 frames answer the question. The tables of functions that are
only plumbing are in this module.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from ..model import Frame, Stack
from .shared_frames import NOTHING_SHARED, Shared

NAME_LIMIT = 120
"""Longest name in a `Site`, in characters; the middle of a longer one is left out."""

GAP = "…"
"""Marks frames left out between two names in `Site.frames`."""

_LIBRARIES = re.compile(
    r"(libc|libpthread|librt|libstdc\+\+|libc\+\+|libgcc_s)[-.]|ld-|ld\.so|\[?(linux-)?vdso|\[vsyscall\]"
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
)
"""Prefixes of functions in the program's own files that only call what matters."""

_SCHEDULER = (
    # schedule, schedule_timeout, schedule_hrtimeout_range, schedule_preempt_disabled, schedule_rtlock …
    "schedule",
    "__schedule",
    "io_schedule",
    "preempt_schedule",
    "rt_mutex_schedule",
    "__cond_resched",
    # Their callers show what is waited for: do_poll, wait_for_completion, sk_wait_data.
    "poll_schedule_timeout",
    "__wait_for_common",
    "wait_woken",
    # The probes themselves.
    "bpf_prog_",
    "bpf_trace_run",
    "__bpf_trace_",
    "__traceiter_",
)
"""Prefixes of kernel entries into the scheduler."""

_SAME_WAIT = {
    "futex_wait_queue": "futex_wait",
    "futex_wait_queue_me": "futex_wait",
    "futex_do_wait": "futex_wait",
    "__futex_wait": "futex_wait",
    # The kernel leaves the scheduler's own functions out of the stack of a thread that slept when the trace began.
    "hrtimer_nanosleep": "do_nanosleep",
    "anon_pipe_read": "pipe_read",
    "anon_pipe_write": "pipe_write",
}
"""Names that differ from one kernel version to the next."""

_PYTHON = re.compile(r"/(lib)?python3[^/]*$")
_SYSCALL = re.compile(r"(?:__(?:(?:x64|ia32|arm64|riscv|do|se)_)?sys_|ksys_|kernel_(?=wait))(\w+)")
_PAGE_FAULT = frozenset(("asm_exc_page_fault", "exc_page_fault", "do_user_addr_fault", "do_page_fault"))
_CLONE_SUFFIX = re.compile(r"(\s*\[clone [^\]]*\]|\.(constprop|isra|part|cold|llvm|lto_priv)(\.\d+)*)+$")
_QUALIFIERS = re.compile(r"(\s+(const|volatile|noexcept)|\s*&&?)+$")
_OPERATOR = re.compile(r"(?<!\w)operator\s*(\(\)|\[\]|[-+*/%^&|~!=<>,]+)")
_UNRESOLVED = re.compile(r"\[(.*(\+|!fn_))?0x[0-9a-f]+\]|\[unknown\]", re.DOTALL)
_ANONYMOUS = "(anonymous namespace)"


class _Run(NamedTuple):
    """Consecutive frames of one module (or of Python)."""

    python: bool
    named: bool
    names: list[_Name]
    """The first and the last two; ``[libcuda.so.1]``, once, for a module without names."""


class _Name(NamedTuple):
    text: str
    first: int
    last: int
    """Depths of the stack frames that it represents."""


class Site(NamedTuple):
    """Where a thread waits. Waits with equal sites are the same wait, in any thread or process."""

    frames: tuple[str, ...]
    """Outermost first: caller, API, and the system call; empty if only the kernel is known. Names are bare."""
    kernel: str
    """Innermost kernel function that is not the scheduler's, "" when unknown."""


def site(stack: Stack, shared: Shared = NOTHING_SHARED) -> Site:
    """Where ``stack`` (user frames, then kernel frames, outermost first) waits.

    ``shared`` are functions that tell little, because many other waits go through them (`shared_frames`).
    """
    kernel = [frame for frame in stack if frame.kind == "kernel"]
    user = [frame for frame in stack if frame.kind != "kernel"]
    return Site(_user_chain(user, _system_call(kernel), shared), _kernel_wait(kernel))


@lru_cache(maxsize=16384)
def function_name(name: str) -> str:
    """A demangled C++ name without return type, parameters and template arguments; other names as they are.

    ``std::vector<int> ops::topk<float>(at::Tensor const&) const`` → ``ops::topk``. Cut to `NAME_LIMIT`.
    """
    name = _CLONE_SUFFIX.sub("", name)
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


def _system_call(kernel: Sequence[Frame]) -> str:
    """``ioctl`` of ``__x64_sys_ioctl``; ``page fault``; "" when neither is on the stack."""
    for frame in kernel:
        if frame.name in _PAGE_FAULT:
            return "page fault"
        if match := _SYSCALL.match(frame.name):
            return match.group(1)
    return ""


def _kernel_wait(kernel: Sequence[Frame]) -> str:
    # Whatever __schedule called is the probe that took this stack, under any name.
    into_scheduler = [i for i, frame in enumerate(kernel) if frame.name == "__schedule"]
    for frame in reversed(kernel[: into_scheduler[-1]] if into_scheduler else kernel):
        name = _label(frame)
        if not name.startswith(_SCHEDULER):
            return _SAME_WAIT.get(name, name)
    return ""


def _user_chain(user: Sequence[Frame], system_call: str, shared: Shared) -> tuple[str, ...]:
    end = len(user)
    while end and (_is_plumbing(user[end - 1]) or _bare(user[end - 1].name) == system_call):
        end -= 1
    own = [(frame, depth) for depth, frame in enumerate(user[:end]) if not _is_plumbing(frame)]
    library = [frame for frame in user[end:] if _is_named(frame) and _in_library(frame)]
    if not own:
        # Not the outermost, which starts the thread.
        library = library[-1:]
    called = _called(library[0], user, end) if library else ""
    return tuple(name for name, _ in groupby([*_with_gaps(_own_chain(own, shared)), *_call(called, system_call)]))


def _with_gaps(names: Sequence[_Name]) -> list[str]:
    """The names, and `GAP` where frames between two of them are left out."""
    chain: list[str] = []
    for i, name in enumerate(names):
        if i and name.first > names[i - 1].last + 1 and name.text != names[i - 1].text:
            chain.append(GAP)
        chain.append(name.text)
    return chain


def _called(first: Frame, user: Sequence[Frame], end: int) -> str:
    """The library function that the program called."""
    name = _bare(first.name)
    caller = user[end - 1] if end else None
    if name == "pthread_cond_timedwait" and caller and _PYTHON.search(caller.module.path if caller.module else ""):
        # Debian's Python has no name for it, and calls this function nowhere else (Python/ceval_gil.h).
        return "take_gil"
    return name


def _call(called: str, system_call: str) -> list[str]:
    """The library function called, the system call, or both: ``pthread_cond_wait``; ``ioctl``; ``fread``, ``read``."""
    if called.startswith(("futex_", "lll_futex")) or not called:
        return [system_call] if system_call else ["futex"] if called else []
    if system_call in ("", "futex") or called in system_call:
        return [called]
    return [called, system_call]


def _own_chain(own: Sequence[tuple[Frame, int]], shared: Shared) -> list[_Name]:
    """Caller and API: the frames on both sides of the last step from one module into another, one to four names."""
    end = shared.telling([frame for frame, _ in own])
    if 0 < end < len(own):
        return _telling_callers(own[:end], shared)
    runs = [_run(list(group)) for _, group in groupby(own, key=lambda entry: _origin(entry[0]))]
    nameless: list[_Name] = []
    while runs and not runs[-1].named:
        nameless = runs.pop().names
    if not runs:
        return nameless
    last = runs[-1].names
    if runs[-1].python or len(runs) == 1:
        return last[-2:] + nameless
    chain = [runs[-2].names[-1], *last[:1], *last[1:][-1:]]
    if len(last) == len(runs[-2].names) == 1 and len(runs) > 2:
        # A library that only passes the call on: its caller is more informative.
        chain.insert(0, runs[-3].names[-1])
    return chain + nameless


def _telling_callers(own: Sequence[tuple[Frame, int]], shared: Shared) -> list[_Name]:
    """The innermost function that is not shared, the next shared one outside of it, and its caller."""
    inner = len(own) - 1
    api = next((i for i in range(inner - 1, -1, -1) if shared.is_called(own[i][0])), None)
    outer = (api - 1, api) if api is not None else (inner - 1,)
    told = [i for i in (*outer, inner) if i >= 0 and (i == inner or _is_named(own[i][0]))]
    return [_Name(_label(own[i][0]), own[i][1], own[i][1]) for i in told]


def _origin(frame: Frame) -> str:
    return "python" if frame.kind == "python" else frame.module.path if frame.module else ""


def _run(entries: Sequence[tuple[Frame, int]]) -> _Run:
    named = [entry for entry in entries if _is_named(entry[0])]
    # Only names at its ends are shown.
    told = named if len(named) <= 3 else [named[0], *named[-2:]]
    names = [_Name(_label(frame), depth, depth) for frame, depth in told]
    last, depth = entries[-1]
    return _Run(last.kind == "python", bool(names), names or [_Name(_label(last), entries[0][1], depth)])


def _label(frame: Frame) -> str:
    if not _is_named(frame) and frame.module:
        return f"[{_file_name(frame).strip('[]')}]"
    return function_name(frame.name) if frame.kind in ("native", "kernel", "api") else _cut(frame.name)


def _bare(name: str) -> str:
    """A library function without what its symbol table adds: ``__GI___libc_read``, ``read@@GLIBC_2.2.5`` → ``read``."""
    if not name.startswith("_") and "@" not in name:
        return function_name(name)
    bare = name.partition("@")[0].removeprefix("__GI_").lstrip("_").removeprefix("libc_")
    return function_name(bare or name)


def _is_named(frame: Frame) -> bool:
    return frame.name[:1] != "[" or not _UNRESOLVED.fullmatch(frame.name)


def _in_library(frame: Frame) -> bool:
    return frame.kind != "python" and frame.module is not None and _is_library(frame.module.path)


@lru_cache(maxsize=4096)
def _is_library(path: str) -> bool:
    return bool(_LIBRARIES.match(path.rpartition("/")[2]))


def _is_plumbing(frame: Frame) -> bool:
    if frame.kind == "python":
        return False
    if not _is_named(frame) and frame.module is None:
        return True
    return _in_library(frame) or function_name(frame.name).startswith(ONLY_CALL)


def _file_name(frame: Frame) -> str:
    return frame.module.path.rpartition("/")[2] if frame.module else ""
