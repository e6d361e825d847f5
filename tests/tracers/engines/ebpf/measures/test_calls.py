"""Rows and calls of what the probes counted, and the layouts. With real calls: tests/live/test_cuda.py."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from stallscope.converters.model.calls import BUCKETS, together
from stallscope.tracers.engines.ebpf.measures import calls, open_calls
from stallscope.tracers.engines.ebpf.measures.calls import LEFT, CallsCollector, Time, _time
from stallscope.tracers.engines.ebpf.measures.probed import Probe
from stallscope.tracers.engines.ebpf.measures.protocol import Ended
from stallscope.tracers.engines.ebpf.probes import object_path
from stallscope.tracers.kernel.bpfobject import Object
from stallscope.tracers.kernel.records import ORIGIN, RUNNING
from stallscope.tracers.kernel.uprobes import Way
from stallscope.tracers.measures.argument_options import ArgumentOptions
from stallscope.tracers.measures.calls import Calls

NONE = Ended(0, 1, [])
FUNCTIONS = [Probe("cudaMalloc", "/x/libcudart.so.12", True), Probe("cuMemAlloc_v2", "/x/libcuda.so.1", True)]


def total(*figures: int, bucket: int = 0) -> bytes:
    """returned, total, own, blocked, runnable, min, max, left, open, open_time, open_inner."""
    latencies = [figures[0] if i == bucket else 0 for i in range(BUCKETS)]
    return calls._SUM.pack(*figures, *latencies)


def measured(
    sums: list[tuple[bytes, bytes]], failures: Sequence[tuple[bytes, int]] = (), losses: int = 0
) -> CallsCollector:
    """A measure that has read these tables."""

    def table(items: list[tuple[bytes, bytes]]) -> Any:
        parts = b"".join(key for key, _ in items), b"".join(value for _, value in items)
        return SimpleNamespace(drain=lambda _slot: parts)

    measure = CallsCollector(Calls(), way=Way.MULTI)
    measure._table = table([])
    measure._parts._tables = {"ioctls": table([]), "copies": table([])}
    measure._tables = {
        "call_sums": table(sums),
        "call_failures": table([(key, number.to_bytes(8, "little")) for key, number in failures]),
    }
    probed: Any = SimpleNamespace(
        functions=FUNCTIONS,
        probes=lambda: FUNCTIONS,
        is_closed=True,
        problems={},
        remarks=lambda: iter(["on 2 functions"]),
    )
    measure.probed = probed
    maps = SimpleNamespace(items=list, lookup_percpu_u64=lambda i: losses + i)
    measure.read(SimpleNamespace(find_map=lambda _: maps))  # type: ignore[arg-type]
    return measure


def key(tid: int, tgid: int, function: int) -> bytes:
    return calls._KEY.pack(tid, tgid, 0, function)


def test_layouts_are_those_of_the_probes() -> None:
    opened = Object(object_path())
    try:
        stacks = opened.find_map("call_stacks")
        arguments = 16 * 8
        assert stacks.value_size == open_calls.HEAD.size + open_calls.DEPTH * open_calls.CALL.size + arguments
        blank = opened.find_map("call_blanks")
        assert blank.value_size == stacks.value_size + calls._SUM.size
        assert opened.find_map("call_losses").max_entries == len(calls._LOSSES) + 4
    finally:
        opened.close()


def test_programs_of_each_way() -> None:
    assert CallsCollector(Calls(), way=Way.SESSION).placed == ("calls_session",)
    assert CallsCollector(Calls(), way=Way.SESSION).attach_types() == {"calls_session": 57}
    assert CallsCollector(Calls(), way=Way.MULTI).attach_types() == {"calls_enter": 48, "calls_return": 48}
    assert CallsCollector(Calls(), way=Way.SINGLE).placed == ("calls_enter", "calls_return")
    assert CallsCollector(Calls(), way=Way.SINGLE).attach_types() == {}
    kept = Calls(arguments=ArgumentOptions())
    assert CallsCollector(kept, way=Way.SESSION).attach_types() == {"calls_session": 57, "calls_begin": 48}
    assert CallsCollector(kept, way=Way.SINGLE).placed == ("calls_enter", "calls_return", "calls_begin")
    assert CallsCollector(kept, way=Way.SINGLE).attach_types() == {}


def test_calls_are_added_up_by_thread() -> None:
    measure = measured(
        [
            (key(8, 7, 0), total(3, 1000, 400, 600, 100, 200, 500, 0, 0, 0, 0, bucket=4)),
            (key(9, 7, 0), total(1, 50, 50, 0, 0, 50, 50, 2, 0, 0, 0)),
            (key(8, 7, 1), total(3, 600, 600, 600, 0, 100, 300, 0, 0, 0, 0)),
            (key(77, 77, 0), total(0, 0, 0, 0, 0, 0, 0, 0, 1, 40, 30)),
        ],
        [(calls._FAILURE.pack(8, 7, 0, 0, 2, 0), 3), (calls._FAILURE.pack(9, 7, 0, 1, -1, 0), 1)],
    )
    timed = measure.calls(NONE)
    assert {(origin.tid, origin.tgid, origin.life) for origin, _ in timed} == {(8, 7, 0), (9, 7, 0), (77, 77, 0)}
    whose = ("cudaMalloc", 7), ("cuMemAlloc_v2", 7), ("cudaMalloc", 77)
    one, two, three = (together([call for of, call in timed if (call.name, of.tgid) == who]) for who in whose)
    assert (one.name, one.library, one.device, one.pid) == ("cudaMalloc", "libcudart.so.12", "", 7)
    assert (one.count, one.total, one.own, one.min, one.max) == (4, 1050, 450, 50, 500)
    assert (one.blocked, one.runnable) == (600, 100)
    assert one.errors == {LEFT: 2, "cudaErrorMemoryAllocation": 3}
    assert (one.latencies[0], one.latencies[4], sum(one.latencies)) == (1, 3, 4)
    assert (two.name, two.errors) == ("cuMemAlloc_v2", {"CUresult -1": 1})
    assert (three.pid, three.count, three.open_count, three.open_time, three.open_inner) == (77, 0, 1, 40, 30)


def test_a_sum_below_0_is_none() -> None:
    """The kernel subtracts in 64 bits."""
    assert _time((3, 2**64 - 65_000_000, 7, 2**63)) == Time(3, 0, 7, 0)


def test_rows_have_a_state_for_each_part() -> None:
    measure = measured([])
    running, waiting = ORIGIN.pack(5, 0, 0, 8, 7, 0, RUNNING), ORIGIN.pack(6, 9, 0, 8, 7, 0, 2)
    preempted = ORIGIN.pack(6, 9, 0, 8, 7, 0, 0)
    values = calls._TIME.pack(3, 100, 0, 0), calls._TIME.pack(0, 0, 600, 50), calls._TIME.pack(0, 0, 0, 7)
    measure.totals().add(running + waiting + preempted, b"".join(values))
    rows = sorted((row.state, row.values, row.origin.kstack) for row in measure.rows(NONE))
    assert rows == [
        ("runnable-preempted", (7, 0), 9),
        ("runnable-woken", (50, 0), 9),
        ("running", (100, 3), 0),
        ("uninterruptible", (600, 0), 9),
    ]


def test_rows_in_an_ioctl_have_its_name() -> None:
    measure: Any = measured([])
    measure._ioctls = SimpleNamespace(described=lambda number: (f"COMMAND_{number}", "/dev/x"))
    origin = ORIGIN.pack(6, 9, 0, 8, 7, 0, 2 | 5 << 8)
    measure.totals().add(origin, calls._TIME.pack(0, 0, 600, 50))
    rows = measure.rows(NONE)
    assert {(row.call, row.origin.state, row.origin.kstack) for row in rows} == {("COMMAND_5 /dev/x", 2, 9)}
    assert {(row.state, row.values[0]) for row in rows} == {("uninterruptible", 600), ("runnable-woken", 50)}


def test_losses_and_remarks() -> None:
    measure = measured([], losses=5)
    assert list(measure.losses().values()) == [5, 6, 7, 8, 9, 10, 11, 0]
    probed, cost, cut = measure.remarks()
    assert probed == "on 2 functions"
    assert cost.startswith("the probes ran 12 times in traced threads, 1 ns each in the programs")
    assert cut == "stacks of waits and ioctls that have the traced function, and nothing inside of it: 14"


def test_frames_of_functions() -> None:
    assert measured([]).functions() == {("/x/libcudart.so.12", "cudaMalloc"), ("/x/libcuda.so.1", "cuMemAlloc_v2")}
