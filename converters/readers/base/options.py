"""Options that callers can pass to a reader."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ReadOptions:
    """Options that all readers accept; a reader ignores those that do not apply to its format."""

    pid: bool = False
    """Keep processes with the same name apart."""
    tid: bool = False
    """Keep threads apart."""
    addrs: bool = False
    """Include the address in the names of frames without a symbol."""
    event: str = ""
    """The only event to read; "" is the first one in the input."""
    inline: bool = False
    """Name inlined functions, using addr2line."""
    context: bool = False
    """Include file and line of inlined functions in their names, with ``inline``."""
    timeline: bool = True
    """Keep the time of each call in ``Profile.timeline``, if the format has it. Without it, less memory is needed."""
    in_order: bool = False
    """Treat the order of folded lines as their order in time, and make a timeline."""
