"""Calls that had not returned when the trace ended: their time up to then."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from ....kernel.records import BLOCKED, NEW, ON_CPU, Origin, ThreadRecord
from ....kernel.records import PREEMPTED as SWITCHED_OUT
from ....kernel.records import RUNNING as ON_A_CORE
from .ioctl_records import NUMBER_SHIFT
from .protocol import Ended

DEPTH = 8
"""CALL_DEPTH of bpf/include/open_calls.bpf.h."""
HEAD = struct.Struct("<II8Q")
"""Depth, life; how often the programs ran for the thread, and for how long in ns; whether one was at work; begin of the
ioctl in which the last wait was, and its blocked and its runnable time; length and end of the last call that was asked
about."""
CALL = struct.Struct("<18Q")
_FUNCTION = (1 << 32) - 1
"""Mask of the function in a cookie."""


class Longest(NamedTuple):
    """A wait: its length in ns, with bit 62 set if the thread was blocked; and where it was."""

    weight: int = 0
    ustack: int = 0
    kstack: int = 0
    state: int = 0


class Open(NamedTuple):
    """struct open_call, of a thread; times in ns. ``depth``: 0 for the outermost."""

    tid: int
    depth: int
    began: int
    ustack: int
    blocked: int
    runnable: int
    inner: int
    inner_on_cpu: int
    function: int
    life: int = 0
    """Life of the thread."""
    slow_blocked: int = 0
    """Part of ``blocked`` in inner calls that counted, where only the return tells whether a call counts; likewise
    ``slow_runnable``. ``longest``: the longest of the waits."""
    slow_runnable: int = 0
    longest: Longest = Longest()


class Inside(NamedTuple):
    """The ioctl that a thread is in; times in ns. Waits are those that have ended."""

    began: int
    ustack: int
    number: int
    """Number of the ioctl's target."""
    blocked: int = 0
    runnable: int = 0


class Part(NamedTuple):
    """Part that an open call adds; times in ns. ``on_cpu``: its own, without that of inner calls and of an ioctl."""

    tgid: int
    function: int
    whole: int
    origin: Origin
    on_cpu: int
    inner: int
    """Time in calls that it made."""
    wait: Origin | None = None
    blocked: int = 0
    runnable: int = 0
    ioctl: Inside | None = None
    """Ioctl in which the thread is, also for outer calls; None: none."""
    ioctl_origin: Origin | None = None
    """Origin of the ioctl, for the innermost call, if the thread is in one."""
    ioctl_on_cpu: int = 0
    ioctl_time: int = 0
    """Time since the begin of the ioctl."""


def open_calls(stacks: Iterable[tuple[int, bytes]]) -> list[Open]:
    """The open calls in the values of the map ``call_stacks``, which are given with their threads' ids."""
    found = []
    for tid, value in stacks:
        depth, life = HEAD.unpack_from(value)[:2]
        for i in range(min(depth, DEPTH)):
            fields = CALL.unpack_from(value, HEAD.size + i * CALL.size)
            began, _sp, _returns, _callers, ustack, blocked, runnable, inner, on_cpu, cookie, *more = fields
            _bytes, _copy, slow_blocked, slow_runnable, *wait = more
            slow = slow_blocked, slow_runnable, Longest(*wait)
            found.append(Open(tid, i, began, ustack, blocked, runnable, inner, on_cpu, cookie & _FUNCTION, life, *slow))
    return found


def waits_of_ioctl(value: bytes, began: int) -> tuple[int, int]:
    """Blocked and runnable ns of the ended waits in the ioctl that began then, from a value of ``call_stacks``."""
    _, _, _, _, _, ioctl, blocked, runnable, _, _ = HEAD.unpack_from(value)
    return (blocked, runnable) if ioctl == began else (0, 0)


def parts(calls: Iterable[Open], ended: Ended, ioctls: Mapping[int, Inside] = MappingProxyType({})) -> list[Part]:
    """The parts of these calls, for threads that still exist. ``ioctls``: by thread."""
    records = {record.thread.key.tid: record for record in ended.threads if not record.exited}
    by_thread: dict[int, list[Open]] = defaultdict(list)
    for call in calls:
        by_thread[call.tid].append(call)
    found = []
    for tid, stack in by_thread.items():
        if tid in records:
            found += _of_thread(sorted(stack, key=lambda call: -call.depth), records[tid], ioctls.get(tid))
    return found


def _of_thread(innermost_first: Sequence[Open], record: ThreadRecord, ioctl: Inside | None) -> list[Part]:
    found: list[Part] = []
    key = record.thread.key
    blocked, runnable = _present_wait(record, innermost_first[0].began)
    inner = inner_on_cpu = sum_blocked = sum_runnable = 0
    if ioctl and ioctl.began < innermost_first[0].began:
        ioctl = None
    for call in innermost_first:
        whole = max(record.end - call.began, 0)
        sum_blocked += call.blocked + (blocked if not found else 0)
        sum_runnable += call.runnable + (runnable if not found else 0)
        on_cpu = max(whole - sum_blocked - sum_runnable, 0)
        own = max(on_cpu - call.inner_on_cpu - inner_on_cpu, 0)
        origin = Origin(call.ustack, 0, 0, key.tid, key.tgid, key.life, ON_A_CORE)
        inside = max(record.end - ioctl.began, 0) if ioctl else 0
        part = Part(key.tgid, call.function, whole, origin, own, call.inner + inner, ioctl=ioctl, ioctl_time=inside)
        found.append(part if found else _innermost(part, record, ioctl, blocked, runnable))
        inner, inner_on_cpu = whole, on_cpu
    return found


def _innermost(part: Part, record: ThreadRecord, ioctl: Inside | None, blocked: int, runnable: int) -> Part:
    """Adds the wait that the thread is in, and the time that is the ioctl's."""
    key = record.thread.key
    wait = key if blocked or runnable else None
    if ioctl:
        waited = ioctl.blocked + ioctl.runnable + blocked + runnable
        on_cpu = min(max(record.end - ioctl.began - waited, 0), part.on_cpu)
        number = ioctl.number << NUMBER_SHIFT
        origin = part.origin._replace(ustack=ioctl.ustack, state=ON_A_CORE | number)
        part = part._replace(on_cpu=part.on_cpu - on_cpu, ioctl_origin=origin, ioctl_on_cpu=on_cpu)
        wait = wait and wait._replace(ustack=ioctl.ustack, state=wait.state | number)
    return part._replace(wait=wait, blocked=blocked, runnable=runnable) if wait else part


def _present_wait(record: ThreadRecord, began: int) -> tuple[int, int]:
    """Blocked and runnable time of the wait that the thread is in, up to the end, if it began after ``began``."""
    thread = record.thread
    if thread.phase == ON_CPU or thread.out < began:
        return 0, 0
    whole = record.end - thread.out
    blocked = 0
    if thread.phase == BLOCKED:
        blocked = whole
    elif thread.key.state not in (SWITCHED_OUT, NEW) and thread.woken:
        blocked = thread.woken - thread.out
    return blocked, whole - blocked
