"""Wakers of a thread in its stack: FlameGraph's chain graphs.

A stack of a wait is followed by `SEPARATOR`, the frames of the thread that ended the wait, innermost first, and that
thread's process; then the same for the one that had ended a wait of that thread meanwhile, and so on. They are of
kind `WAKER`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from .samples import Frame, Kind, Sample, Stack

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


def joined_tids(tids: Iterable[int]) -> str:
    """The label ``chain_tids``: the thread of each link, 0 for an interrupt."""
    return " ".join(map(str, tids))


def tids_of(sample: Sample, links: int) -> list[int]:
    """The thread of each of the ``links`` of a sample's chain; 0 for an interrupt, or if it is not known."""
    text = str(sample.label("chain_tids") or sample.label("waker_tid") or "0")
    tids = [int(tid) if tid.isdecimal() and len(tid) < 12 else 0 for tid in text.split(" ")[:links]]
    return tids + [0] * (links - len(tids))
