"""On-CPU samples against programs that know their own shares, and what the command refuses."""

from __future__ import annotations

import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from commands import PATIENCE, Tracer, load, program_exists, program_ids, run
from runner import Workload
from stacks_truth import plain, reaches_start
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import Sample
from stallscope.tracers.kernel.shapes import BTF_SHAPES, Shape
from stallscope.tracers.measures.offcpu import OffCpu
from stallscope.tracers.measures.oncpu import OnCpu
from tracing import Trace, Traced

pytestmark = pytest.mark.usefixtures("live")

TRACE_ONCPU = str(Path(sys.executable).with_name("trace-oncpu"))
HZ = 997
"""No round number: nothing else on the machine keeps step with it."""
SHARE = 0.03
"""Difference of a share, of the whole, at most: with 5,000 samples five times the standard deviation of one half."""
PARTS = {
    "spin_one": ("main", "spin_one"),
    "spin_three": ("main", "spin_three"),
    "deep_spin": ("main", "thirty_deep", "deep_spin"),
    "library_spin": ("main", "library_spin"),
    "system_spin": ("main", "system_spin"),
}


def names_of(sample: Sample) -> list[str]:
    return [frame.name for frame in sample.stack]


def in_order(names: Sequence[str], path: Sequence[str]) -> bool:
    rest = iter(names)
    return all(name in rest for name in path)


@pytest.mark.parametrize("shape", BTF_SHAPES, ids=lambda shape: shape.name)
def test_shares_are_those_that_the_program_measured(trace: Trace, shape: Shape) -> None:
    traced = trace("shares", 5000, measures=(OnCpu(HZ),), shape=shape)
    (truth,) = traced.truth["threads"]
    busy = sum(part["ns"] for part in traced.truth["waits"])
    measured = {part["function"]: part["ns"] / busy for part in traced.truth["waits"]}
    seen = {name: sum(s.values[0] for s in traced.samples(name, truth["tid"])) for name in PARTS}
    for name, share in measured.items():
        assert seen[name] / sum(seen.values()) == pytest.approx(share, abs=SHARE), (seen, measured)
    assert sum(seen.values()) == pytest.approx(truth["cpu_ns"], rel=SHARE, abs=traced.stolen)
    check_stacks_of_shares(traced)


def check_stacks_of_shares(traced: Traced) -> None:
    """Every sample stands in one function of the workload, below main and what starts it, and is complete."""
    for name, path in PARTS.items():
        samples = traced.samples(name)
        for sample in samples:
            assert in_order(names_of(sample), path), names_of(sample)
            assert reaches_start(sample.stack), names_of(sample)
            assert sum(other in names_of(sample) for other in PARTS) == 1
        assert samples
    deep = Counter[int]()
    for sample in traced.samples("deep_spin"):
        deep[names_of(sample).count("deep_spin")] += sample.values[1]
    # On its way in and out it is less deep.
    assert max(deep) == 30
    assert deep[30] > 0.99 * deep.total()
    assert len(traced.samples("library_inner")) >= 0.9 * len(traced.samples("library_spin"))
    in_kernel = [s for s in traced.samples("system_spin") if any("getrandom" in name for name in names_of(s))]
    inside = sum(sample.values[1] for sample in in_kernel)
    assert inside > 0.8 * sum(sample.values[1] for sample in traced.samples("system_spin"))
    assert all(sample.stack[-1].kind == "kernel" for sample in in_kernel if "__x64_sys_getrandom" in names_of(sample))


def test_samples_of_a_thread_sum_to_its_time(trace: Trace) -> None:
    traced = trace("two_spinners", 1000, measures=(OnCpu(HZ),))
    for times in traced.profile.threads:
        samples = [s for s in traced.profile.samples if s.label("tid") == times.tid]
        assert sum(sample.values[0] for sample in samples) == times.on_cpu
        assert {sample.label("state") for sample in samples} <= {"running"}


def test_rate_is_what_was_asked_for(trace: Trace) -> None:
    """Pinned threads, on a core that is never idle meanwhile."""
    for frequency in (49, 997):
        traced = trace("two_spinners", 2000, measures=(OnCpu(frequency),))
        samples = sum(sample.values[1] for sample in traced.profile.samples)
        on_cpu = sum(times.on_cpu for times in traced.profile.threads) / 1e9
        assert samples == pytest.approx(frequency * on_cpu, rel=0.1, abs=3 * (frequency * on_cpu) ** 0.5)


def test_threads_too_short_to_be_sampled(trace: Trace) -> None:
    """Times of such threads are there, under a name that says so."""
    traced = trace("fork_storm", "--exec", 200, 1, measures=(OnCpu(1),))
    unsampled = [s for s in traced.profile.samples if s.stack[-1].name == "[not sampled]"]
    assert len({s.label("pid") for s in unsampled if s.label("process") == "storm_child"}) > 150
    assert all(sample.values[0] > 0 and sample.values[1] == 0 for sample in unsampled)
    by_thread: dict[tuple[int, int], int] = {}
    for times in traced.profile.threads:
        by_thread[times.pid, times.tid] = by_thread.get((times.pid, times.tid), 0) + times.on_cpu
    seen = dict.fromkeys(by_thread, 0)
    for sample in traced.profile.samples:
        seen[int(str(sample.label("pid"))), int(str(sample.label("tid")))] += sample.values[0]
    assert seen == by_thread


CALL = re.compile(
    r"main( go( libc){0,9})?( caller_\d{3}| compare_[0-9a-f]|( recurse){1,60})?( leaf_far)?( leaf_near)?( libc){0,4}"
)
"""Functions that can be on the stack of call_paths while it calls."""


def path_of(sample: Sample) -> str:
    """The user functions from main on; what is not the program's own, or leads out of it (the PLT), is ``libc``."""
    own = [
        frame.name if frame.module and frame.module.path.endswith("/call_paths") and frame.name[0] != "[" else "libc"
        for frame in sample.stack
        if frame.kind != "kernel"
    ]
    return " ".join(own[own.index("main") :]) if "main" in own else " ".join(own)


@pytest.mark.parametrize("where", ["near", "far"])
def test_no_stack_is_wrong_where_samples_come_amid_switches(trace: Trace, where: str) -> None:
    """A thousand callers, sampled as often as can be while each wait's stack is taken, too."""
    traced = trace("call_paths", where, 8, measures=(OffCpu(), OnCpu(10_000)))
    whole: Counter[bool] = Counter()
    running = 0
    for sample in traced.profile.samples:
        path = path_of(sample)
        if "go" not in path.split():
            continue  # before or after, or cut
        whole[reaches_start(sample.stack)] += sample.values[1] + sample.values[4]
        running += sample.values[4]
        assert CALL.fullmatch(path), path
    assert running > 200
    assert whole[False] < 0.01 * whole[True]
    assert traced.counters["user_memo_wrong"] == traced.counters["memo_wrong"] == 0


def test_processes_that_become_others(trace: Trace) -> None:
    """A sample never has functions of two programs."""
    traced = trace("exec_chain", 41, 3, measures=(OnCpu(10_000),))
    for sample in traced.profile.samples:
        programs = {
            frame.module.path.rpartition("/")[2]
            for frame in sample.stack
            if frame.module and "/workloads/" in frame.module.path
        }
        assert len(programs) <= 1, names_of(sample)
    # Most of the time goes into the loader, before its tables are known to the trace; nearly all on a busy machine.
    assert any(reaches_start(sample.stack) for sample in traced.profile.samples)


def test_page_faults_are_those_that_the_program_counts(trace: Trace) -> None:
    traced = trace("page_faults", 400, measures=(OnCpu(9973, "page-faults"),))
    (touched,) = traced.truth["waits"]
    seen = sum(sample.values[0] for sample in traced.samples("touch_pages"))
    assert touched["calls"] >= 400_000
    assert seen == pytest.approx(touched["calls"], rel=0.05)
    assert [column.name for column in traced.profile.value_types] == ["page-faults", "samples"]


def test_counters_that_the_machine_does_not_have(require: Callable[[bool, str], None], tmp_path: Path) -> None:
    missing = not Path("/sys/bus/event_source/devices/cpu").exists()
    if missing:
        with Tracer("-a", "-d", 1, "--event", "cycles", "-o", tmp_path / "x.svg", command=TRACE_ONCPU) as tracer:
            cause, remedy = tracer.finish().check_failed(program="trace-oncpu")
        assert cause == "this machine does not count cycles: it has no such hardware counter, or hides it from us"
        assert remedy.strip().startswith("leave --event out")
        assert list(tmp_path.iterdir()) == []
    else:
        finished = run("-a", "-d", 1, "--event", "cycles", "-o", tmp_path / "x.pb.gz", command=TRACE_ONCPU)
        finished.check_succeeded()
        assert load(tmp_path / "x.pb.gz").total("cycles") > 0


def test_killed_tracer_leaves_neither_program_nor_event(tmp_path: Path) -> None:
    with (
        Workload("spinner", 60_000) as workload,
        Tracer("-p", workload.pid, "-o", tmp_path / "out.svg", command=TRACE_ONCPU) as tracer,
    ):
        workload.release()
        tracer.ready()
        programs = program_ids(tracer.pid)
        assert len(programs) >= 6
        assert perf_events(tracer.pid) >= 1
        children = Path(f"/proc/{tracer.pid}/task/{tracer.pid}/children").read_text().split()
        tracer.interrupt(signal.SIGKILL)
        assert tracer.process.wait() == -signal.SIGKILL
        deadline = time.monotonic() + PATIENCE
        while any(map(program_exists, programs)) or any(Path(f"/proc/{child}").exists() for child in children):
            assert time.monotonic() < deadline, "programs or helpers are still there"
            time.sleep(0.02)


def perf_events(pid: int) -> int:
    """Events that a process holds. They go with their descriptors: a program that is attached keeps none alive."""
    return sum("perf_event" in str(fd.readlink()) for fd in Path(f"/proc/{pid}/fd").iterdir())


def test_idle_cores_are_not_sampled(tmp_path: Path) -> None:
    """Idle cores are not sampled, and neither is the tracer."""
    path = tmp_path / "host.pb.gz"
    with Tracer("-a", "-d", 2, "-F", 499, "-o", path, command=TRACE_ONCPU) as tracer:
        tracer.finish().check_succeeded()
        pid = tracer.pid
    profile = load(path)
    assert profile.samples
    assert {sample.label("pid") for sample in profile.samples}.isdisjoint({0, pid})
    assert not any("idle" in plain(sample.stack[-1].name) for sample in profile.samples)


def test_more_samples_than_the_kernel_allows(monkeypatch: pytest.MonkeyPatch, trace: Trace) -> None:
    limit = Path("/proc/sys/kernel/perf_event_max_sample_rate")
    before = limit.read_text()
    try:
        limit.write_text("1000")
        with pytest.raises(StallscopeError, match="no samples of cpu-clock: Invalid argument") as caught:
            trace("spinner", 100, measures=(OnCpu(1001),))
    finally:
        limit.write_text(before)
    assert "perf_event_max_sample_rate" in caught.value.remedy
