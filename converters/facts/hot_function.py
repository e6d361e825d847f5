"""The function that most of the running time is in, as a TARGET of trace-func."""

from __future__ import annotations

import re
from collections import defaultdict

from ..model import Frame, Profile, Stack
from ..model.states import RUNNING
from . import thresholds
from .frame_names import file_name
from .ownership import is_own

_FUNCTION = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""Names of C. trace-func leaves those of C++ and Rust out: an exception must not leave a function with a probe."""
_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
"""Names that need no quotes in a shell, and have no meaning in a TARGET."""
_ONCE = frozenset(("main", "_start"))
"""Functions that are called once."""


def hot_function(profile: Profile) -> str:
    """``libpack.so:pack_message``: the program's own native function, with the functions that it calls, if most of
    the time on cores was spent in it; "" if there is none, or if its name could be misunderstood."""
    weights: dict[tuple[str, str], int] = defaultdict(int)
    known: dict[int, tuple[str, str] | None] = {}
    whole = 0
    for sample in profile.samples:
        if sample.label("state") != RUNNING:
            continue
        whole += sample.values[0]
        # By identity: samples share their stacks.
        key = id(sample.stack)
        if key not in known:
            known[key] = _innermost(sample.stack)
        if found := known[key]:
            weights[found] += sample.values[0]
    if not weights:
        return ""
    (file, function), weight = max(weights.items(), key=lambda entry: (entry[1], entry[0]))
    is_plain = _FILE.fullmatch(file) and _FUNCTION.fullmatch(function) and function not in _ONCE
    return f"{file}:{function}" if is_plain and weight >= thresholds.HOT_FUNCTION * whole > 0 else ""


def _innermost(stack: Stack) -> tuple[str, str] | None:
    """File and function of the program's innermost function; None if that is not native."""
    frame = next((frame for frame in reversed(stack) if _is_of_program(frame)), None)
    if frame is None or frame.kind != "native":
        return None
    return file_name(frame), frame.name


def _is_of_program(frame: Frame) -> bool:
    return frame.kind != "kernel" and is_own(frame)
