"""Who woke a thread, in its stack: FlameGraph's chain graphs.

A stack of a wait is followed by `SEPARATOR`, the frames of the thread that ended the wait, innermost first, and that
thread's process; then the same for the one that had ended a wait of that thread meanwhile, and so on. They are of
kind `WAKER`.
"""

from __future__ import annotations

from typing import Final

from .samples import Frame, Kind, Stack

WAKER: Final[Kind] = "waker"
SEPARATOR = Frame("--", "other")


def has_waker(stack: Stack) -> bool:
    """Whether it tells who ended the wait."""
    return bool(stack) and stack[-1].kind == WAKER


def own_part(stack: Stack) -> Stack:
    """The stack of the wait itself."""
    if not has_waker(stack):
        return stack
    return stack[: stack.index(SEPARATOR)] if SEPARATOR in stack else stack


def links(stack: Stack) -> list[Stack]:
    """The wakers, the one that ended the wait first: frames, innermost first, and a frame that names its process."""
    found: list[list[Frame]] = []
    for frame in stack[len(own_part(stack)) :]:
        if frame == SEPARATOR:
            found.append([])
        elif found:
            found[-1].append(frame)
    return [tuple(frames) for frames in found if frames]
