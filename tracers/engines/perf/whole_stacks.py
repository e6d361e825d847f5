"""Share of the time in user code that is in stacks that do not reach the beginning of their thread."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from ....converters.model import Stack
from ..limits import MOST_STACK
from ..named_rows import Place
from .options import How
from .records import ANONYMOUS

_STARTS = re.compile(
    r"_start|_start_c|_dl_start(_user)?|_*libc_start_\w+|_*clone[23]?|start_thread|thread_start|_*vfork|"
    r"runtime\.(goexit|mstart|mcall|systemstack|rt0_go)\S*"
)
"""Functions in which threads begin: the C library's, the loader's, Go's. Names can have a version behind them."""
_LIBC = re.compile(r"(?:.*/)?(libc|libpthread|ld-musl|ld-linux)[-.][^/]*")
"""The C library, without whose symbols its part of a thread's beginning has no name."""
_WORTH_A_NOTE = 0.01


def remarks(rows: Iterable[Mapping[Place, Sequence[int]]], how: How, of: str = "the time") -> list[str]:
    """Remarks for the reader. The rows' first values are the time, or something else of which they tell."""
    cut, made = incomplete(rows)
    if cut + made < _WORTH_A_NOTE:
        return []
    said = f"{1 - cut - made:.2%} of {of} in user code is in complete stacks; of others, callers are missing"
    if not how.dwarf:
        return [f"{said}: use --call-graph dwarf"]
    if made >= _WORTH_A_NOTE:
        said += f" ({made:.2%} begin in code made at run time, which has no unwind tables)"
    if cut >= _WORTH_A_NOTE and how.stack_bytes < MOST_STACK:
        said += f": --call-graph dwarf,{MOST_STACK} copies more of the stack than {how.stack_bytes:,} bytes"
    return [said]


def incomplete(rows: Iterable[Mapping[Place, Sequence[int]]]) -> tuple[float, float]:
    """Shares of what is in user code: in stacks that end somewhere, and in those that end in code made at run time."""
    total = cut = made = 0
    for each in rows:
        for place, values in each.items():
            stack = place.stack
            if not stack or stack[0].kind in ("kernel", "other"):
                continue
            total += values[0]
            if stack[0].kind in ("jit", "python") or stack[0].name == ANONYMOUS:
                made += values[0]
            elif not _reaches_start(stack):
                cut += values[0]
    return (cut / total, made / total) if total else (0.0, 0.0)


@lru_cache(1 << 14)
def _reaches_start(stack: Stack) -> bool:
    """Whether the outermost frame is where a thread begins, or has no name and is around such a frame."""
    first, *others = stack[:3]
    if _is_start(first.name):
        return True
    if not first.name.startswith("[") or first.module is None:
        return False
    return bool(_LIBC.fullmatch(first.module.path)) or any(_is_start(frame.name) for frame in others)


def _is_start(name: str) -> bool:
    return _STARTS.fullmatch(name.partition("@")[0]) is not None
