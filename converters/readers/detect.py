"""Which reader an input needs: asked for by name, or found by its first bytes."""

from __future__ import annotations

import importlib
from types import ModuleType

from ..errors import StallscopeError
from ..model import Profile
from .options import ReadOptions
from .source import Source, open_source

_READERS = {"pprof": "pprof", "speedscope": "speedscope", "perf": "perf", "folded": "folded"}
"""Name → module in this package, imported when it is needed; the strictest look first."""


def formats() -> list[str]:
    """The names that `read` knows."""
    return list(_READERS)


def read(path: str, options: ReadOptions, name: str = "") -> tuple[str, Profile]:
    """The format and the profile of one input; ``-`` is standard input, ``name`` forces a format. StallscopeError."""
    with open_source(path) as source:
        name = name or _detect(source)
        profile: Profile = _module(name).read(source, options)
    return name, profile


def _detect(source: Source) -> str:
    if not source.head.strip():
        raise StallscopeError(f"{source.name} is empty", "was the recording made, and by a user who may?")
    for name in _READERS:
        if _module(name).sniff(source.head):
            return name
    raise StallscopeError(
        f"{source.name}, line 1: expected one of the formats {', '.join(_READERS)}",
        "force one with --from NAME; perf.data becomes text by: perf script",
    )


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"{__package__}.{_READERS[name]}")
