"""Waiting for file descriptors."""

from __future__ import annotations

import select
from collections.abc import Iterable


def readable(fds: Iterable[int], seconds: float) -> bool:
    """Whether one of them becomes readable in time. Unlike select.select(), for any number of a descriptor."""
    poll = select.poll()
    for fd in fds:
        poll.register(fd, select.POLLIN)
    return bool(poll.poll(seconds * 1000))
