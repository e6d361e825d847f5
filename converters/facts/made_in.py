"""Places where threads are created, from the stacks of those who create them."""

from __future__ import annotations

from ..model import Stack
from .stacks import Stacks
from .wait_sites import GAP, site_of


class Creators:
    """The places of many stacks, which have to live as long as this object: see `Stacks`."""

    def __init__(self) -> None:
        self._stacks = Stacks()

    def of(self, stack: Stack) -> tuple[str, ...]:
        """Functions as in `Site.frames`, outermost first: the program's own, and what it calls. Not that of the C
        library which creates threads: all have that. () if it is not known."""
        if not stack or any(frame.kind == "other" for frame in stack):
            return ()
        parts = self._stacks.of(stack)
        if not parts.end:
            return ()
        frames = site_of(parts).frames
        while len(frames) > 1 and frames[-1] in (parts.called, GAP):
            frames = frames[:-1]
        return frames
