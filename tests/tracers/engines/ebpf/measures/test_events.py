"""Rows and numbers of what the probes counted, and the layouts. With real hits: tests/live/test_events.py."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from stallscope.tracers.engines.ebpf.measures.event_probes import KERNELS
from stallscope.tracers.engines.ebpf.measures.events import EventsCollector
from stallscope.tracers.engines.ebpf.measures.probed import Probe
from stallscope.tracers.engines.ebpf.measures.protocol import Ended
from stallscope.tracers.engines.ebpf.probes import object_path
from stallscope.tracers.kernel.bpfobject import Object
from stallscope.tracers.kernel.records import ORIGIN, RUNNING
from stallscope.tracers.kernel.uprobes import Way
from stallscope.tracers.measures.events import Events
from stallscope.tracers.probe_targets import events as targets
from stallscope.tracers.probe_targets.events import Chosen, EventTarget

NONE = Ended(0, 1, [])
PROBES = [Probe("shop:sale", "/x/libshop.so", True), Probe("sched:sched_process_exec", KERNELS, True)]
WANTED = targets.Events.all_of([], [EventTarget.parse("u:libshop.so:sale")])


def measured(*rows: tuple[int, int, int, int], lost: int = 0) -> EventsCollector:
    """A measure that has read these (user stack, tid, number of the probe, hits)."""
    measure = EventsCollector(Events(WANTED, chosen=Chosen()), way=Way.MULTI)
    keys = b"".join(ORIGIN.pack(stack, 0, 0, tid, 7, 1, RUNNING | probe << 8) for stack, tid, probe, _ in rows)
    values = b"".join(hits.to_bytes(8, "little") for *_, hits in rows)
    table: Any = SimpleNamespace(drain=lambda _: (keys, values))
    measure._table = table
    probed: Any = SimpleNamespace(functions=PROBES, probes=lambda: PROBES, problems={}, remarks=lambda: iter(["said"]))
    measure.probed = probed
    program: Any = SimpleNamespace(misses=3)
    measure._programs = [program]
    losses = SimpleNamespace(take_percpu=lambda _: [lost.to_bytes(8, "little")] * 2, lookup_percpu_u64=lambda _: 5)
    loaded: Any = SimpleNamespace(find_map=lambda _: losses)
    measure.read(loaded)
    return measure


def test_layouts_are_those_of_the_probes() -> None:
    opened = Object(object_path())
    try:
        assert opened.find_map("event_losses").max_entries == 3
        assert {name for name in opened.programs if name.startswith("events_")} == {
            f"events_{kind}{suffix}" for kind in ("user", "tracepoint", "kernel") for suffix in ("", "_raw")
        }
    finally:
        opened.close()


def test_only_what_is_needed_is_loaded() -> None:
    assert EventsCollector(Events(WANTED, chosen=Chosen()), way=Way.MULTI).placed == ("events_user",)
    assert EventsCollector(Events(WANTED, chosen=Chosen()), way=Way.MULTI).attach_types() == {"events_user": 48}
    assert EventsCollector(Events(WANTED, chosen=Chosen()), way=Way.SINGLE).attach_types() == {}
    kernels = EventsCollector(
        Events(targets.Events(), chosen=Chosen(("sched:sched_switch",), ("vfs_read",))), way=Way.MULTI
    )
    assert kernels.placed == ("events_tracepoint", "events_kernel")
    assert kernels.attach_types() == {}


def test_rows_have_the_name_of_their_probe() -> None:
    rows = measured((5, 8, 0, 30), (6, 8, 1, 2)).rows(NONE)
    assert [(row.origin.ustack, row.origin.state, row.state, row.values, row.call) for row in sorted(rows)] == [
        (5, RUNNING, "running", (30,), "shop:sale"),
        (6, RUNNING, "running", (2,), "sched:sched_process_exec"),
    ]


def test_numbers_are_by_thread() -> None:
    measure = measured((5, 8, 0, 30), (6, 8, 0, 10), (6, 9, 0, 1), (6, 9, 1, 2), lost=4)
    measure.rows(NONE)
    found = {(timed.origin.tid, timed.calls.name): timed.calls for timed in measure.calls(NONE)}
    assert {key: call.count for key, call in found.items()} == {
        (8, "shop:sale"): 40,
        (9, "shop:sale"): 1,
        (9, "sched:sched_process_exec"): 2,
    }
    assert {call.library for call in found.values()} == {"libshop.so", "kernel"}
    assert not any(call.total or call.latencies for call in found.values())
    losses = dict(measure.losses())
    assert (losses["events"], losses["stacks of events"]) == (8, 5)
    assert losses["runs of probes, in any thread, that the kernel left out"] == 3
    assert list(measure.remarks()) == ["said"]
    assert measure.functions() == {("/x/libshop.so", "shop:sale")}


def test_the_next_interval_begins_at_zero() -> None:
    measure = measured((5, 8, 0, 30))
    assert measure.rows(NONE)
    measure.next()
    assert measure.rows(NONE) == []
    assert not measure.losses()["stacks of events"]
