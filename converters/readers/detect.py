"""Chooses the reader for an input: by the requested name, or by the input's first bytes."""

from __future__ import annotations

from ..base.collection import no_collection
from ..base.errors import StallscopeError
from ..model import Profile
from .base.options import ReadOptions
from .base.protocol import Reader
from .base.source import Source, open_source
from .depth import bounded
from .foreign import recognise
from .registry import READERS


def formats() -> list[str]:
    """The names that `read` accepts."""
    return list(READERS)


def read(path: str, options: ReadOptions, name: str = "") -> tuple[str, Profile]:
    """The format and the profile of one input; ``-`` is standard input, ``name`` forces a format. StallscopeError."""
    with open_source(path) as source:
        name = name or detect(source)
        return name, read_source(source, options, name)


def read_source(source: Source, options: ReadOptions, name: str) -> Profile:
    """The profile of an input whose format is known, with stacks of bounded depth. Raises StallscopeError."""
    if options.event and not READERS[name].has_events:
        cause = f"{source.name} is {name}: it has no events to choose from"
        raise StallscopeError(cause, "leave out --event-filter; --value chooses what is shown", exit_code=2)
    source.format = name
    with no_collection():
        return bounded(module(name).read(source, options))


def detect(source: Source) -> str:
    """The format according to the first bytes. Raises StallscopeError."""
    if not source.head.strip():
        raise StallscopeError(f"{source.name} is empty", "was the recording made, and by a user who may?")
    if foreign := recognise(source.head):
        raise StallscopeError(f"{source.name} is {foreign.what}, which is not read", foreign.remedy)
    for name in READERS:
        if module(name).sniff(source.head):
            return name
    if all(line.startswith(b"#") for line in source.head.splitlines() if line.strip()):
        raise StallscopeError(f"{source.name} has nothing but comments", "was anything recorded?")
    nul = source.head.find(b"\0")
    line = source.head.count(b"\n", 0, nul) + 1
    damage = f"; line {line} has a NUL byte, which no text has" if nul >= 0 else ""
    raise StallscopeError(
        f"{source.name} looks like none of the formats that are read: {', '.join(READERS)}{damage}",
        "if it is one of them, --from NAME says so",
    )


def module(name: str) -> Reader:
    """The reader called ``name``."""
    return READERS[name].load()
