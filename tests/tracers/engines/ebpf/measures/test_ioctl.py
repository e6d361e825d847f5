"""Rows and calls of what the probes counted, and the layouts. With real calls: tests/live/test_ioctl.py."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model.calls import BUCKETS, together
from stallscope.tracers.engines.ebpf.measures import ioctl
from stallscope.tracers.engines.ebpf.measures.ioctl import IoctlCollector
from stallscope.tracers.engines.ebpf.measures.ioctl_records import (
    CALL,
    CALL_HEAD,
    FAILURE,
    FILE,
    KIND,
    NAME,
    SUM,
    TARGET,
    TIMES,
)
from stallscope.tracers.engines.ebpf.measures.protocol import Ended
from stallscope.tracers.engines.ebpf.measures.recorder import RING
from stallscope.tracers.engines.ebpf.measures.shared_rings import SharedRings
from stallscope.tracers.engines.ebpf.probes import object_path
from stallscope.tracers.engines.sharing import EVENT
from stallscope.tracers.kernel import tracepoints
from stallscope.tracers.kernel.bpfobject import Object
from stallscope.tracers.kernel.records import BLOCKED, ON_CPU, ORIGIN, RECORD_IOCTL, RUNNING, Origin
from stallscope.tracers.measures.calls import Calls
from stallscope.tracers.measures.ioctl import Ioctl

TUN = (0xFFFF, 10 << 20 | 200, stat.S_IFCHR)
"""ops, device, mode."""
CONTROL = (0xFFFE, 195 << 20 | 255, stat.S_IFCHR)
SETQUEUE, RM_CONTROL = 0x400454D9, 0xC020462A
Row = tuple[bytes, bytes]


def origin(state: int = RUNNING, kstack: int = 0, tgid: int = 7) -> Origin:
    return Origin(5, kstack, 0, 8, tgid, 0, state)


def target(file: tuple[int, int, int], command: int, detail: int = 0) -> bytes:
    return TARGET.pack(*file, command, detail)


CONTROLLED = target(CONTROL, RM_CONTROL, 0x20800102)


def numbered(of: Origin, number: int) -> Origin:
    return of._replace(state=of.state | number << 8)


def times(of: Origin, count: int, ns: int, *, number: int = 1, bucket: int = 0, **parts: int) -> Row:
    """An entry of calls of ``ns`` in all, all of them in one bucket."""
    latencies = [count if i == bucket else 0 for i in range(BUCKETS)]
    earlier, blocked, runnable = (parts.get(name, 0) for name in ("earlier", "blocked", "runnable"))
    key = KIND.pack(of.tid, of.tgid, 0, numbered(of, number).state)
    return key, TIMES.pack(count, ns, earlier, blocked, runnable, 1, ns, *latencies)


def goes_on(tid: int = 8, **fields: int) -> Row:
    """The entry of a thread's call: of TUNSETQUEUE, begun at 200."""
    began = fields.get("began", 200)
    since, cut, blocked, runnable = (fields.get(name, 0) for name in ("since", "cut", "blocked", "runnable"))
    head = CALL_HEAD.pack(began, since or began, cut, blocked, runnable, 0, 0, 1)
    return tid.to_bytes(4, "little"), head + ORIGIN.pack(*numbered(origin()._replace(tid=tid), 1))


class Each:
    """Content of a map each time when it is read: for who is inside, and twice for the calls that go on."""

    def __init__(self, *reads: list[Row]) -> None:
        self._reads = list(reads)

    def pop(self) -> list[Row]:
        return self._reads.pop(0)


class Kernel:
    """Stands for the loaded object."""

    def __init__(self, maps: Mapping[str, Any], losses: tuple[int, ...] = ()) -> None:
        self._maps, self._losses = maps, losses or (0,) * (len(ioctl.LOSSES) + 1)
        program = SimpleNamespace(is_loaded=True, misses=self._losses[-1])
        self.programs = dict.fromkeys(("ioctl_enter", "ioctl_return"), program)
        self.programs |= {f"{name}_raw": SimpleNamespace(is_loaded=False) for name in self.programs}

    def find_map(self, name: str) -> Any:
        rows = self._maps.get(name, [])
        items = rows.pop if isinstance(rows, Each) else lambda: rows
        return SimpleNamespace(items=items, lookup_percpu_u64=lambda i: self._losses[i])


class Table:
    """Stands for a `SumTable`."""

    def __init__(self, rows: list[Row]) -> None:
        self._rows = rows

    def drain(self, _slot: int) -> Row:
        rows, self._rows = self._rows, []
        return b"".join(key for key, _ in rows), b"".join(value for _, value in rows)


def measured(maps: Mapping[str, Any], losses: tuple[int, ...] = ()) -> IoctlCollector:
    """A measure that has read these maps and tables; others are empty. The number of TUNSETQUEUE is 1."""
    measure = IoctlCollector(Ioctl())
    table = {name: Table(maps.get(f"ioctl_{name}", [])) for name in ("sums", "times", "failures")}
    measure._table = table.pop("sums")  # type: ignore[assignment]
    measure._small = table  # type: ignore[assignment]
    targets = [(target(TUN, SETQUEUE), (1).to_bytes(4, "little")), (CONTROLLED, (2).to_bytes(4, "little"))]
    kernel: Any = Kernel({"ioctl_targets": targets, **maps}, losses)
    measure._object = kernel
    measure._sharing = SharedRings(bytearray(EVENT.itemsize), bytearray(RING.itemsize), int)
    measure.read(kernel)
    return measure


def test_layouts_are_those_of_the_probes() -> None:
    opened = Object(object_path())
    try:
        maps = {name: opened.find_map(f"ioctl_{name}") for name in ("calls", "targets", "names")}
        assert {name: (each.key_size, each.value_size) for name, each in maps.items()} == {
            "calls": (4, CALL),
            "targets": (TARGET.size, 4),
            "names": (FILE.size, NAME.size),
        }
        assert opened.find_map("ioctl_losses").max_entries == len(ioctl.LOSSES)
    finally:
        opened.close()


def test_a_call_has_a_row_for_what_it_did_on_a_core_and_one_per_wait() -> None:
    """A kernel refuses tables whose entries have another size than the probes' structs: tests/live/test_ioctl.py."""
    measure = measured(
        {
            "ioctl_times": [times(origin(), 3, 1000, blocked=600, runnable=100)],
            "ioctl_sums": [
                (ORIGIN.pack(*numbered(origin(), 1)), SUM.pack(300, 0, 3)),
                (ORIGIN.pack(*numbered(origin(2, 99), 1)), SUM.pack(600, 100, 0)),
            ],
        }
    )
    rows = measure.rows(Ended(0, 1, []))
    assert {(row.state, row.values, row.origin) for row in rows} == {
        ("running", (300, 3), origin()),
        ("uninterruptible", (600, 0), origin(2, 99)),
        ("runnable-woken", (100, 0), origin(2, 99)),
    }
    assert {row.call for row in rows} == {"TUNSETQUEUE /dev/net/tun"}


def test_calls_without_a_stack_have_rows() -> None:
    """Three of 5 calls, which ran for 700 ns, are among the sums."""
    measure = measured(
        {
            "ioctl_times": [times(origin(), 5, 1000, blocked=250, runnable=50)],
            "ioctl_sums": [(ORIGIN.pack(*numbered(origin(), 1)), SUM.pack(300, 0, 3))],
        }
    )
    ended = Ended(0, 1, [])
    rows = [(row.origin.ustack, row.state, row.values) for row in measure.rows(ended)]
    assert rows == [(5, "running", (300, 3)), (0, "running", (400, 2))]
    ((_, call),) = measure.calls(ended)
    assert (call.count, call.on_cpu) == (5, 700)


def test_calls_are_added_up_by_thread() -> None:
    other = Origin(6, 0, 0, 9, 7, 0, RUNNING)
    measure = measured(
        {
            "ioctl_times": [
                times(origin(), 3, 1000, bucket=4, blocked=600, runnable=100, earlier=60),
                times(other, 1, 50),
                times(origin(tgid=77), 1, 5),
            ],
            "ioctl_failures": [(FAILURE.pack(8, 7, 0, numbered(origin(), 1).state, 22, 0), (2).to_bytes(8, "little"))],
        }
    )
    timed = measure.calls(Ended(0, 1, []))
    one, two = (together([call for of, call in timed if of.tgid == tgid]) for tgid in (7, 77))
    assert (one.name, one.device, one.pid, one.count, one.total) == ("TUNSETQUEUE", "/dev/net/tun", 7, 4, 1050)
    assert (one.min, one.max, one.blocked, one.runnable, one.errors) == (1, 1000, 600, 100, {"EINVAL": 2})
    assert (one.latencies[0], one.latencies[4], sum(one.latencies), one.earlier) == (1, 3, 4, 60)
    assert (two.pid, two.count, two.errors) == (77, 1, {})


def test_nvidias_controls_and_its_own_errors_have_names() -> None:
    measure = measured(
        {
            "ioctl_times": [times(origin(), 3, 9, number=2)],
            "ioctl_failures": [
                (FAILURE.pack(8, 7, 0, numbered(origin(), 2).state, 0, 0x1F), (3).to_bytes(8, "little"))
            ],
            "ioctl_names": [(CONTROLLED[:16], b"devtmpfs".ljust(16, b"\0") + b"nvidiactl".ljust(32, b"\0"))],
        }
    )
    ((_, call),) = measure.calls(Ended(0, 1, []))
    assert (call.name, call.device) == ("NV2080_CTRL_CMD_GPU_GET_INFO_V2", "/dev/nvidiactl")
    assert call.errors == {"NV_ERR_INVALID_ARGUMENT": 3}


def test_targets_without_a_number_share_a_name() -> None:
    measure = measured({"ioctl_times": [times(origin(), 3, 9, number=0)]})
    ((_, call),) = measure.calls(Ended(0, 1, []))
    assert (call.name, call.device, call.count) == ("[other ioctls]", "[other devices]", 3)


def thread(phase: int, *, end: int = 1000, **times: Any) -> Any:
    key = origin(2, 99)
    values = {"since": 400, "out": 400, "woken": 0, "runnable": 20, "blocked": (0, 0, 100, 0, 0, 0, 0, 0)} | times
    return SimpleNamespace(thread=SimpleNamespace(key=key, phase=phase, **values), end=end, exited=False)


def test_a_call_that_goes_on_is_told() -> None:
    """Begun at 200; it had been blocked for 100 and queued for 20 by 400, and waits since then."""
    measure = measured({"ioctl_calls": [goes_on(blocked=100, runnable=20), goes_on(tid=9, began=0)]})
    ended = Ended(0, 1000, [thread(BLOCKED)])
    assert [(row.state, row.values, row.is_open) for row in measure.rows(ended)] == [
        ("running", (80, 0), True),
        ("uninterruptible", (600, 0), True),
    ]
    ((_, found),) = measure.calls(ended)
    assert (found.count, found.open_count, found.open_time) == (0, 1, 800)
    assert list(measure.remarks()) == ["1 ioctl had not ended: their time is in the picture, up to the end"]
    (running,) = measure.rows(Ended(0, 1000, [thread(ON_CPU)]))
    assert running.values == (680, 0)


def test_a_call_that_an_interval_ends_is_told_once() -> None:
    """The call is in the map, and in the ring buffer, since it was cut after it had been read: in the next interval at
    last."""
    measure = measured({"ioctl_calls": [goes_on()]})
    record = RECORD_IOCTL.to_bytes(8, "little") + (1000).to_bytes(8, "little") + goes_on()[1]
    assert measure.on_record(record)
    assert not measure.on_record(bytes(8))
    ((_, found),) = measure.calls(Ended(100, 1000, []))
    assert (found.open_count, found.open_time) == (1, 800)
    measure.next()
    assert measure.on_record(record)
    assert measure.calls(Ended(1000, 2000, [])) == []


def test_a_call_that_changes_while_it_is_read_is_left_to_its_record() -> None:
    measure = measured({"ioctl_calls": Each([], [goes_on()], [goes_on(since=1000, cut=1000)])})
    assert measure.calls(Ended(100, 1000, [])) == []


def test_what_a_call_did_before_the_interval_is_not_of_it() -> None:
    """No event since 1000: its waits had ended before. One that is cut already is of the next interval."""
    measure = measured({"ioctl_calls": [goes_on(blocked=100, runnable=20), goes_on(tid=9, since=2000, cut=2000)]})
    ended = Ended(1000, 2000, [thread(ON_CPU, end=2000)])
    ((_, found),) = measure.calls(ended)
    assert (found.pid, found.open_count, found.open_time) == (7, 1, 1000)
    (row,) = measure.rows(ended)
    assert (row.values, row.is_open) == ((1000, 0), True)


def test_losses_have_names() -> None:
    measure = measured({}, (1, 2, 3, 4, 5, 6, 7))
    assert list(measure.remarks()) == [
        "the kernel kept up to 7 ioctls of all processes from the probes: counts are too low by these"
    ]
    assert measure.losses() == {
        "ioctls": 1,
        "ioctls without a stack": 2,
        "errors of ioctls": 3,
        "names of ioctls": 4,
        "ioctls at the end of an interval": 5,
        "returns from ioctls": 6,
        "ioctls not reported by the kernel": 7,
        "calls and waits left out of who was inside": 0,
    }
    measure.next()
    assert set(measure.losses().values()) == {0}


def test_without_the_tracepoints_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = []

    def attach(loaded: Any, program: str, tracepoint: str) -> Any:
        if program == "ioctl_enter":
            raise StallscopeError("tracefs is not mounted", "mount -t tracefs")
        assert (program, tracepoint) == ("ioctl_return", "syscalls:sys_exit_ioctl")
        return SimpleNamespace(close=lambda: closed.append(1))

    monkeypatch.setattr(tracepoints, "attach_tracepoint", attach)
    with pytest.raises(StallscopeError) as caught:
        IoctlCollector(Ioctl()).attach(SimpleNamespace(), "")  # type: ignore[arg-type]
    assert "tracepoints of ioctl" in caught.value.cause
    assert "mount -t tracefs" in caught.value.remedy
    assert closed == [1]
    beside = IoctlCollector(Ioctl(alone=False))
    assert beside.attach(SimpleNamespace(), "") == []  # type: ignore[arg-type]
    assert closed == [1, 1]
    assert [remark.partition(":")[0] for remark in beside.remarks()] == ["ioctls in the calls are not told apart"]
    assert (beside.columns, beside.rows(Ended(0, 1, []))) == (Calls().columns, [])
