"""Kinds of what a profile has lost: time and events, or only details of a stack.

A kind is a key of `Profile.lost`, and what is printed. Its begin tells its class: only this module writes
and reads that.
"""

from __future__ import annotations

from collections.abc import Mapping

NAMELESS = "frames without a name"
UNREADABLE = "user stacks that could not be read"
NOT_TAKEN = "[stack not taken (shed)]"
"""Frame in place of a user stack that was not walked, because the trace cost too much."""
_NOT_COMPLETE, _CUT, _FRAMES = "stacks not complete", "stacks cut", "frames without"
_INCOMPLETE = (_NOT_COMPLETE, _CUT, _FRAMES, UNREADABLE)
_TIME = "ns of "


def not_complete(why: str) -> str:
    """The kind of stacks that end too early."""
    return f"{_NOT_COMPLETE}: {why}"


def cut(how: str = "") -> str:
    """The kind of stacks of which a part is left out. ``how``: ``in the middle``."""
    return f"{_CUT} {how}".rstrip()


def frames_without(what: str) -> str:
    """The kind of frames of which something is not known."""
    return f"{_FRAMES} {what}"


def time_of(kind: str) -> str:
    """The kind under which the time of another one stands, in ns."""
    return f"{_TIME}{kind}"


def is_incomplete(kind: str) -> bool:
    """Whether no time is lost, only details of its stack."""
    return kind.startswith(_INCOMPLETE)


def divided(lost: Mapping[str, int]) -> tuple[dict[str, int], dict[str, int]]:
    """Losses that are missing, and those that only make it incomplete: numbers above 0 by kind, without times of other
    kinds."""
    found = {kind: number for kind, number in lost.items() if number and not kind.startswith(_TIME)}
    incomplete = {kind: number for kind, number in found.items() if is_incomplete(kind)}
    return {kind: number for kind, number in found.items() if kind not in incomplete}, incomplete
