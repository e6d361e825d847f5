"""Puts programs on functions of files: the process that holds the probes does it (`holder`)."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..holder.client import HOLDER, Withheld
from ..holder.links import AT_RETURN, Place
from ..outside.reads import is_copy
from .bpfobject import Link, Object
from .libbpf import BpfError
from .uprobes import Way

LOCKED = "scope_locked"
"""The program that lists locked address spaces."""


class WithheldError(BpfError):
    """Error for a probe that is withheld because the kernel would wait for other processes."""

    def __init__(self) -> None:
        super().__init__("attach uprobes", errno.EBUSY, [])
        self.cause = "the kernel would wait for a process that keeps its address space locked"


class Held(Link):
    """Probes that the other process holds."""

    def __init__(self, key: int) -> None:
        super().__init__(0)
        self._key = key

    def close(self) -> None:
        key, self._key = self._key, 0
        if key:
            HOLDER.close(key)


@dataclass
class Attached:
    """``refused``: places without a probe, and the number of the error."""

    links: list[Link] = field(default_factory=list)
    refused: dict[Place, int] = field(default_factory=dict)


def attach_possible(
    loaded: Object, way: Way, names: tuple[str, str, str], fd: int, places: Sequence[Place]
) -> Attached:
    """Attaches programs to those of the ``places`` of an open file that the kernel takes, at entry and return. BpfError
    if it refuses all, or for an error that is not of some places alone; WithheldError.

    ``names`` of the loaded programs: for both in one, for the entry, for the return; "" for none.
    """
    both, entry, end = names
    # Returns first: every call that is seen to begin is seen to end.
    steps = [(both, 0)] if way is Way.SESSION else [(end, AT_RETURN), (entry, 0)]
    return _attached(loaded, way, [step for step in steps if step[0]], fd, places)


def attach_entry(loaded: Object, name: str, fd: int, offset: int) -> Link:
    """Attaches a program to one instruction of an open file. BpfError, WithheldError as above."""
    (link,) = _attached(loaded, Way.SINGLE, [(name, 0)], fd, [Place(offset, 0)]).links
    return link


def _attached(loaded: Object, way: Way, steps: Sequence[tuple[str, int]], fd: int, places: Sequence[Place]) -> Attached:
    if is_copy(fd):
        raise BpfError("it is on a file system of an ordinary user, which could make a probe wait", errno.EPERM, [])
    programs = [(loaded.programs[name].fd, flags) for name, flags in steps]
    try:
        key, refused = HOLDER.attach(loaded.iterator(LOCKED), way.attach_type, programs, fd, places)
    except Withheld as error:
        raise WithheldError from error
    except OSError as error:
        raise BpfError("attach uprobes", error.errno or 0, []) from error
    return Attached([Held(key)], refused)
