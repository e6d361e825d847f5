"""Wait-for graphs of workloads of which they are known."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from runner import FOLDER, WorkloadFailed
from stallscope.converters.facts.idle_evidence import idle_nodes
from stallscope.converters.graph.knots import knots
from stallscope.converters.model.waits_for import THREAD, TIMER, Node, WaitGraph, by_process, chain_of, waits_for
from stallscope.converters.summary.summarize import summarize
from stallscope.converters.writers.base.options import WriteOptions
from stallscope.converters.writers.waits_for import graph as graph_module
from stallscope.converters.writers.waits_for.graph import picture
from stallscope.tracers.measures.offcpu import OffCpu
from stallscope.tracers.measures.wakeup import MAX_DEPTH, WakeUp
from tracing import RUNNABLE, Trace, Traced

MS = 1_000_000
KINDS = ["gil", "rwlock", "herd", "cycle", "events", "uring"]


POOL = """
import os, pathlib, sys
workers = []
for number in range(3):
    (give, take), (answer, told) = (os.pipe()[::-1], os.pipe())
    pid = os.fork()
    if not pid:
        os.close(give)
        for other, _ in workers:
            os.close(other)
        while os.read(take, 1):
            sum(range(400_000 if number == 1 else 1_000))
            os.write(told, b"x")
        os._exit(0)
    if number == 1:
        pathlib.Path(sys.argv[0]).with_name("slow").write_text(str(pid))
    workers.append((give, answer))
for _ in range(60):
    for give, _ in workers:
        os.write(give, b"x")
    for _, answer in workers:
        os.read(answer, 1)
"""


def answer_of(command: str, *arguments: object) -> str:
    """The sentences."""
    line = [Path(sys.executable).with_name(command), "--json", *arguments]
    text = subprocess.run(line, capture_output=True, check=True).stdout.decode()
    return " ".join(json.JSONDecoder().raw_decode(text[text.index('{\n  "version"') :])[0]["answer"])


def named(graph: WaitGraph, node: Node) -> str:
    """``worker`` for a thread, ``[timer]``."""
    return graph.names[node][1] if node.kind == THREAD else node.name


def ends(traced: Traced, victim: str, function: str = "") -> Counter[str]:
    """Times of threads whose names begin so, by the end of their waits; only waits in ``function``."""
    profile = traced.profile
    kept = [s for s in profile.samples if not function or any(frame.name == function for frame in s.stack)]
    graph = waits_for(type(profile)(profile.value_types, kept, threads=profile.threads))
    found: Counter[str] = Counter()
    for (waits, end), time in graph.ends.items():
        if named(graph, waits).startswith(victim):
            found[named(graph, end)] += time
    return found


def slack(traced: Traced) -> int:
    """ns that threads waited for a core: for so long others wait for them, or longer for what they wait for."""
    return sum(times.runnable for times in traced.profile.threads)


def test_slow_holder_of_a_lock_is_blamed(trace: Trace) -> None:
    traced = trace("lock_holder", 8, 12, 30_000, measure=WakeUp(MAX_DEPTH))
    blamed = ends(traced, "waiter-", "take_lock")
    assert blamed.total() > 8 * 12 * 15 * MS
    assert blamed["holder"] + 8 * slack(traced) >= 0.95 * blamed.total(), blamed
    (told,) = [text for text in summarize(traced.profile).answer if "ends with holder (pid " in text]
    share = re.match(r"([\d.]+) % of what the 8 processes waiter-\* wait for others \(", told)
    assert share, told
    # For as long as one of them has the lock and no core, seven wait for it.
    queued = 8 * sum(times.runnable for times in traced.profile.threads if times.thread.startswith("waiter"))
    assert float(share[1]) >= 95 - 100 * queued / blamed.total(), told


def test_culprit_that_runs(live: None, tmp_path: Path) -> None:
    """A pool with one slow item: who has it, that it runs, and where if samples tell."""
    script = tmp_path / "pool.py"
    script.write_text(POOL)
    answer = answer_of("trace-wakeup", "--depth", "8", "--", sys.executable, script)
    slow = (tmp_path / "slow").read_text()
    told = rf"([\d.]+) % of what the \d processes .* wait for others .* ends with [^;]*\(pid {slow}\)[^;]*; it is on "
    found = re.search(told, answer)
    assert found, (slow, answer)
    assert float(found[1]) >= 60, answer
    answer = answer_of("trace-wall", "--wakers", "--", FOLDER / "lock_holder", "1", "40", "10000")
    assert re.search(r"ends with holder .* mostly in main → hold\b", answer), answer


def test_chain_of_pipes_is_a_ring(trace: Trace) -> None:
    """Each stage waits for the one before it, and they are one knot."""
    traced = trace("pipe_chain", 5, 30, 3000, measure=WakeUp(MAX_DEPTH))
    graph = waits_for(traced.profile)
    waited: Counter[tuple[str, str]] = Counter()
    for (victim, waker), edge in graph.edges.items():
        waited[named(graph, victim), named(graph, waker)] += edge.waited
    for stage in range(5):
        victim, before = f"stage-{stage}", f"stage-{(stage - 1) % 5}"
        of_stage = sum(time for (one, _), time in waited.items() if one == victim)
        # The gate before the start, and the end, belong to nobody.
        assert waited[victim, before] >= 0.8 * of_stage, waited
    (knot, *_) = knots(graph)
    assert {named(graph, node) for node in knot.nodes} == {f"stage-{i}" for i in range(5)}
    assert knot.time >= 0.6 * graph.total


def test_lock_that_goes_around(trace: Trace) -> None:
    """The lock is as Python's: each waits for each of the others for about the same time."""
    traced = trace("who_waits", "gil", 15, 8, measure=WakeUp(MAX_DEPTH))
    for runner in range(4):
        by = ends(traced, f"runner-{runner}", "take_turn")
        others = [by[f"runner-{other}"] for other in range(4) if other != runner]
        assert sum(others) >= 0.97 * by.total() > 0, by
        assert max(others) <= 1.6 * min(others) + slack(traced), by
    ((nodes, time, _), *_) = knots(waits_for(traced.profile))
    assert len(nodes) == 4
    assert time >= 0.6 * waits_for(traced.profile).total


def test_writer_blocks_readers(trace: Trace) -> None:
    traced = trace("who_waits", "rwlock", 15, 10, measure=WakeUp(MAX_DEPTH))
    by = ends(traced, "reader-", "read_shared")
    assert by.total() > 0
    assert by["writer"] + 4 * slack(traced) >= 0.95 * by.total(), by


def test_herd_waits_for_who_calls_it(trace: Trace) -> None:
    traced = trace("who_waits", "herd", 40, 5, measure=WakeUp(MAX_DEPTH))
    by = ends(traced, "sleeper-", "await_call")
    # Woken together, they wait for each other's mutex for a moment.
    assert by["caller"] + 8 * slack(traced) >= 0.95 * by.total() > 8 * 30 * 5 * MS, by
    graph = waits_for(traced.profile)
    to_timer = [edge.passed_on for (_, to), edge in graph.edges.items() if to.kind == TIMER]
    assert sum(to_timer) >= 0.9 * 8 * 40 * 5 * MS, "while it sleeps, they wait for the timer"


def test_cycle_of_two_threads_is_a_closed_knot(trace: Trace) -> None:
    traced = trace("who_waits", "cycle", 20, 8, measure=WakeUp(MAX_DEPTH))
    graph = waits_for(traced.profile)
    (knot, *_) = knots(graph)
    assert {named(graph, node) for node in knot.nodes} == {"left", "right"}
    assert knot.closed
    # The gate before the start belongs to nobody.
    assert knot.time >= 0.9 * (ends(traced, "left")["right"] + ends(traced, "right")["left"]) > 20 * 8 * MS
    summary = summarize(traced.profile)
    assert summary.blocking
    assert {member.thread for member in summary.blocking.knots[0].members} == {"left", "right"}


def test_through_a_driver_to_its_other_user(trace: Trace, require: Callable[[bool, str], None]) -> None:
    """main waits for a thread, which waits in an ioctl for the process that serves it, which waits for a neighbour."""
    require(Path("/dev/fuse").exists(), "no FUSE")
    traced = trace("who_waits", "driver", 25, 10, measure=WakeUp(MAX_DEPTH))
    by = ends(traced, "who_waits", "await_worker")
    assert by.total() > 25 * 5 * MS
    # The neighbour has the lock; it waits for a core, too, and the others do before they take it.
    assert by["neighbour"] + 3 * slack(traced) >= 0.95 * by.total(), by
    chains = {
        tuple(node.pid for node in pair) for pair, edge in waits_for(traced.profile).edges.items() if edge.passed_on
    }
    graph = by_process(waits_for(traced.profile))
    pids = {graph.names[node][0]: node.pid for node in graph.traced}
    assert (pids["server"], pids["neighbour"]) in chains
    assert "ends with neighbour (pid " in " ".join(summarize(traced.profile).answer)


def test_only_the_last_wait_of_a_waker_goes_on(trace: Trace) -> None:
    """The waker has slept before, too: that it was in its last wait for all of that time would not be true."""
    traced = trace("who_waits", "twice", 30, 10, measure=WakeUp(MAX_DEPTH))
    links: Counter[int] = Counter()
    for sample in traced.profile.samples:
        if sample.label("thread") == "taker" and sample.label("waker_thread") == "maker":
            links[len(chain_of(sample))] += sample.values[0]
    # maker's own part, and about 1 ms of each of taker's waits.
    assert links[1] >= 30 * 10 * MS * 0.9, links
    assert 30 * MS * 0.8 <= links[2] <= 0.3 * links[1], links


@pytest.mark.parametrize(
    ("kind", "victim", "function"), [("events", "loop", "await_events"), ("uring", "ring", "await_ring")]
)
def test_completions(trace: Trace, require: Callable[[bool, str], None], kind: str, victim: str, function: str) -> None:
    """The wakers are who made the completions of epoll and io_uring, and not who noticed."""
    try:
        traced = trace("who_waits", kind, 40, 5, measure=WakeUp(MAX_DEPTH))
    except WorkloadFailed as failure:
        require("io_uring is refused" not in str(failure), "the kernel refuses io_uring")
        raise
    by = ends(traced, victim, function)
    assert by["feeder"] >= 0.95 * by.total() > 20 * 5 * MS, by


def test_timer_that_nobody_needs_is_idle(trace: Trace) -> None:
    """A timer that others wait for is not idle."""
    traced = trace("who_waits", "tick", 300, 5, measure=WakeUp(2))
    graph = waits_for(traced.profile)
    assert {named(graph, node) for node in idle_nodes(traced.profile, graph)} == {"ticker"}
    assert "periodic" in {wait.idle_by for wait in summarize(traced.profile).waits}
    traced = trace("sleeps", 2, measure=WakeUp(2))
    assert not idle_nodes(traced.profile, waits_for(traced.profile)), "three sleeps of different lengths"
    traced = trace("slow_producer", 60, 5000, measure=WakeUp(2))
    graph = waits_for(traced.profile)
    assert "producer" not in {named(graph, node) for node in idle_nodes(traced.profile, graph)}


@pytest.mark.parametrize("kind", KINDS)
def test_sums_are_those_of_off_cpu(trace: Trace, kind: str) -> None:
    """The sums are of one run, within 1 %, by thread; with redistribution, too."""
    traced = trace("who_waits", kind, 20, 3, measures=(OffCpu(), WakeUp(4, alone=False)))
    graph = waits_for(traced.profile)
    blocked: Counter[Any] = Counter()
    for sample in traced.profile.samples:
        if sample.label("state") not in RUNNABLE:
            blocked[sample.label("tid")] += sample.values[0]
    waits: Counter[Any] = Counter()
    for node, time in graph.waits().items():
        waits[node.tid] += time
    assert blocked.total() > 0
    assert abs(graph.total - blocked.total()) <= 0.01 * blocked.total()
    assert graph.total == sum(edge.passed_on for edge in graph.edges.values()) == sum(graph.ends.values())
    for tid, time in blocked.items():
        assert abs(waits[tid] - time) <= 0.01 * time, (tid, waits, blocked)


def test_storm_of_processes_fits_and_loses_nothing(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_module, "_NODES", 50)
    monkeypatch.setattr(graph_module, "_EDGES", 100)
    traced = trace("fork_storm", 400, 8, measure=WakeUp(4))
    assert traced.profile.lost["wake-ups"] == traced.profile.lost["threads"] == 0
    whole = sum(sample.values[0] for sample in traced.profile.samples)
    made = picture(traced.profile, WriteOptions())
    assert len(made.points) == 51, "and [other]"
    assert len(made.arrows) <= 100 + 51
    assert sum(arrow.waited for arrow in made.arrows) == sum(arrow.passed_on for arrow in made.arrows) == whole > 0


def test_the_command_writes_every_format(live: None, tmp_path: Path) -> None:
    command = Path(sys.executable).with_name("trace-offcpu")
    outputs = [tmp_path / name for name in ("x.pb.gz", "x.dot", "x.graphml", "x.graph.json")]
    line = [command, "--wakers", "--json", *(part for path in outputs for part in ("-o", path))]
    done = subprocess.run([*line, "--", FOLDER / "who_waits", "cycle", "20", "5"], capture_output=True, check=True)
    text = done.stdout.decode()
    summary = json.loads(text[text.index('{\n  "version"') :])
    assert summary["waits_for"]["knots"][0]["closed"] is True
    data = json.loads(outputs[3].read_text())
    assert {node["thread"] for node in data["nodes"]} >= {"left", "right"}
    assert sum(link["waited_ns"] for link in data["links"]) == data["graph"]["blocked_ns"]
    assert data["graph"]["blocked_ns"] == summary["waits_for"]["blocked_ns"] + summary["waits_for"]["idle_ns"]
    assert all(path.stat().st_size for path in outputs)
