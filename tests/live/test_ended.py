"""Threads and processes that ended: ids that come back are told apart, and storms are added up."""

from __future__ import annotations

import io
import subprocess
import time
from collections import Counter, defaultdict
from typing import Any

import pytest
from stallscope.converters import pprof
from stallscope.converters.model import Labels, Profile
from stallscope.converters.model.scheduling import Threads
from stallscope.converters.summary.render import render
from stallscope.converters.summary.summarize import summarize
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.ebpf import folding, probes
from stallscope.tracers.engines.ebpf.measures.registry import collectors
from stallscope.tracers.engines.ebpf.probes import KERNEL_BTF, ProbeOptions, Probes
from stallscope.tracers.kernel.bpfobject import Object
from stallscope.tracers.kernel.records import BLOCKED, RecordSink
from stallscope.tracers.kernel.shapes import SHAPES, Shape
from stallscope.tracers.measures.offcpu import OffCpu
from stallscope.tracers.measures.oncpu import OnCpu
from stallscope.tracers.measures.timeline import Timeline
from tracing import Trace

ROUNDS = 10
MS = 1_000_000


def wall() -> tuple[OffCpu, OnCpu]:
    return OffCpu(time="wall"), OnCpu(999, time="wall")


def who(labels: dict[str, Any]) -> tuple[int, int, int, int]:
    return labels.get("pid", 0), labels.get("pid-life", 1), labels.get("tid", 0), labels.get("tid-life", 1)


def check_rows(profile: Profile) -> None:
    """Each account adds up, and the rows with its labels add up to it."""
    accounts: Counter[tuple[object, ...]] = Counter()
    for times in profile.threads:
        assert times.on_cpu + times.runnable + sum(times.blocked.values()) == times.wall
        key = times.pid, times.pid_life, times.tid, times.tid_life
        assert (key, True) not in accounts, "two accounts of one name"
        accounts[key, True] = times.on_cpu
        accounts[key, False] = times.wall - times.on_cpu
    rows: Counter[tuple[object, ...]] = Counter()
    for sample in profile.samples:
        labels = dict(sample.labels)
        rows[who(labels), labels["state"] == "running"] += sample.values[0]
    assert +rows == +accounts


def check_lost(profile: Profile) -> None:
    for kind in ("intervals", "samples", "stacks", "threads", "exit and exec records"):
        assert not profile.lost.get(kind), kind


def sleeping(profile: Profile, function: str) -> tuple[dict[str, Any], int, int]:
    """The labels, the time and the number of the waits in ``function``, which are of one thread."""
    found: defaultdict[Labels, list[int]] = defaultdict(lambda: [0, 0])
    for sample in profile.samples:
        if sample.label("state") == "interruptible" and any(frame.name == function for frame in sample.stack):
            found[sample.labels][0] += sample.values[0]
            found[sample.labels][1] += sample.values[1]
    ((labels, (time, count)),) = found.items()
    return dict(labels), time, count


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_ids_that_come_back(shape: Shape, trace: Trace) -> None:
    options: dict[str, Any] = {"btf": KERNEL_BTF} if shape.raw else {}
    traced = trace("same_ids", ROUNDS, measures=wall(), shape=shape, **options)
    profile = traced.profile
    check_lost(profile)
    check_rows(profile)
    truths = {wait["function"]: wait for wait in traced.truth["waits"]}
    for i in range(3):
        truth = truths[f"life_{i}"]
        labels, time, count = sleeping(profile, f"life_{i}")
        assert (labels["pid"], labels["tid"]) == (truth["pid"], truth["pid"])
        assert labels["process"] == labels["thread"] == f"life-{i}"
        assert labels.get("pid-life", 1) == i + 1
        assert count == truth["blocks"] == ROUNDS
        assert 0.99 * ROUNDS * (i + 1) * MS <= time <= truth["ns"]
        labels, _, count = sleeping(profile, f"again_{i}")
        assert (labels["tid"], labels["thread"]) == (truths[f"again_{i}"]["tid"], f"again-{i}")
        assert "pid-life" not in labels
        assert count == ROUNDS
        # In between, threads may have had the id for a moment that were not the ones to have it.
        assert labels.get("tid-life", 1) == i + 1
    # While the kernel loads a program, until its tracepoint has run, the registers are those of the new one, and the
    # exec is still to come.
    names = [{frame.name for frame in s.stack} for s in profile.samples]
    assert not [each for each in names if each & {"[unmapped]", "[remapped]"} and "bprm_execve" not in each]


def test_ids_that_come_back_are_told_apart_in_outputs(trace: Trace) -> None:
    profile = trace("same_ids", ROUNDS).profile
    pid = sleeping(profile, "life_0")[0]["pid"]
    file = io.BytesIO()
    pprof.save(profile, file)
    file.seek(0)
    again = pprof.load(file)
    assert (again.threads, again.processes) == (profile.threads, profile.processes)
    assert {s.labels for s in again.samples} == {s.labels for s in profile.samples}
    text = io.StringIO()
    render(summarize(again), text)
    assert f"life-0 (pid {pid})" in text.getvalue()
    assert f"life-2 (pid {pid} (third))" in text.getvalue()
    assert {process.number for process in summarize(again).processes} == {1}


def test_no_account_is_longer_than_the_trace(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    """No account is longer even if the tracer loses its core at the very end."""
    write = Object.set_variable

    def slow(self: Object, name: str, value: int) -> None:
        if name == "run" and value >> 64:
            time.sleep(0.02)
        write(self, name, value)

    monkeypatch.setattr(Object, "set_variable", slow)
    profile = trace("futex_pingpong", 100_000, duration=0.5).profile
    assert len(profile.threads) == 3
    assert max(times.wall for times in profile.threads) <= profile.duration_ns


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_a_thread_that_ends_before_the_rest_is_listed(
    shape: Shape, live: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread was there when the trace ended, and is gone when the iterator comes."""
    btf = KERNEL_BTF if shape.raw else None
    monkeypatch.setattr(probes, "RAW_SHAPES" if shape.raw else "BTF_SHAPES", (shape,))
    sink = RecordSink()
    with subprocess.Popen(["sleep", "60"]) as target:
        engine = Probes(ProbeOptions(Scope(pids=[target.pid]), collectors([OffCpu()]), btf=btf), sink)
        detach = engine._detach_most

        def ended_meanwhile() -> None:
            detach()
            target.kill()
            target.wait()

        try:
            engine.options.scope.resolve()
            engine.begin()
            time.sleep(0.05)
            monkeypatch.setattr(engine, "_detach_most", ended_meanwhile)
            (record,) = sink.take_rest(engine.began, engine.stop())
        finally:
            monkeypatch.undo()
            engine.close()
            target.kill()
    assert (record.thread.key.tid, record.exited, record.end) == (target.pid, False, engine.stopped)
    assert record.thread.on_cpu + record.thread.runnable + sum(record.thread.blocked) == 0
    assert record.thread.phase == BLOCKED


def test_what_is_lost_while_the_first_stacks_are_read_is_told(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    read = Probes.counters

    def counters(self: Probes) -> dict[str, int]:
        found = read(self)
        return found | {"lost_records": found["lost_records"] + (7 if self.began else 0)}

    monkeypatch.setattr(Probes, "counters", counters)
    assert trace("futex_pingpong", 100, duration=0.1).profile.lost["exit and exec records"] == 7


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few threads that ended are kept one by one."""
    monkeypatch.setattr(folding, "LIMIT", 64)
    monkeypatch.setattr(folding, "_MORE", 8)


@pytest.mark.parametrize("measures", [(OffCpu(),), wall()], ids=["offcpu", "wall"])
def test_a_storm_of_processes(measures: tuple[Any, ...], trace: Trace, small: None) -> None:
    traced = trace("fork_storm", 1000, 4, measures=measures)
    profile = traced.profile
    check_lost(profile)
    if len(measures) > 1:
        check_rows(profile)
    assert sum(times.count for times in profile.threads if times.exited) == 1000
    sums = [times for times in profile.threads if times.count > 1]
    assert [(times.process, times.thread, times.pid, times.tid) for times in sums] == [
        ("fork_storm", "fork_storm", 0, 0)
    ]
    assert sums[0].count > 800
    assert len(profile.threads) < 300
    (truth,) = [wait for wait in traced.truth["waits"] if wait["function"] == "child_sleep"]
    blocked = [s for s in traced.samples("child_sleep") if s.label("state") == "interruptible"]
    missed = traced.unseen + traced.missed
    others = [(s.values[1], s.label("state"), [f.name for f in s.stack]) for s in profile.samples if s not in blocked]
    assert abs(sum(s.values[1] for s in blocked) - truth["blocks"]) <= missed, (profile.lost, profile.comments, others)
    assert sum(s.values[0] for s in blocked) <= truth["ns"]
    assert sum(s.values[0] for s in blocked) >= 0.9 * (1000 - missed) * MS
    assert not [s for s in profile.samples if s.stack[-1].name == "[other stacks]"]
    summary = summarize(profile)
    assert summary.times.threads == 1001
    assert [(each.name, each.number) for each in summary.processes] == [("fork_storm", 1001)]
    text = io.StringIO()
    render(summary, text)
    assert "1,001 × fork_storm" in text.getvalue()


def test_a_storm_of_programs(trace: Trace, small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has its own mappings: the stacks of some are kept, and the time of all."""
    monkeypatch.setattr(folding, "_SPACES", 32)
    traced = trace("fork_storm", "--exec", 400, 4, measures=wall())
    profile = traced.profile
    check_lost(profile)
    check_rows(profile)
    assert sum(times.count for times in profile.threads if times.exited) == 400
    assert {times.process for times in profile.threads if times.count > 1} == {"storm_child"}
    assert len(profile.threads) < 300
    # A sample in the middle of an exec has the registers of the program before.
    waits = [sample for sample in profile.samples if sample.label("state") == "interruptible"]
    assert not [frame.name for s in waits for frame in s.stack if frame.name in ("[unmapped]", "[remapped]")]
    whole = [s for s in traced.samples("exec_child_sleep") if s.label("state") == "interruptible"]
    rest = [s for s in waits if s.stack[-1].name == "[other stacks]"]
    assert sum(s.values[1] for s in whole) > 32, "as many as there are different mappings"
    assert rest, "the others"


def test_a_storm_of_threads(trace: Trace, small: None) -> None:
    traced = trace("pool_per_call", 100, 8, measures=wall())
    profile = traced.profile
    check_lost(profile)
    check_rows(profile)
    ended = [times for times in profile.threads if times.exited]
    assert sum(times.count for times in ended) == 800
    (pid,) = {times.pid for times in profile.threads}
    sums = [times for times in ended if times.count > 1]
    assert {(one.pid, one.tid, one.creator) for one in sums} == {(pid, 0, pid)}
    assert len({one.thread for one in sums}) == len(sums)
    work = sum(s.values[0] for s in traced.samples("work_in_pool") if s.label("state") == "running")
    assert work > 0
    assert summarize(profile).times.threads == 801
    assert any("makes its threads anew all the time: " in sentence for sentence in summarize(profile).trouble)


def test_ids_that_come_back_in_a_timeline(trace: Trace) -> None:
    profile = trace("same_ids", ROUNDS, also=(Timeline(),)).profile
    found = profile.scheduling
    assert found is not None
    rows = Threads(found.threads).rows(found.blocked["tid"], found.blocked["begin"])
    seen: defaultdict[str, set[tuple[str, str, int]]] = defaultdict(set)
    for row, span in zip(rows.tolist(), found.blocked, strict=True):
        thread = found.threads[row]
        for frame in found.stacks[span["stack"]] if span["stack"] >= 0 else ():
            where = found.names[thread["name"]], found.names[thread["process"]], int(thread["tgid"])
            seen[frame.name].add(where)
    pid = sleeping(profile, "life_0")[0]["pid"]
    for i in range(3):
        assert seen[f"life_{i}"] == {(f"life-{i}", f"life-{i}", pid)}
        assert {name for name, _, _ in seen[f"again_{i}"]} == {f"again-{i}"}
    assert not seen["[unmapped]"] | seen["[remapped]"]
