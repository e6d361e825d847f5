"""A core for the tracer when all are busy."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from . import interrupts

_URGENT = -10
"""Niceness of a thread that must keep up with the host."""


@contextlib.contextmanager
def urgent() -> Iterator[None]:
    """Gives this thread a core before others, unless the user has changed its niceness, or it may not: on a busy host,
    what is not read in time is lost."""
    usual = os.getpriority(os.PRIO_PROCESS, 0)
    changed = False
    if not usual:
        with contextlib.suppress(OSError):  # a container may not allow it
            os.setpriority(os.PRIO_PROCESS, 0, _URGENT)
            changed = True
    try:
        yield
    finally:
        if changed:
            os.setpriority(os.PRIO_PROCESS, 0, usual)


@contextlib.contextmanager
def while_the_user_waits() -> Iterator[None]:
    """`urgent`, if the user has ended the trace by Ctrl-C: a host that is kept busy delays nothing that is left."""
    with urgent() if interrupts.ended_by_user() else contextlib.nullcontext():
        yield
