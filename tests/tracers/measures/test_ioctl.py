"""Rows and calls of what the probes counted, and the layouts. With real calls: tests/live/test_ioctl.py."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model.calls import BUCKETS
from stallscope.tracers.engines.ebpf.probes import object_path
from stallscope.tracers.kernel.bpfobject import Object
from stallscope.tracers.kernel.libbpf import BpfError
from stallscope.tracers.kernel.records import BLOCKED, ON_CPU, ORIGIN, RUNNING, WAIT_SUM, Origin
from stallscope.tracers.measures import ioctl
from stallscope.tracers.measures.ioctl import Ioctl
from stallscope.tracers.measures.protocol import Ended

TUN = (0xFFFF, 10 << 20 | 200, stat.S_IFCHR)
"""ops, device, mode."""
CONTROL = (0xFFFE, 195 << 20 | 255, stat.S_IFCHR)
SETQUEUE, RM_CONTROL = 0x400454D9, 0xC020462A


def origin(state: int = RUNNING, kstack: int = 0, tgid: int = 7) -> Origin:
    return Origin(5, kstack, 0, 8, tgid, 0, state)


def target(file: tuple[int, int, int], command: int, detail: int = 0) -> bytes:
    return ioctl._TARGET.pack(*file, command, detail)


def site(of: Origin, what: bytes) -> bytes:
    return ORIGIN.pack(*of) + what


def total(count: int, ns: int, blocked: int, runnable: int, bucket: int) -> bytes:
    latencies = [count if i == bucket else 0 for i in range(BUCKETS)]
    return ioctl._SUM.pack(count, ns, blocked, runnable, 1, ns, ioctl._LATENCIES.pack(*latencies))


def measured(maps: Mapping[str, list[tuple[bytes, bytes]]], losses: tuple[int, ...] = (0, 0, 0, 0, 0)) -> Ioctl:
    """A measure that has read these maps; others are empty."""

    def find_map(name: str) -> Any:
        return SimpleNamespace(items=lambda: maps.get(name, []), lookup_percpu_u64=lambda i: losses[i])

    measure = Ioctl()
    program = SimpleNamespace(is_loaded=True, misses=losses[-1])
    programs = dict.fromkeys(("ioctl_enter", "ioctl_return"), program)
    programs |= {f"{name}_raw": SimpleNamespace(is_loaded=False) for name in programs}
    measure.read(SimpleNamespace(find_map=find_map, programs=programs))  # type: ignore[arg-type]
    return measure


def test_layouts_are_those_of_the_probes() -> None:
    opened = Object(object_path())
    try:
        sizes = {name: opened.find_map(f"ioctl_{name}") for name in ("calls", "sums", "waits", "failures", "names")}
        sites = ORIGIN.size + ioctl._TARGET.size
        assert {name: (each.key_size, each.value_size) for name, each in sizes.items()} == {
            "calls": (4, ioctl._CALL_HEAD.size + sites),
            "sums": (sites, ioctl._SUM.size),
            "waits": (sites, WAIT_SUM.size),
            "failures": (ioctl._TARGET.size + ioctl._KIND_TAIL.size + ioctl._FAILURE_TAIL.size, 8),
            "names": (16, ioctl._NAME.size),
        }
        assert opened.find_map("ioctl_losses").max_entries == len(ioctl._LOSSES)
    finally:
        opened.close()


def test_a_call_has_a_row_for_what_it_did_on_a_core_and_one_per_wait() -> None:
    waits = WAIT_SUM.pack(2, 600, 1, 1, 100, 1, 1)
    measure = measured(
        {
            "ioctl_sums": [(site(origin(), target(TUN, SETQUEUE)), total(3, 1000, 600, 100, 4))],
            "ioctl_waits": [(site(origin(2, 99), target(TUN, SETQUEUE)), waits)],
        }
    )
    rows = measure.rows(Ended(0, 1, []))
    assert [(row.state, row.values, row.origin.kstack) for row in rows] == [
        ("running", (300, 3), 0),
        ("uninterruptible", (600, 0), 99),
        ("runnable-woken", (100, 0), 99),
    ]
    assert {row.call for row in rows} == {"TUNSETQUEUE /dev/net/tun"}


def test_calls_are_added_up_by_process() -> None:
    failure = target(TUN, SETQUEUE) + ioctl._KIND_TAIL.pack(7, 0) + ioctl._FAILURE_TAIL.pack(22, 0)
    other = Origin(6, 0, 0, 9, 7, 0, RUNNING)
    measure = measured(
        {
            "ioctl_sums": [
                (site(origin(), target(TUN, SETQUEUE)), total(3, 1000, 600, 100, 4)),
                (site(other, target(TUN, SETQUEUE)), total(1, 50, 0, 0, 0)),
                (site(origin(tgid=77), target(TUN, SETQUEUE)), total(1, 5, 0, 0, 0)),
            ],
            "ioctl_failures": [(failure, (2).to_bytes(8, "little"))],
        }
    )
    one, two = measure.calls(Ended(0, 1, []))
    assert (one.name, one.device, one.pid, one.count, one.total) == ("TUNSETQUEUE", "/dev/net/tun", 7, 4, 1050)
    assert (one.min, one.max, one.blocked, one.runnable, one.errors) == (1, 1000, 600, 100, {"EINVAL": 2})
    assert (one.latencies[0], one.latencies[4], sum(one.latencies)) == (1, 3, 4)
    assert (two.pid, two.count, two.errors) == (77, 1, {})


def test_nvidias_controls_and_its_own_errors_have_names() -> None:
    known = target(CONTROL, RM_CONTROL, 0x20800102)
    failure = known + ioctl._KIND_TAIL.pack(7, 0) + ioctl._FAILURE_TAIL.pack(0, 0x1F)
    measure = measured(
        {
            "ioctl_sums": [(site(origin(), known), total(3, 9, 0, 0, 0))],
            "ioctl_failures": [(failure, (3).to_bytes(8, "little"))],
            "ioctl_names": [(known[:16], b"devtmpfs".ljust(16, b"\0") + b"nvidiactl".ljust(32, b"\0"))],
        }
    )
    (call,) = measure.calls(Ended(0, 1, []))
    assert (call.name, call.device) == ("NV2080_CTRL_CMD_GPU_GET_INFO_V2", "/dev/nvidiactl")
    assert call.errors == {"NV_ERR_INVALID_ARGUMENT": 3}


def thread(phase: int, **times: Any) -> Any:
    key = origin(2, 99)
    values = {"since": 400, "out": 400, "woken": 0, "runnable": 20, "blocked": (0, 0, 100, 0, 0, 0, 0, 0)} | times
    return SimpleNamespace(thread=SimpleNamespace(key=key, phase=phase, **values), end=1000, exited=False)


def test_a_call_that_goes_on_is_told() -> None:
    """Begun at 200; it had been blocked for 100 and queued for 20 by 400, and waits since then."""
    call = ioctl._CALL_HEAD.pack(200, 100, 20, 0, 0, 3) + site(origin(), target(TUN, SETQUEUE))
    returned = ioctl._CALL_HEAD.pack(0, 0, 0, 0, 0, 3) + site(origin(), target(TUN, SETQUEUE))
    measure = measured({"ioctl_calls": [(bytes(4), call), (b"\1\0\0\0", returned)]})
    ended = Ended(0, 1000, [thread(BLOCKED)])
    assert [(row.state, row.values, row.is_open) for row in measure.rows(ended)] == [
        ("running", (80, 0), True),
        ("uninterruptible", (600, 0), True),
    ]
    (found,) = measure.calls(ended)
    assert (found.count, found.open_count, found.open_time) == (0, 1, 800)
    assert list(measure.remarks()) == ["1 ioctl had not ended: their time is in the picture, up to the end"]
    (running,) = measure.rows(Ended(0, 1000, [thread(ON_CPU)]))
    assert running.values == (680, 0)


def test_losses_have_names() -> None:
    measure = measured({}, (1, 2, 3, 4, 5))
    assert list(measure.remarks()) == [
        "the kernel kept up to 5 ioctls of all processes from the probes: counts are too low by these"
    ]
    assert measure.losses() == {
        "ioctls": 1,
        "waits in ioctls without a stack": 2,
        "errors of ioctls": 3,
        "returns from ioctls": 4,
        "ioctls not reported by the kernel": 5,
    }


def test_without_the_tracepoints_it_says_what_is_missing() -> None:
    closed = []

    def refuse() -> Any:
        raise BpfError("attach ioctl_enter", 2, [])

    programs = {
        "ioctl_return": SimpleNamespace(attach=lambda: SimpleNamespace(close=lambda: closed.append(1))),
        "ioctl_enter": SimpleNamespace(attach=refuse),
    }
    with pytest.raises(StallscopeError) as caught:
        Ioctl().attach(SimpleNamespace(programs=programs), "")  # type: ignore[arg-type]
    assert "tracepoints of ioctl" in caught.value.cause
    assert "mount -t tracefs" in caught.value.remedy
    assert closed == [1]
