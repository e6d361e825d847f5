"""What a caller may ask of a reader."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ReadOptions:
    """Choices that every reader understands (or ignores where its format has no use for them)."""

    pid: bool = False
    """Tell processes of one name apart."""
    tid: bool = False
    """Tell threads apart."""
    addrs: bool = False
    """Name frames without a symbol by their address too."""
    event: str = ""
    """The only event to read; "" is the first one in the input."""
    inline: bool = False
    """Name the functions that were inlined, as addr2line knows them."""
    context: bool = False
    """With ``inline``: name them with their file and line."""
    timeline: bool = True
    """Keep when each call was, where the format tells, in ``Profile.timeline``. Without it, less memory is needed."""
    in_order: bool = False
    """Take the order of folded lines for the order of time: they make a timeline too."""
