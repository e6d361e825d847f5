"""Locks in words: which one, and who has it. Names are unescaped (hostile)."""

from __future__ import annotations

from ..base.units import plural, share
from ..facts import thresholds
from ..model.locks import FUTEX, KERNEL, SHARED, LockTimes
from ..rules.holder import Holder
from .doing import doing

_UNNAMED = ("0x", "#", "in ")
"""Beginnings of names of the kernel's locks that tell neither a variable nor a type."""


def title(lock: LockTimes) -> str:
    """Words for a lock. Names are unescaped (hostile)."""
    kind = f"{lock.kind}, or another kind of wait," if lock.kind == FUTEX else lock.kind
    kind += " (used as a lock)" if lock.is_lock_like else ""
    if lock.owned_by == KERNEL:
        told = f"kernel's {kind} {lock.name}" + (f" of {lock.process} ({lock.pid})" if lock.pid else "")
        return f"{told}, taken in {lock.taken_in}" if lock.taken_in and lock.name.startswith(_UNNAMED) else told
    if lock.owned_by == SHARED:
        return f"{kind} {lock.name} of several processes"
    return f"{kind} {lock.name} of {lock.process} ({lock.pid})"


def company(lock: LockTimes) -> str:
    """``5.7 waited at a time; with others a wait takes 3.9 times as long as alone``; "" if nobody waited with others,
    or it is not known."""
    if lock.judged <= lock.alone or not lock.mean_waiting:
        return ""
    told = f"{lock.mean_waiting:.1f} waited at a time"
    if lock.factor is None or lock.alone < thresholds.ALONE_CALLS:
        return told
    return f"{told}; with others a wait takes {lock.factor:.1f} times as long as alone"


def holder(found: Holder) -> str:
    """``For 45.0 % of their time, 2 threads wait for the mutex table of train (7): 97.8 % of that while …``"""
    lock = found.lock
    if found.thread:
        whom = f"its thread {found.thread.thread} (tid {found.thread.tid})"
    else:
        whom = f"{found.process} (pid {found.pid}{'' if found.is_traced else ', not traced'})"
    whose, wait = ("its", "waits") if found.waiters == 1 else ("their", "wait")
    return (
        f"For {share(lock.time, found.wall)} of {whose} time, {plural(found.waiters, 'thread')} {wait} for the "
        f"{title(lock)}: {share(found.held, lock.time)} of that while {whom} has it{doing(found.doing)}."
    )
