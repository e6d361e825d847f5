"""Wakers that ended waits, where, and who had made those wait: against workloads in which both are known."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from runner import Workload
from stallscope.converters import pprof
from stallscope.converters.model import Sample
from stallscope.converters.model.wakers import has_waker, links, own_part
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.ebpf.measures.registry import collectors
from stallscope.tracers.engines.ebpf.probes import KERNEL_BTF, ProbeOptions
from stallscope.tracers.kernel.shapes import SHAPES, Shape
from stallscope.tracers.measures.offcpu import OffCpu
from stallscope.tracers.measures.wakeup import MAX_DEPTH, WakeUp
from tracing import RUNNABLE, Trace, Traced, run_traced

MS = 1_000_000
NOT_KNOWN = ("[unknown waker]", "[still waiting]")


def names(stack: tuple[Any, ...]) -> list[str]:
    return [frame.name for frame in stack]


def wakers(sample: Sample) -> tuple[str, ...]:
    """Names of the wakers in a sample's chain: ``stage-3-4711``, ``[timer]``."""
    return tuple(link[-1].name for link in links(sample.stack))


def waits_in(traced: Traced, function: str, tid: int | None = None) -> list[Sample]:
    """Samples of waits in a function that somebody ended."""
    return [
        sample
        for sample in traced.profile.samples
        if function in names(own_part(sample.stack))
        and tid in (None, sample.label("tid"))
        and sample.label("waker") not in NOT_KNOWN
    ]


def times(samples: list[Sample], *, root: bool = False) -> Counter[str]:
    """Time by the one that ended the wait, or by the last thread of the chain."""
    found: Counter[str] = Counter()
    for sample in samples:
        chain = [name for name in wakers(sample) if not (root and name.startswith("["))]
        found[chain[-1 if root else 0] if chain else "nobody"] += sample.values[0]
    return found


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_stacks_are_those_of_the_right_threads(trace: Trace, shape: Shape) -> None:
    """Tools that take the waker's stack when the woken thread is switched in mix both up."""
    options: dict[str, Any] = {"btf": KERNEL_BTF} if shape.raw else {}
    traced = trace("pipe_chain", 5, 300, shape=shape, measure=WakeUp(), **options)
    pids = traced.truth["threads"]
    stages = {int(thread["thread"].rpartition("-")[2]): thread["pid"] for thread in pids}
    for stage, pid in stages.items():
        before = stages[(stage - 1) % 5]
        waits = waits_in(traced, "read_token", pid)
        assert times(waits)[f"stage-{(stage - 1) % 5}-{before}"] >= 0.97 * times(waits).total() > 0, times(waits)
        for sample in waits:
            assert sample.label("process") == f"stage-{stage}"
            assert "write_token" not in names(own_part(sample.stack))
            if sample.label("waker") != f"stage-{(stage - 1) % 5}-{before}":
                continue
            (waker,) = links(sample.stack)
            assert "read_token" not in names(waker)
            written = names(waker)
            # Innermost first: from the wake-up to the thread's start.
            assert written.index("try_to_wake_up") < written.index("write_token") < written.index("main"), written
            assert {frame.kind for frame in waker} == {"waker"}
    everything = sum(s.values[1] for s in traced.profile.samples)
    unknown = sum(s.values[1] for s in traced.profile.samples if s.label("waker") == "[unknown waker]")
    assert unknown <= traced.missed + 0.01 * everything


def test_chain_has_the_order_and_the_time_of_each_link(trace: Trace) -> None:
    traced = trace("pipe_chain", 5, 12, 5000, measure=WakeUp(4))
    truth = {thread["thread"]: thread for thread in traced.truth["threads"]}
    reads = {wait["pid"]: wait["ns"] for wait in traced.truth["waits"] if wait["function"] == "read_token"}
    last = truth["stage-4"]["pid"]
    parts: Counter[tuple[str, ...]] = Counter()
    for sample in waits_in(traced, "read_token", last):
        parts[tuple(name.rpartition("-")[0] for name in wakers(sample))] += sample.values[0]
    order = ("stage-3", "stage-2", "stage-1", "stage-0")
    chains = [order[: i + 1] for i in range(len(order))]
    whole = sum(parts.values())
    assert sum(parts[chain] for chain in chains) >= 0.97 * whole, parts
    for chain in chains:
        thread = truth[chain[-1]]
        own = (
            thread["wall_ns"] - reads[thread["pid"]]
        )  # it works, and writes; after it was woken it may wait for a core
        runnable = traced.thread(thread["tid"]).runnable
        slack = 0.05 * own + 5 * MS
        # In its last lap nobody waits for it any more.
        assert thread["cpu_ns"] * 11 / 12 - slack <= parts[chain] <= own + runnable + slack, (chain, own, thread, parts)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_depth_is_the_length_of_chains(trace: Trace, depth: int) -> None:
    traced = trace("pipe_chain", 5, 8, 3000, measure=WakeUp(depth))
    lengths = Counter(len(wakers(sample)) for sample in waits_in(traced, "read_token"))
    assert max(lengths) == depth
    assert 0 not in lengths


def test_slow_holder_of_a_lock_is_blamed(trace: Trace) -> None:
    """The holder is blamed, too, by those who were woken by another one that had waited for it."""
    traced = trace("lock_holder", 8, 12, 30_000, measure=WakeUp(MAX_DEPTH))
    waits = [s for s in waits_in(traced, "take_lock") if str(s.label("process")).startswith("waiter")]
    blamed = times(waits, root=True)
    holder = sum(time for name, time in blamed.items() if name.startswith("holder-"))
    assert blamed.total() > 8 * 12 * 15 * MS
    # One that was woken, and waits for a core before it takes and gives the lock, lets the others wait.
    busy = sum(thread.runnable for thread in traced.profile.threads if thread.process.startswith("waiter"))
    assert holder + 8 * busy >= 0.95 * blamed.total(), (blamed, busy)


def test_slow_producer(trace: Trace) -> None:
    traced = trace("slow_producer", 50, 4000, measure=WakeUp(2))
    waits = waits_in(traced, "take_item")
    producer = f"slow_producer-{traced.truth['pid']}"
    assert times(waits)[producer] >= 0.98 * times(waits).total() > 0
    assert {sample.label("waker_thread") for sample in waits if sample.label("waker") == producer} == {"producer"}
    assert all("give_item" in names(links(s.stack)[0]) for s in waits if s.label("waker") == producer)
    parts: Counter[tuple[str, ...]] = Counter()
    for sample in waits:
        parts[wakers(sample)] += sample.values[0]
    assert parts[producer, "[timer]"] + parts[(producer,)] >= 0.98 * parts.total(), parts
    # It sleeps all of that time, and what is left of it when the consumer has a core is waited for.
    (consumer,) = [thread for thread in traced.profile.threads if thread.thread == "consumer"]
    assert parts[producer, "[timer]"] + consumer.runnable + consumer.on_cpu >= 0.95 * 50 * 4 * MS, (parts, consumer)


def test_timer_is_not_whom_it_interrupts(trace: Trace) -> None:
    traced = trace("sleeps", 20, measure=WakeUp(MAX_DEPTH))
    for function in ("sleep_1ms", "sleep_10ms", "sleep_25ms"):
        waits = waits_in(traced, function)
        assert times(waits)["[timer]"] >= 0.99 * times(waits).total() > 0, times(waits)
        for sample in waits:
            if sample.label("waker") == "[timer]":
                assert sample.label("waker_tid") is None
                (link,) = links(sample.stack)
                assert not any(frame.module and frame.module.path.startswith("/") for frame in link), link
                # Nothing of what was interrupted.
                entries = [i for i, name in enumerate(names(link)) if name.startswith("asm_")]
                assert all(i == len(link) - 2 for i in entries), link


@pytest.mark.parametrize("workload", [("futex_pingpong", 2000), ("fork_storm", 100, 4), ("sleeps", 5), ("demo", 300)])
def test_time_is_the_blocked_time_of_off_cpu(trace: Trace, workload: tuple[object, ...]) -> None:
    traced = trace(*workload, measures=(OffCpu(), WakeUp(4, alone=False)))
    blocked: defaultdict[object, list[int]] = defaultdict(lambda: [0, 0])
    column = traced.profile.index("blocked")
    for sample in traced.profile.samples:
        if has_waker(sample.stack):
            assert sample.values[0] == 0
            blocked[sample.label("tid"), sample.label("state")][0] += sample.values[column]
        elif sample.label("state") not in RUNNABLE:
            assert sample.values[column] == 0
            blocked[sample.label("tid"), sample.label("state")][1] += sample.values[0]
    assert sum(by_waker for by_waker, _ in blocked.values()) > 0
    for who, (by_waker, off_cpu) in blocked.items():
        assert by_waker == off_cpu, who
    assert traced.profile.lost["wake-ups"] == 0


def test_disk_is_not_whom_it_interrupts(live: None, tmp_path: Path, require: Callable[[bool, str], None]) -> None:
    """Reads of a disk are ended by its interrupt, or by what runs behind that; not by a process that was there."""
    kind = subprocess.run(["stat", "-f", "-c", "%T", tmp_path], capture_output=True, text=True, check=True).stdout
    require(kind.strip() not in ("tmpfs", "ramfs"), f"{tmp_path} is on no disk")
    blob, output = tmp_path / "blob", tmp_path / "x.pb.gz"
    blob.write_bytes(bytes(16 << 20))
    subprocess.run(["sync", blob], check=True)
    read = ["dd", f"if={blob}", "of=/dev/null", "iflag=direct", "bs=64k"]
    command = [str(Path(sys.executable).with_name("trace-wakeup")), "-o", str(output), "--", *read]
    subprocess.run(command, check=True, capture_output=True)
    with output.open("rb") as file:
        profile = pprof.load(file)
    by: Counter[str] = Counter()
    for sample in profile.samples:
        if "vfs_read" in names(own_part(sample.stack)) and sample.label("waker") not in NOT_KNOWN:
            by[str(sample.label("waker"))] += sample.values[0]
    kernel = sum(time for name, time in by.items() if re.match(r"\[|ksoftirqd/|kworker/|irq/", name))
    assert kernel >= 0.99 * by.total() > 0, by


def test_waker_outside_of_the_scope_has_a_name_and_a_stack(trace: Trace) -> None:
    with Workload("pipe_chain", 3, 400, 500, linger=True) as workload:
        scope = Scope(pids=[workload.pids[1]])
        scope.resolve()
        traced = run_traced(workload, ProbeOptions(scope, collectors([WakeUp()])), 1.0)
    waits = waits_in(traced, "read_token")
    expected = f"stage-0-{workload.pids[0]}"
    assert times(waits)[expected] >= 0.95 * times(waits).total() > 0, times(waits)
    whole = [s for s in waits if s.label("waker") == expected and "main" in names(links(s.stack)[0])]
    assert sum(s.values[0] for s in whole) >= 0.8 * times(waits)[expected]
