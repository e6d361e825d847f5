"""Tables of calls by process and thread: ids that come back, storms of processes and threads, and intervals."""

from __future__ import annotations

import io
import json
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import Tracer, load, run
from runner import FOLDER, Workload
from stallscope.converters import pprof
from stallscope.converters.model import Profile
from stallscope.converters.model.calls import CallTimes, together
from stallscope.converters.model.display import By, CallsView
from stallscope.converters.phrases.remarks import worded
from stallscope.converters.summary.calls_view import rows
from stallscope.converters.summary.render import render
from stallscope.converters.summary.summarize import summarize
from stallscope.tracers.engines.ebpf import folding
from stallscope.tracers.engines.ebpf.measures.calls import CallsCollector
from stallscope.tracers.engines.ebpf.probes import KERNEL_BTF
from stallscope.tracers.kernel.shapes import SHAPES, Shape
from stallscope.tracers.measures.calls import Calls
from stallscope.tracers.measures.ioctl import Ioctl
from stallscope.tracers.measures.protocol import Measure
from stallscope.tracers.probe_targets.wanted import Library, Wanted
from tracing import Trace

pytestmark = pytest.mark.usefixtures("live")

ROUNDS = 10
TRACE_CUDA = str(Path(sys.executable).with_name("trace-cuda"))


def calls_of(program: str, symbols: str) -> Calls:
    return Calls(Wanted(libraries=(Library.at(str(FOLDER / program)),), symbols=re.compile(symbols)))


MEASURES: list[tuple[Callable[[], Measure], str, str]] = [
    (lambda: calls_of("same_ids", "^ask$"), "ask", ""),
    (Ioctl, "TIOCGWINSZ", "ENOTTY"),
]
COPYING = "^cudaMemcpy$"


def joined(program: str) -> tuple[Ioctl, Calls]:
    """Measures of a program whose cudaMemcpy() copies 64 bytes to the device, and makes an ioctl."""
    ioctls = Ioctl(alone=False)
    wanted = Wanted(libraries=(Library.at(str(FOLDER / program)),), symbols=re.compile(COPYING))
    return ioctls, Calls(wanted)


def check_threads(profile: Profile) -> None:
    """The threads of a process sum to it."""
    for call in profile.calls:
        whole = together(call.threads)
        for figure in ("count", "total", "blocked", "runnable", "latencies", "errors", "open_count", "min", "max"):
            assert getattr(whole, figure) == getattr(call, figure), (call, figure)
        assert {thread.pid for thread in call.threads} == {call.pid}
        assert len({(thread.tid, thread.tid_life) for thread in call.threads}) == len(call.threads)


def reloaded(profile: Profile) -> Profile:
    file = io.BytesIO()
    pprof.save(profile, file)
    file.seek(0)
    return pprof.load(file)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
@pytest.mark.parametrize(("measure", "name", "error"), MEASURES, ids=["calls", "ioctl"])
def test_ids_that_come_back(trace: Trace, shape: Shape, measure: Callable[[], Measure], name: str, error: str) -> None:
    """Processes of one pid have an entry each, and threads of one tid, too."""
    options: dict[str, Any] = {"btf": KERNEL_BTF} if shape.raw else {}
    traced = trace("same_ids", ROUNDS, measures=(measure(),), shape=shape, **options)
    profile = traced.profile
    truths = {wait["function"]: wait for wait in traced.truth["waits"]}
    calls = [call for call in profile.calls if call.name == name]
    by_name = {call.process: call for call in calls}
    assert len(by_name) == len(calls) == 4
    check_threads(profile)
    for i in range(3):
        call, truth = by_name[f"life-{i}"], truths[f"life_{i}"]
        assert (call.pid, call.pid_life) == (truth["pid"], i + 1)
        assert call.count == ROUNDS * (i + 1)
        assert call.errors == ({error: call.count} if error else {})
    threads = by_name["same_ids"].threads
    tid = truths["again_0"]["tid"]
    found = {thread.thread: thread for thread in threads}
    assert {name: (each.tid, each.tid_life, each.count) for name, each in found.items()} == {
        f"again-{i}": (tid, i + 1, ROUNDS * (i + 1)) for i in range(3)
    }
    assert reloaded(profile).calls == profile.calls
    summary = summarize(profile)
    text = io.StringIO()
    render(summary, text)
    pid = truths["life_0"]["pid"]
    assert re.search("(by|in) 4 processes", text.getvalue())
    entries = [e for e in summary.to_json()["calls"] if (e["pid"], e["name"]) == (pid, name)]
    assert sorted((e["process"], e["pid_life"]) for e in entries) == [(f"life-{i}", i + 1) for i in range(3)]
    lines = [row.who for row in rows(summary.calls, CallsView("calls", "thread"))]
    assert f"life-2 ({pid} (third))::main" in lines
    assert f"same_ids ({by_name['same_ids'].pid})::again-1 ({tid} (second))" in lines


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_what_calls_of_processes_of_one_pid_made(trace: Trace, shape: Shape) -> None:
    """Ioctls and copies are those of the process that made them."""
    options: dict[str, Any] = {"btf": KERNEL_BTF} if shape.raw else {}
    traced = trace("same_ids", ROUNDS, measures=joined("same_ids"), shape=shape, **options)
    profile = traced.profile
    pid = next(wait["pid"] for wait in traced.truth["waits"] if wait["function"] == "life_0")
    lives = {(f"life-{i}", pid, i + 1): ROUNDS * (i + 1) for i in range(3)}
    (main,) = {call.pid for call in profile.calls if call.process == "same_ids"}
    lives["same_ids", main, 1] = ROUNDS * 6
    assert {(one.process, one.pid, one.pid_life): one.count for one in profile.call_ioctls} == lives
    assert {(one.process, one.pid, one.pid_life): one.count for one in profile.copies} == lives
    assert {one.bytes for one in profile.copies} == {64 * count for count in lives.values()}
    assert len(profile.call_ioctls) == len(profile.copies) == 4
    for one in profile.call_ioctls:
        (call,) = [each for each in profile.calls if (each.process, each.library) == (one.process, one.library)]
        assert 0 < one.total < call.total
    again = reloaded(profile)
    assert (again.call_ioctls, again.copies) == (profile.call_ioctls, profile.copies)
    entries = summarize(profile).to_json()
    assert {(e["process"], e["pid"], e["pid_life"]): e["count"] for e in entries["copies"]} == lives
    made = {(e["process"], e["pid_life"]): e["ioctls"] for e in entries["calls"] if "ioctls" in e}
    assert {(*who, one["count"]) for who, each in made.items() for one in each} == {
        (name, life, count) for (name, _, life), count in lives.items()
    }


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few threads that ended are kept one by one."""
    monkeypatch.setattr(folding, "LIMIT", 64)
    monkeypatch.setattr(folding, "_MORE", 8)


def check_storm(profile: Profile, name: str, number: int) -> CallTimes:
    """All calls are there, most of them in entries of what was folded, which it returns together."""
    assert not any(profile.lost.get(kind) for kind in ("calls", "errors of calls", "ioctls", "errors of ioctls"))
    calls = [call for call in profile.calls if call.name == name]
    assert sum(call.count for call in calls) == number
    check_threads(profile)
    folded = [each for call in calls for each in call.threads if not each.tid]
    assert sum(each.count for each in folded) > number // 2
    assert reloaded(profile).calls == profile.calls
    return together(folded)


def test_a_storm_of_processes(trace: Trace, small: None) -> None:
    profile = trace("fork_storm", 600, 4, measures=(calls_of("fork_storm", "^child_sleep$"),)).profile
    folded = check_storm(profile, "child_sleep", 600)
    assert (folded.process, folded.pid) == ("fork_storm", 0)
    summary = summarize(profile)
    (entry,) = [e for e in summary.to_json()["calls"] if e["pid"] is None and e["name"] == "child_sleep"]
    assert entry["count"] == folded.count
    (row,) = [each for each in summary.calls if each.total.name == "child_sleep"]
    assert (row.total.count, row.processes) == (600, "up to 600 processes")


def test_what_a_storm_of_processes_made(trace: Trace, small: None) -> None:
    """Ioctls and copies of processes that were added up are those of their name, and not of a pid."""
    profile = trace("fork_storm", 600, 4, measures=joined("fork_storm")).profile
    folded = check_storm(profile, "cudaMemcpy", 600)
    calls = {call.pid: call for call in profile.calls if call.library}
    for parts in (profile.call_ioctls, profile.copies):
        assert {one.pid: one.count for one in parts} == {pid: call.count for pid, call in calls.items()}
        assert next(one for one in parts if not one.pid).process == folded.process == "fork_storm"
    assert not profile.lost["ioctls in calls"] and not profile.lost["copies"]
    (entry,) = [each for each in summarize(profile).to_json()["calls"] if each["pid"] is None and "ioctls" in each]
    assert [made["count"] for made in entry["ioctls"]] == [folded.count]


def test_what_calls_made_does_not_outgrow_the_tables(trace: Trace) -> None:
    """The tables are emptied while the trace runs: there are more entries than the 1,024 for which they have room."""
    profile = trace("fork_storm", 1500, 4, measures=joined("fork_storm"), table_entries=4096).profile
    assert sum(one.count for one in profile.call_ioctls) == sum(one.count for one in profile.copies) == 1500
    assert not profile.lost["ioctls in calls"] and not profile.lost["copies"]


def test_a_storm_of_threads(trace: Trace, small: None) -> None:
    """Threads of a process that goes on are added up by their names."""
    profile = trace("pool_per_call", 60, 8, measures=(calls_of("pool_per_call", "^work_in_pool$"),)).profile
    (call,) = [call for call in profile.calls if call.name == "work_in_pool"]
    folded = check_storm(profile, "work_in_pool", call.count)
    assert folded.pid == call.pid > 0
    assert len(call.threads) < 200


def test_intervals(tmp_path: Path) -> None:
    """Each call is counted in one interval, with its errors and its time; so are the costs of the probes."""
    out = tmp_path / "%Y%m%d-%H%M%S.pb.gz"
    with Workload("cuda_calls", "plain", 2, 60, 5_000) as workload:
        pids = ",".join(map(str, workload.pids))
        with Tracer("--every", "1s", "-p", pids, "-o", out, command=TRACE_CUDA) as tracer:
            tracer.ready()
            workload.release()
            truths = [wait for wait in workload.truth()["waits"] if wait["calls"]]
            tracer.finish().check_succeeded()
    found = [load(path) for path in sorted(tmp_path.iterdir())]
    assert len(found) >= 3
    calls = [call for profile in found for call in profile.calls if call.library]
    assert {call.pid for call in calls} == {truth["pid"] for truth in truths}
    for truth in truths:
        own = [call for call in calls if (call.name, call.pid) == (truth["function"], truth["pid"])]
        assert sum(call.count for call in own) == truth["calls"] == sum(sum(call.latencies) for call in own)
        assert sum(call.total for call in own) <= truth["ns"]
        # Between the workload's clock and a call are the probes, and a busy machine can take the core there.
        assert sum(call.total for call in own) >= 0.8 * truth["ns"] or truth["ns"] < truth["calls"] * 1_000_000
        errors = Counter[str]()
        for call in own:
            errors.update(call.errors)
        failed = {"cudaMalloc": {"cudaErrorMemoryAllocation": 6}, "cuMemAlloc": {"CUDA_ERROR_INVALID_VALUE": 6}}
        assert errors == failed.get(truth["function"], {})
    runs = []
    for profile in found:
        assert not any(profile.lost[kind] for kind in CallsCollector(Calls()).losses())
        check_threads(profile)
        (cost,) = [note for note in worded(profile.comments) if note.startswith("the probes ran")] or [""]
        runs.append(int(re.sub("[^0-9]", "", cost.split(" time")[0]) or 0))
    # Two runs a call; the first calls of a trace may lack a probe at their entry.
    assert 2 * sum(call.count for call in calls) <= sum(runs) <= 2 * sum(call.count for call in calls) + 10


@pytest.mark.parametrize("by", ["function", "process", "thread"])
def test_tables_of_the_command(tmp_path: Path, by: By) -> None:
    program = FOLDER / "cuda_calls"
    command = run(
        "-o", tmp_path / "x.pb.gz", "--sort", "max", "--by", by, "--rows", 3, "--", program, "plain", 2, 20,
        command=TRACE_CUDA,
    ).check_succeeded()  # fmt: skip
    lines = command.out.splitlines()
    head = next(i for i, line in enumerate(lines) if line.split()[:4] == ["Calls", "Total", "Self", "Ratio"])
    assert "::main" in command.out if by == "thread" else "::main" not in command.out
    with (tmp_path / "x.pb.gz").open("rb") as file:
        summary = summarize(pprof.load(file))
    found = rows(summary.calls, CallsView("max", by))
    (rest,) = [line for line in lines[head:] if line.endswith(("more calls", "more rows"))]
    assert f"{len(found) - 3} more " in rest
    names = [line for line in lines[head : lines.index(rest)] if any(row.call.name in line for row in found)]
    assert len(names) == 3
    for line, row in zip(names, found, strict=False):
        assert row.call.name in line and row.who in line
    counts = Counter({call.name: call.count for call in (each.total for each in summary.calls)})
    assert counts == Counter({row.call.name: 0 for row in found}) + counts
    json.dumps(summary.to_json())


def test_calls_that_are_nested_too_deeply(trace: Trace) -> None:
    """recurse() of call_paths is 1 to 60 calls deep: those inside 8 others are told apart from a lack of room."""
    traced = trace("call_paths", "near", 1, measures=(calls_of("call_paths", "^recurse$"),))
    counted = lost = 0
    for wait in traced.truth["waits"]:
        name, _, depth = wait["function"].partition("/")
        if name == "recurse":
            counted += min(int(depth), 8) * wait["calls"]
            lost += max(int(depth) - 8, 0) * wait["calls"]
    profile = traced.profile
    (call,) = [call for call in profile.calls if call.name == "recurse"]
    assert lost > 1000
    assert (call.count, profile.lost["calls inside 8 others"], profile.lost["calls"]) == (counted, lost, 0)
    assert not any("--table-size" in comment for comment in worded(profile.comments))
    text = io.StringIO()
    render(summarize(profile), text)
    assert f"{lost:,} calls inside 8 others" in text.getvalue()


def test_calls_of_a_killed_process(tmp_path: Path) -> None:
    """The time of the calls that it was in is in the picture up to its end: each ns once."""
    program, out = FOLDER / "call_loop", tmp_path / "x.pb.gz"
    script = f"{program} 100000000 & sleep 1; kill -9 $!; wait; true"
    wanted = "--lib", program, "--sym", "^(main|call_target)$"
    run("-o", out, *wanted, "--", "sh", "-c", script, command=TRACE_CUDA).check_succeeded()
    profile = load(out)
    calls = {call.name: call for call in profile.calls if call.process == "call_loop"}
    main, target = calls["main"], calls["call_target"]
    assert (main.count, main.open_count) == (0, 1)
    assert main.open_time > 500_000_000 and target.count > 1000
    assert main.open_inner == target.whole
    whole = sum(sample.values[0] for sample in profile.samples if sample.label("process") == "call_loop")
    assert whole == main.open_time == sum(call.whole_own for call in calls.values())
