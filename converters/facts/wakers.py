"""Wakers, who end waits: names and functions, from the stacks and the labels of samples with wakers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..base.text import json_text
from ..model import Frame, Sample, Stack
from ..model.kinds import kind_of_module
from ..model.samples import Kind
from ..model.sites import Site
from ..model.wakers import links, own_part
from . import thresholds
from .wait_sites import Sites

_LARGEST = "4194304"
"""Text of the largest pid: PID_MAX_LIMIT of include/linux/threads.h."""
_EXITS = frozenset(("do_exit", "do_group_exit"))
"""Functions of the kernel that end a thread, or all threads of a process (kernel/exit.c)."""
NOBODY = ("[still waiting]", "[unknown waker]", "")
"""Names of those who are not known to have ended a wait."""


class Waker(NamedTuple):
    """Threads of one name in processes of one name, where they wake others; or an interrupt, such as ``[timer]``."""

    process: str
    thread: str
    """"" if it has the process's name."""
    frames: tuple[str, ...]
    """See `wait_sites.Site`; empty for interrupts."""


TIMEOUT = Waker("[timer]", "", ())
"""The timer of a thread's own."""


class WokenBy(NamedTuple):
    """A waker, and the time in ns of the waits that it has ended."""

    waker: Waker
    time: int


class Wakers:
    """Tells waits from who ended them. Cached by identity: samples share their stacks."""

    def __init__(self) -> None:
        self._sites = Sites()
        self._own: dict[int, Stack] = {}
        self._frames: dict[int, Frame] = {}
        self._stacks: dict[Stack, Stack] = {}
        self._site: dict[int, Site] = {}
        self._known: dict[tuple[int, int], Waker | None] = {}
        self._exits: dict[int, bool] = {}
        self._parts: dict[Stack, Stack] = {}

    def own(self, stack: Stack) -> Stack:
        """The wait's own part of a stack."""
        found = self._own.get(id(stack))
        if found is None:
            part = own_part(stack)
            found = self._own[id(stack)] = stack if len(part) == len(stack) else self._parts.setdefault(part, part)
        return found

    def of(self, sample: Sample) -> Waker | None:
        """Waker that ended the wait; None if nobody is known to have."""
        key = id(sample.stack), id(sample.labels)
        if key not in self._known:
            self._known[key] = self._find(sample)
        return self._known[key]

    def _find(self, sample: Sample) -> Waker | None:
        name = str(sample.label("waker") or "")
        if name in NOBODY:
            return None
        if name.startswith("["):
            return Waker(name, "", ())
        process = name.rpartition("-")[0] or name
        thread = str(sample.label("waker_thread") or "")
        found = links(sample.stack)
        frames = found[0][:-1] if found else ()
        return Waker(process, thread if thread != process else "", self.site_of(frames).frames)

    def is_exit(self, stack: Stack) -> bool:
        """Whether the waker was ending its thread or process: it gives nobody work."""
        found = self._exits.get(id(stack))
        if found is None:
            link = next(iter(links(stack)), ())[:-1]
            found = any(frame.name in _EXITS and _kind_of(frame) == "kernel" for frame in link)
            self._exits[id(stack)] = found
        return found

    def site_of(self, frames: Stack) -> Site:
        """Frames of a waker, innermost first."""
        stack = tuple(self._frame(frame) for frame in reversed(frames))
        stack = self._stacks.setdefault(stack, stack)  # it has to live as long as its site is known
        found = self._site.get(id(stack))
        if found is None:
            found = self._site[id(stack)] = self._sites.of(stack)
        return found

    def _frame(self, frame: Frame) -> Frame:
        """Frame with the kind that it has on a stack of its own."""
        known = self._frames.get(id(frame))
        if known is None:
            known = self._frames[id(frame)] = frame._replace(kind=_kind_of(frame))
        return known


def _kind_of(frame: Frame) -> Kind:
    """Kind of a waker's frame on a stack of its own. Python's functions have a file, and no module."""
    if frame.module:
        return kind_of_module(frame.module.path)
    return "python" if frame.file else "kernel"


def waker_pid(sample: Sample) -> int:
    """Pid of the process that ended the wait; 0 for interrupts, and if nobody is known to have."""
    name = str(sample.label("waker") or "")
    pid = "" if name.startswith("[") else name.rpartition("-")[2].partition(" ")[0]
    return int(pid) if pid.isascii() and pid.isdigit() and len(pid) <= len(_LARGEST) else 0


def longest(times: Mapping[Waker, int]) -> tuple[WokenBy, ...]:
    """Wakers with the most time."""
    if not times:  # as of most waits
        return ()
    ordered = sorted(times.items(), key=lambda entry: (-entry[1], entry[0]))
    return tuple(WokenBy(waker, time) for waker, time in ordered[: thresholds.WAKERS_KEPT])


def waker_json(waker: Waker, time: int) -> dict[str, Any]:
    """Plain data for ``json.dumps``; ``time`` in ns."""
    return {
        "process": json_text(waker.process),
        "thread": json_text(waker.thread or waker.process),
        "frames": [json_text(frame) for frame in waker.frames],
        "time_ns": time,
    }
