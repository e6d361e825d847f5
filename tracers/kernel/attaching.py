"""Puts probes on as many functions of a file as the kernel takes, and tells which it refuses.

The kernel refuses a probe on an instruction that it can neither emulate nor step, such as one with a lock prefix: not
when the probe is made, but when a process maps the file. While a file is mapped here, it is refused at once. A link of
many functions fails as a whole: it is made again of its halves.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from .bpfobject import Link, Object
from .libbpf import BpfError
from .uprobes import Place, Way, attach

SECONDS = 5.0
"""For a file whose functions are refused again and again; those that are left have no probe then."""
NOT_SUPPORTED = 524
"""ENOTSUPP of include/linux/errno.h: what the kernel says of such an instruction."""
NO_TIME = errno.ETIME
_OF_A_PLACE = frozenset((NOT_SUPPORTED, errno.EOPNOTSUPP, errno.EINVAL, errno.EIO))
"""Other errors are not those of single functions."""


@dataclass
class Attached:
    """``refused``: places without a probe, and the number of the error."""

    links: list[Link] = field(default_factory=list)
    refused: dict[Place, int] = field(default_factory=dict)


def attach_possible(
    loaded: Object, way: Way, names: tuple[str, str, str], fd: int, places: Sequence[Place]
) -> Attached:
    """Like `attach`; BpfError if the kernel refuses all, or for an error that is not of some functions alone."""
    found, until = Attached(), time.monotonic() + SECONDS
    # One event per function is slow to make again.
    size = 1 if way is Way.SINGLE else len(places)
    left = [places[i : i + size] for i in reversed(range(0, len(places), size))]
    try:
        with _mapped(fd):
            while left:
                part = left.pop()
                if time.monotonic() >= until and found.refused:
                    found.refused |= dict.fromkeys(part, NO_TIME)
                    continue
                try:
                    found.links += attach(loaded, way, names, fd, part)
                except BpfError as error:
                    if error.number not in _OF_A_PLACE:
                        raise
                    if len(part) == 1:
                        found.refused[part[0]] = error.number
                        if len(found.refused) == len(places):
                            raise
                    else:
                        left += [part[len(part) // 2 :], part[: len(part) // 2]]
    except BaseException:
        for link in found.links:
            link.close()
        raise
    return found


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
