"""Which reader an input needs: asked for by name, or found by its first bytes."""

from __future__ import annotations

import gc
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from ..errors import StallscopeError
from ..model import Profile
from .options import ReadOptions
from .source import Source, open_source

_READERS = {
    "pprof": "pprof",
    "mojo": "mojo",
    "pstats": "pstats",
    "chrome": "chrome",
    "speedscope": "speedscope",
    "vtune": "vtune",
    "bpftrace": "bpftrace",
    "gdb": "gdb",
    "stap": "stap",
    "dtrace": "dtrace",
    "bcc": "bcc",
    "perf_sched": "perf_sched",
    "faulthandler": "faulthandler",
    "austin": "austin",
    "pyspy": "pyspy",
    "perf": "perf",
    "folded": "folded",
}
"""Name → module in this package, imported when it is needed; the strictest look first."""

_PERF_DATA = b"PERFILE2"
"""How perf.data begins (tools/perf/Documentation/perf.data-file-format.txt of Linux)."""


def formats() -> list[str]:
    """The names that `read` knows."""
    return list(_READERS)


def read(path: str, options: ReadOptions, name: str = "") -> tuple[str, Profile]:
    """The format and the profile of one input; ``-`` is standard input, ``name`` forces a format. StallscopeError."""
    with open_source(path) as source:
        name = name or detect(source)
        return name, read_source(source, options, name)


def read_source(source: Source, options: ReadOptions, name: str) -> Profile:
    """The profile of an input whose format is known. Raises StallscopeError."""
    with no_collection():
        profile: Profile = module(name).read(source, options)
    return profile


def detect(source: Source) -> str:
    """The format that the first bytes tell. Raises StallscopeError."""
    if not source.head.strip():
        raise StallscopeError(f"{source.name} is empty", "was the recording made, and by a user who may?")
    if source.head.startswith(_PERF_DATA):
        raise StallscopeError(
            f"{source.name} is a recording of perf, not its text", "perf script -i FILE | trace-convert -"
        )
    for name in _READERS:
        if module(name).sniff(source.head):
            return name
    raise StallscopeError(
        f"{source.name}, line 1: expected one of the formats {', '.join(_READERS)}",
        "force one with --from NAME",
    )


@contextmanager
def no_collection() -> Iterator[None]:
    """Without Python's search for cycles, for a while: among millions of frames and tuples, where there are none, it
    takes as long as all the rest."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def module(name: str) -> ModuleType:
    """The reader called ``name``."""
    return importlib.import_module(f"{__package__}.{_READERS[name]}")
