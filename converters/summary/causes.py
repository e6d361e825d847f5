"""Which waits have one cause, whoever calls: one sentence tells of all of them, or one row."""

from __future__ import annotations

from .adding_up import Place
from ..facts.wait_kinds import CHILD, LOCK, PEER, user_lock

Key = tuple[object, ...]
"""Equal for waits with one cause; begins with their kind."""

_MANY_THINGS = ("ioctl", "page fault")
"""System calls that wait for very different things: the kernel's function tells them apart."""
_IN_STEPS = frozenset(("fsync", "fdatasync", "sync_file_range", "msync", "sync", "syncfs"))
"""System calls that wait in several functions of the kernel, one after the other, for one thing."""
_BY_CALL = (PEER, CHILD)
"""Kinds of which the system call tells the cause. Condition variables, timers and events differ by their callers."""


def held_cause(process: str, place: Place) -> Key:
    """Of a wait for a lock, a device, memory: locks are shared by processes."""
    frames, kernel = place.site
    if lock := user_lock(frames, kernel):
        return place.kind, process, lock
    if place.kind == LOCK:
        return place.kind, kernel, frames[-1:]
    call = frames[-1] if frames else kernel
    return place.kind, process, call, kernel if call in _MANY_THINGS else ""


def effect_cause(process: str, place: Place) -> Key:
    """Of a wait that others end."""
    frames = place.site.frames
    return place.kind, process, frames[-1:] if place.kind in _BY_CALL else frames


def row_of(place: Place) -> object:
    """Equal for waits that share a row of the table."""
    frames = place.site.frames
    return (place.state, frames) if frames and frames[-1] in _IN_STEPS else place
