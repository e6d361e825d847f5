"""Makes links at as many places of a file as the kernel takes, and tells which it refuses.

The kernel refuses a probe on an instruction that it can neither emulate nor step, such as one with a lock prefix: not
when the probe is made, but when a process maps the file. While a file is mapped here, it is refused at once. A link of
many places fails as a whole: it is made again of its halves.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from .links import Place, link_many, link_one

SECONDS = 5.0
"""Seconds for a file whose functions are refused again and again; those that are left have no probe then."""
NOT_SUPPORTED = 524
"""ENOTSUPP of include/linux/errno.h: what the kernel says of such an instruction."""
NO_TIME = errno.ETIME
_OF_A_PLACE = frozenset((NOT_SUPPORTED, errno.EOPNOTSUPP, errno.EINVAL, errno.EIO))
"""Other errors are not those of single functions."""
Step = tuple[int, int]
"""A program's descriptor, and flags: `links.AT_RETURN`."""


class Made(NamedTuple):
    """``refused``: places without a probe, and the number of the error."""

    fds: list[int]
    refused: dict[Place, int]


def make(attach_type: int, steps: Sequence[Step], fd: int, places: Sequence[Place]) -> list[int]:
    """Links of all places, with one after the other program; returns their descriptors. OSError if one is refused.
    ``attach_type`` is 0 for an event at each place."""
    path = b"/proc/self/fd/%d" % fd
    fds: list[int] = []
    try:
        for program, flags in steps:
            if attach_type:
                fds.append(link_many(program, attach_type, path, places, flags))
            else:
                for place in places:
                    fds += link_one(program, path, place, flags)
    except BaseException:
        close_all(fds)
        raise
    return fds


def make_possible(
    attach_type: int, steps: Sequence[Step], fd: int, places: Sequence[Place], goes_on: Callable[[], None]
) -> Made:
    """Makes what is possible, as `make` does; OSError if the kernel refuses all, or for an error that is not of some
    places alone. ``goes_on`` is called when there is progress."""
    found, until = Made([], {}), time.monotonic() + SECONDS
    # One event per place is slow to make again.
    size = len(places) if attach_type else 1
    left = [places[i : i + size] for i in reversed(range(0, len(places), size))]
    try:
        with _mapped(fd):
            while left:
                part = left.pop()
                if time.monotonic() >= until and found.refused:
                    found.refused.update(dict.fromkeys(part, NO_TIME))
                    continue
                try:
                    found.fds.extend(make(attach_type, steps, fd, part))
                except OSError as error:
                    if error.errno not in _OF_A_PLACE:
                        raise
                    if len(part) == 1:
                        found.refused[part[0]] = error.errno
                        if len(found.refused) == len(places):
                            raise
                    else:
                        left += [part[len(part) // 2 :], part[: len(part) // 2]]
                goes_on()
    except BaseException:
        close_all(found.fds)
        raise
    return found


def close_all(fds: Sequence[int]) -> None:
    for fd in fds:
        os.close(fd)


@contextlib.contextmanager
def _mapped(fd: int) -> Iterator[None]:
    """The file is mapped as a library is, though not for execution."""
    try:
        memory = mmap.mmap(fd, 0, mmap.MAP_PRIVATE, mmap.PROT_READ)
    except (OSError, ValueError):
        yield  # then the kernel refuses what it does when a process maps the file
        return
    with memory:
        yield
