"""Hardware breakpoints of the kernel on memory of a thread: a program runs when it writes there.

The processor has four registers for them, which the kernel sets when the thread gets a core. Numbers:
include/uapi/linux/hw_breakpoint.h and perf_event.h.

A trap's cause is in the register DR6. Where that says nothing, exc_debug_user() of arch/x86/kernel/traps.c takes the
trap for an `int1` of the program, and sends SIGTRAP, which ends the program. A processor always says it. Hypervisors
can lose the register's value: KVM before c2fee09fc167 ("KVM: x86: Load DR6 with guest value only before entering
.vcpu_run() loop", CVE-2025-21839) does.
"""

from __future__ import annotations

import contextlib
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
_CPUINFO = "/proc/cpuinfo"


def on_virtual_machine() -> bool:
    """Whether a hypervisor runs this kernel, as the processor's flags tell."""
    with contextlib.suppress(OSError), open(_CPUINFO) as file:
        for line in file:
            name, _, value = line.partition(":")
            if name.strip() == "flags":
                return "hypervisor" in value.split()
    return False


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
    """ns that a trap takes here, measured by a process of its own; None if there are no breakpoints."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.write(write, str(_cost()).encode())
        finally:
            os._exit(0)
    os.close(write)
    with open(read, "rb") as file:
        told = file.read()
    os.waitpid(pid, 0)
    return int(told) if told.isdigit() else None


def _cost() -> int | None:
    """Cost of writes of this thread."""
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
