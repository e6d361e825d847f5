"""Rows and calls that engines count which resolve names later, by the ids of threads and stacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..kernel.records import Origin, Waker

if TYPE_CHECKING:
    from ...converters.model.calls import CallTimes

LEFT_OUT = "calls and waits left out of who was inside"
"""A kind of loss of calls: see `sharing`."""


class Row(NamedTuple):
    """Row of what was counted at one origin. ``values``: one per column of the measure, in order."""

    origin: Origin
    state: str
    """The label ``state``: see `converters.model.states`."""
    values: tuple[int, ...]
    is_open: bool = False
    """The wait had not ended when the trace did."""
    call: str = ""
    """The call into the kernel that it is part of: a frame between the user's and the kernel's; "" for none."""
    wakers: tuple[Waker, ...] = ()
    """Chain of wakers, for the measure of wake-ups: who ended the wait, who ended that one's meanwhile, and so on."""


class Timed(NamedTuple):
    """The calls of one thread of one function, or of one command on one device: without names of process and thread.

    ``origin`` says whose they are; it has no stacks. The same may occur several times.
    """

    origin: Origin
    calls: CallTimes
