"""Functions of PyTorch's process group for Gloo, by their mangled names.

They are C++'s and can throw: only their entries have probes. What follows the name in a mangled one, the types of the
arguments, changes with PyTorch's version.
"""

from __future__ import annotations

import re

from ...converters.collectives.signatures import GLOO_CLASS, signature_of

MANGLED = "_ZN4c10d16ProcessGroupGloo"
"""Begin of the names."""
_PART = re.compile(r"[1-9]\d?")
"""Length of a part of a name, which follows."""
_LIBRARY = re.compile(r"libtorch_cpu([-_.][-\w.]*)?\.so([.\d]*)")


def is_library(name: str) -> bool:
    """Whether a file of this name, without its folder, can have them."""
    return bool(_LIBRARY.fullmatch(name))


def function_of(mangled: str) -> str:
    """The readable name, without arguments, of a function of `signatures`; "" of others."""
    rest = mangled.removeprefix(MANGLED)
    if len(rest) == len(mangled) or "." in mangled:
        return ""
    if rest[:3] in ("C1E", "C2E"):  # the same function
        return f"{GLOO_CLASS}::{GLOO_CLASS.rpartition('::')[2]}"
    parts = []
    while found := _PART.match(rest):
        begin, size = found.end(), int(found[0])
        parts.append(rest[begin : begin + size])
        rest = rest[begin + size :]
    name = "::".join((GLOO_CLASS, *parts))
    return name if rest.startswith("E") and signature_of(name) else ""
