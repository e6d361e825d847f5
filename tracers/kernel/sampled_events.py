"""Events by which threads are sampled: a clock, or what the kernel or the hardware counts."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from typing import NamedTuple

from ...converters.base.errors import StallscopeError
from . import perf_events

_DISABLED, _EXCLUDE_KERNEL, _EXCLUDE_HYPERVISOR, _EXCLUDE_IDLE = 1 << 0, 1 << 5, 1 << 6, 1 << 7
_SET_PERIOD = 0x40082404
"""PERF_EVENT_IOC_PERIOD of include/uapi/linux/perf_event.h."""
_NO_COUNTER = (errno.ENOENT, errno.EOPNOTSUPP, errno.ENXIO, errno.ENODEV)
"""Errors of the kernel for a counter that is not there."""


class Event(NamedTuple):
    """``type`` and ``config`` of struct perf_event_attr."""

    type: int
    config: int


def _cache(cache: int, result: int) -> Event:
    """Read accesses: PERF_COUNT_HW_CACHE_*."""
    return Event(perf_events.TYPE_CACHE, cache | result << 16)


CLOCK = "cpu-clock"
EVENTS = {
    CLOCK: Event(perf_events.TYPE_SOFTWARE, 0),
    "page-faults": Event(perf_events.TYPE_SOFTWARE, 2),
    "cycles": Event(perf_events.TYPE_HARDWARE, 0),
    "instructions": Event(perf_events.TYPE_HARDWARE, 1),
    "cache-references": Event(perf_events.TYPE_HARDWARE, 2),
    "cache-misses": Event(perf_events.TYPE_HARDWARE, 3),
    "branches": Event(perf_events.TYPE_HARDWARE, 4),
    "branch-misses": Event(perf_events.TYPE_HARDWARE, 5),
    "ref-cycles": Event(perf_events.TYPE_HARDWARE, 9),
    "L1-dcache-load-misses": _cache(0, 1),
    "LLC-load-misses": _cache(2, 1),
    "dTLB-load-misses": _cache(3, 1),
}
"""Names as in perf."""


def open_on(cpu: int, name: str, frequency: int) -> int | None:
    """The descriptor of an event of this ``name``, of all threads on a CPU, ``frequency`` times a second; not enabled
    yet. None for a CPU that just went offline. StallscopeError where the kernel refuses it."""
    event = EVENTS[name]
    flags = perf_events.FREQUENCY | _DISABLED | _EXCLUDE_IDLE
    attr = perf_events.Attr(type=event.type, config=event.config, sample_period=frequency, flags=flags)
    try:
        return perf_events.open_event(attr, cpu)
    except OSError as error:
        if error.errno == errno.ENODEV and event.type == perf_events.TYPE_SOFTWARE:
            return None
        raise _refusal(name, error) from None


def set_period(fd: int, period: int) -> None:
    """Changes the period, in ns, of an event of the clock. OSError.

    Events of the clock have one even if they were opened with a frequency (perf_swevent_init_hrtimer() of
    kernel/events/core.c)."""
    fcntl.ioctl(fd, _SET_PERIOD, struct.pack("=Q", period))


def check(name: str, frequency: int) -> None:
    """StallscopeError for an event that this machine does not count. What else the kernel refuses is not told."""
    event = EVENTS[name]
    if event.type == perf_events.TYPE_SOFTWARE:
        return
    flags = perf_events.FREQUENCY | _DISABLED | _EXCLUDE_KERNEL | _EXCLUDE_HYPERVISOR
    attr = perf_events.Attr(type=event.type, config=event.config, sample_period=frequency, flags=flags)
    try:
        os.close(perf_events.open_event(attr, -1, 0))
    except OSError as error:
        if error.errno in _NO_COUNTER:
            raise _refusal(name, error) from None


def _refusal(name: str, error: OSError) -> StallscopeError:
    cause = f"no samples of {name}: {error.strerror}"
    if EVENTS[name].type != perf_events.TYPE_SOFTWARE and error.errno in _NO_COUNTER:
        cause = f"this machine does not count {name}: it has no such hardware counter, or hides it from us"
        return StallscopeError(cause, f"leave --event out, to sample by {CLOCK}; few virtual machines have counters")
    if error.errno == errno.EINVAL:
        return StallscopeError(cause, "ask for fewer samples: see /proc/sys/kernel/perf_event_max_sample_rate")
    return StallscopeError(cause, "`trace-doctor` says what is missing")
