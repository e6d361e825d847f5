"""Causes that several waits have in common, whoever calls: one sentence tells of all of them, or one row."""

from __future__ import annotations

import re

from .wait_functions import OF_DATABASES
from .wait_kinds import CHILD, HALTED, LOCK, PEER
from .wait_sums import Place

Key = tuple[object, ...]
"""Equal for waits with one cause; begins with their kind."""

DRIVERS_CALL = "ioctl"
"""The system call in which a program waits for a driver."""
_MANY_THINGS = (DRIVERS_CALL, "page fault")
"""System calls that wait for very different things: the kernel's function tells them apart."""
_OF_ONE_LOCK = re.compile(r"(rwsem_down|down|rwbase|percpu_rwsem)_(read|write)_?\w*")
"""Functions in which readers and writers wait for the same lock (kernel/locking/rwsem.c, rwbase_rt.c)."""
_IN_STEPS = frozenset(("fsync", "fdatasync", "sync_file_range", "msync", "sync", "syncfs"))
"""System calls that wait in several functions of the kernel, one after the other, for one thing."""
_BY_CALL = (PEER, CHILD)
"""Kinds of which the system call tells the cause. Condition variables, timers and events differ by their callers."""


def held_cause(process: str, place: Place) -> Key:
    """Cause of a wait for a lock, a device, memory: locks are shared by processes."""
    wait = place.wait
    if wait.lock:  # that of a database is shared by programs
        return wait.kind, "" if wait.lock in OF_DATABASES else process, wait.lock
    if wait.kind == LOCK:
        return wait.kind, _OF_ONE_LOCK.sub(r"\1", wait.kernel), wait.call
    if wait.kind == HALTED:  # wherever it was
        return wait.kind, process
    call = wait.call or wait.kernel
    return wait.kind, process, call or place.site.frames[-1:], wait.kernel if call in _MANY_THINGS else ""


def effect_cause(process: str, place: Place) -> Key:
    """Cause of a wait that others end."""
    frames = place.site.frames
    return place.kind, process, (place.wait.call or frames[-1:]) if place.kind in _BY_CALL else frames


def row_of(place: Place) -> object:
    """Equal for waits that share a row of the table."""
    return (place.state, place.site.frames) if place.wait.call in _IN_STEPS else place
