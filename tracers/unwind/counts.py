"""Counts of what the loader of unwind tables has done, and remarks on what a user has to know of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...converters.base.units import plural, share

_WORTH_A_NOTE = 0.01
"""Share of the time in user code."""


@dataclass(slots=True)
class Counts:
    """Statistics of the loader."""

    bytes: int = 0
    """Kernel memory of the tables."""
    problem: str = ""
    """Reason why the tables did not get their full budget; "" if they did."""
    files: int = 0
    """Files whose tables were loaded."""
    refused: dict[str, int] = field(default_factory=dict)
    """Files without a table, by reason."""
    evicted: int = 0
    """Tables evicted for lack of room."""
    no_room: int = 0
    """Tables and mappings for which there was no room."""
    left_out: int = 0
    """Files of processes that map very many, whose tables were not asked for."""
    late: frozenset[str] = frozenset()
    """Paths of files whose tables were still being compiled when the trace began."""
    only_loaded: bool = False
    """The late tables had been compiled before."""
    unfinished: int = 0
    """Files whose tables were not compiled when the trace ended."""
    compiled: int = 0
    """Files whose tables had to be compiled."""
    uncached: str = ""
    """Reason why newly compiled tables cannot be kept for the next trace; "" if they can."""

    def notes(self, late: int, total: int) -> list[str]:
        """Notes for the user: of ``total`` ns in user code, ``late`` ns are in stacks that lacked a late table."""
        notes = []
        if late and self.only_loaded:
            if late >= _WORTH_A_NOTE * total:
                cut_short = f"{share(late, total)} of the time in user code is in stacks cut short"
                notes.append(f"{cut_short}: unwind tables were still being loaded")
        elif late:
            again = "run it again"
            if self.unfinished:
                left = plural(self.unfinished, "file")
                again += f", or compile what is left ({left}) with `trace-doctor --prepare`"
            cut_short = f"{share(late, total)} of the time in user code is in stacks cut short"
            notes.append(f"{cut_short}: unwind tables were still being compiled; {again}")
        if self.compiled and self.uncached:
            notes.append(f"unwind tables had to be compiled, and will be the next time: {self.uncached}")
        return notes
