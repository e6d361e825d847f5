"""A core for the tracer when all are busy."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

_URGENT = -10
"""Niceness of a thread that must keep up with the host."""


@contextlib.contextmanager
def urgent() -> Iterator[None]:
    """On a busy host, what is not read in time is lost: this thread gets a core before others, unless the user has
    changed its niceness, or it may not."""
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
