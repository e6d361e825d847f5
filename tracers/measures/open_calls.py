"""Calls that had not returned when the trace ended: their time up to then."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..kernel.records import BLOCKED, NEW, ON_CPU, Origin, ThreadRecord
from ..kernel.records import PREEMPTED as SWITCHED_OUT
from ..kernel.records import RUNNING as ON_A_CORE
from .protocol import Ended

DEPTH = 8
"""CALL_DEPTH of bpf/include/calls.bpf.h."""
HEAD = struct.Struct("<IIQQ")
"""Depth, life; how often the programs ran for the thread, and for how long in ns."""
CALL = struct.Struct("<10Q")
_FUNCTION = (1 << 32) - 1
"""Of a cookie."""


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


class Part(NamedTuple):
    """What an open call adds; times in ns. ``on_cpu``: its own, without that of inner calls."""

    tgid: int
    function: int
    whole: int
    origin: Origin
    on_cpu: int
    inner: int
    """In calls that it made."""
    wait: Origin | None = None
    blocked: int = 0
    runnable: int = 0


def open_calls(stacks: Iterable[tuple[int, bytes]]) -> list[Open]:
    """The open calls in the values of the map ``call_stacks``, which are given with their threads' ids."""
    found = []
    for tid, value in stacks:
        depth = HEAD.unpack_from(value)[0]
        for i in range(min(depth, DEPTH)):
            began, _sp, _returns, _callers, ustack, blocked, runnable, inner, on_cpu, cookie = CALL.unpack_from(
                value, HEAD.size + i * CALL.size
            )
            found.append(Open(tid, i, began, ustack, blocked, runnable, inner, on_cpu, cookie & _FUNCTION))
    return found


def parts(calls: Iterable[Open], ended: Ended) -> list[Part]:
    """The parts of these calls, for threads that still exist."""
    records = {record.thread.key.tid: record for record in ended.threads if not record.exited}
    by_thread: dict[int, list[Open]] = defaultdict(list)
    for call in calls:
        by_thread[call.tid].append(call)
    found = []
    for tid, stack in by_thread.items():
        if tid in records:
            found += _of_thread(sorted(stack, key=lambda call: -call.depth), records[tid])
    return found


def _of_thread(innermost_first: Sequence[Open], record: ThreadRecord) -> list[Part]:
    found: list[Part] = []
    key = record.thread.key
    blocked, runnable = _present_wait(record, innermost_first[0].began)
    wait = key if blocked or runnable else None
    inner = inner_on_cpu = sum_blocked = sum_runnable = 0
    for call in innermost_first:
        whole = max(record.end - call.began, 0)
        sum_blocked += call.blocked + (blocked if not found else 0)
        sum_runnable += call.runnable + (runnable if not found else 0)
        on_cpu = max(whole - sum_blocked - sum_runnable, 0)
        own = max(on_cpu - call.inner_on_cpu - inner_on_cpu, 0)
        origin = Origin(call.ustack, 0, 0, key.tid, key.tgid, key.life, ON_A_CORE)
        part = Part(key.tgid, call.function, whole, origin, own, call.inner + inner)
        if not found and wait:
            part = part._replace(wait=wait, blocked=blocked, runnable=runnable)
        found.append(part)
        inner, inner_on_cpu = whole, on_cpu
    return found


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
