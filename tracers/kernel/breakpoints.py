"""Hardware breakpoints of the kernel on memory of a thread: a program runs when it writes there.

The processor has four registers for them, which the kernel sets when the thread gets a core. Numbers:
include/uapi/linux/hw_breakpoint.h and perf_event.h.
"""

from __future__ import annotations

import ctypes
import errno
import os
import time

from . import perf_events

REGISTERS = 4
"""Breakpoints that a thread can have, on x86."""
_TYPE = 5
_WRITE = 2
_LENGTH = 8
_DISABLED, _INHERIT, _NOT_IN_KERNEL, _REMOVE_ON_EXEC = 1 << 0, 1 << 1, 1 << 5, 1 << 36
_TRIES = 50


def open_breakpoint(tid: int, address: int) -> int:
    """A descriptor of a breakpoint on writes to the 8 bytes at ``address``, for a thread, and for the threads and
    processes that it makes from now on. OSError: ENOSPC if all registers are in use, ESRCH if the thread is gone."""
    attr = perf_events.Attr(type=_TYPE, sample_period=1, bp_type=_WRITE, bp_addr=address, bp_len=_LENGTH)
    attr.flags = _DISABLED | _INHERIT | _NOT_IN_KERNEL | _REMOVE_ON_EXEC
    try:
        return perf_events.open_event(attr, -1, tid)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    attr.flags &= ~_REMOVE_ON_EXEC  # since 5.13
    return perf_events.open_event(attr, -1, tid)


def cost() -> int | None:
    """ns that a trap takes here, measured on writes of this thread; None if there are no breakpoints."""
    word = ctypes.c_uint64(0)
    before = _writes(word)
    attr = perf_events.Attr(type=_TYPE, sample_period=1, bp_type=_WRITE, bp_len=_LENGTH, flags=_NOT_IN_KERNEL)
    attr.bp_addr = ctypes.addressof(word)
    try:
        fd = perf_events.open_event(attr, -1, 0)
    except OSError:
        return None
    try:
        return max(_writes(word) - before, 0)
    finally:
        os.close(fd)


def _writes(word: ctypes.c_uint64) -> int:
    """ns of one, by the median."""
    took = []
    for i in range(_TRIES):
        begin = time.perf_counter_ns()
        word.value = i
        took.append(time.perf_counter_ns() - begin)
    return sorted(took)[_TRIES // 2]
