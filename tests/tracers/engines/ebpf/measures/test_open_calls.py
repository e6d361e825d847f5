from __future__ import annotations

import pytest
from stallscope.tracers.engines.ebpf.measures.open_calls import (
    CALL,
    DEPTH,
    HEAD,
    Inside,
    open_calls,
    parts,
    waits_of_ioctl,
)
from stallscope.tracers.engines.ebpf.measures.protocol import Ended
from stallscope.tracers.kernel.records import BLOCKED, ON_CPU, ThreadRecord, pack_thread, parse_thread


def stack(*calls: tuple[int, ...], ioctl: tuple[int, int, int] = (0, 0, 0)) -> bytes:
    packed = [CALL.pack(*call, *[0] * 6) for call in calls]
    return HEAD.pack(len(calls), 0, 0, 0, 0, *ioctl, 0, 0) + b"".join(packed).ljust(DEPTH * CALL.size, b"\0")


def call(began: int, function: int, blocked: int = 0, inner: int = 0, inner_on_cpu: int = 0) -> tuple[int, ...]:
    return began, 1, 2, 3, 100 + function, blocked, 0, inner, inner_on_cpu, function | 1 << 32, 0, 0


def record(phase: int, out: int, end: int) -> ThreadRecord:
    thread = parse_thread(pack_thread((8, 7), 1, "uninterruptible", phase, 0))
    return ThreadRecord(end, b"x", thread._replace(out=out), exited=False)


def test_an_inner_call_that_waits() -> None:
    """The outer call began at 100, has had an inner one of 300 (of which 200 on a core); the open inner one began at
    500 and waits since 600; the trace ended at 1000."""
    calls = open_calls([(8, stack(call(100, 0, blocked=100, inner=300, inner_on_cpu=200), call(500, 1)))])
    inner, outer = parts(calls, Ended(0, 1000, [record(BLOCKED, 600, 1000)]))
    assert (inner.function, inner.whole, inner.on_cpu, inner.blocked, inner.inner) == (1, 500, 100, 400, 0)
    assert inner.wait is not None
    assert (outer.function, outer.whole, outer.inner, outer.wait) == (0, 900, 800, None)
    # 900 in all, 500 blocked; of the rest 200 and 100 are those of inner calls.
    assert outer.on_cpu == 900 - 500 - 300
    assert inner.origin.ustack == 101
    assert (inner.origin.tid, inner.origin.tgid) == (8, 7)
    assert inner.on_cpu + inner.blocked + outer.on_cpu + 300 == outer.whole


def test_a_call_on_a_core() -> None:
    calls = open_calls([(8, stack(call(100, 0)))])
    (part,) = parts(calls, Ended(0, 1000, [record(ON_CPU, 50, 1000)]))
    assert (part.whole, part.on_cpu, part.wait) == (900, 900, None)


@pytest.mark.parametrize("threads", [[], [record(ON_CPU, 0, 1000)._replace(exited=True)]])
def test_threads_that_are_gone(threads: list[ThreadRecord]) -> None:
    assert parts(open_calls([(8, stack(call(100, 0)))]), Ended(0, 1000, threads)) == []


def test_nothing_is_open() -> None:
    assert open_calls([(8, stack()), (9, HEAD.pack(0, 3, *[0] * 8) + bytes(DEPTH * CALL.size))]) == []


def test_an_ioctl_that_goes_on() -> None:
    """The inner call began at 500, its ioctl at 550; that waited for 30, then again from 600 to the end at 1000."""
    value = stack(call(100, 0), call(500, 1, blocked=30), ioctl=(550, 20, 10))
    inside = Inside(550, 77, 5, *waits_of_ioctl(value, 550))
    inner, outer = parts(open_calls([(8, value)]), Ended(0, 1000, [record(BLOCKED, 600, 1000)]), {8: inside})
    assert inner.ioctl_origin is not None
    assert (inner.ioctl_origin.ustack, inner.ioctl_origin.state >> 8) == (77, 5)
    assert (inner.ioctl_on_cpu, inner.on_cpu, inner.ioctl_time) == (450 - 30 - 400, 500 - 30 - 400 - 20, 450)
    assert inner.wait is not None
    assert (inner.wait.ustack, inner.wait.state >> 8, inner.blocked) == (77, 5, 400)
    assert (outer.ioctl, outer.ioctl_origin, outer.ioctl_time) == (inside, None, 450)


def test_an_ioctl_of_before_the_call_is_not_in_it() -> None:
    (part,) = parts(
        open_calls([(8, stack(call(500, 1)))]), Ended(0, 1000, [record(ON_CPU, 0, 1000)]), {8: Inside(1, 7, 5)}
    )
    assert (part.ioctl, part.ioctl_origin, part.on_cpu) == (None, None, 500)


def test_waits_of_another_ioctl() -> None:
    assert waits_of_ioctl(stack(call(1, 0), ioctl=(550, 20, 10)), 551) == (0, 0)
