"""The checks of times and counts, in a guest: against the workloads' own clocks, and against offcputime."""

from __future__ import annotations

import re
import signal
import subprocess
from collections import Counter

import numpy as np
from guest_traces import CLOSURE, WHOLE, traced
from peers import wait_for_link
from runner import Workload
from stacks_truth import reaches_start
from stallscope.converters.model.phases import STATES, phases
from stallscope.converters.model.states import RUNNING
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.ebpf.measures.registry import collectors
from stallscope.tracers.engines.ebpf.probes import ProbeOptions
from stallscope.tracers.measures.offcpu import OffCpu
from stallscope.tracers.measures.oncpu import OnCpu
from stallscope.tracers.measures.timeline import Timeline
from tracing import Traced, run_traced

MS = 1_000_000
NSEC = 1_000_000_000
HZ = 499
TIMES = 0.10
"""Share by which a function's time may differ from the workload's own clock, and 10 ms."""
COUNTS = 0.02
"""Share by which the number of waits may differ from the kernel's own count of voluntary switches, and one: on 7.2 the
kernel has been seen to count one wait of 50 in nanosleep(2) as involuntary."""
SHARES = 0.06
"""Difference between a function's share of the samples and its share of the thread's own clock, at most."""
PEERS = 0.05
"""Share by which offcputime's total may differ from ours. Of a wait of 1 ms the two programs themselves, one after the
other at each switch, are more than that under emulation."""


def truth() -> str:
    """Times and counts of functions with frame pointers against the workloads' own clocks."""
    worst = 0.0
    for name, arguments in (
        ("sleeps", (8,)),
        ("futex_pingpong", (500,)),
        ("pipe_chain", (4, 200)),
        ("fork_storm", (50, 2)),
    ):
        found = traced(name, *arguments)
        _check_closure(found)
        differs = _check_times(found, per_thread=name != "fork_storm")
        worst = differs if name == "sleeps" else worst
        for kind in ("intervals", "stacks", "threads", "exit and exec records", "address space records"):
            assert not found.profile.lost[kind], (name, kind, found.profile.lost[kind])
    spinners = traced("two_spinners", 1000)
    for thread in spinners.truth["threads"]:
        inside = spinners.samples("spin", thread["tid"])
        waited = sum(sample.values[0] for sample in inside if sample.label("state") == "runnable-preempted")
        assert abs(waited - thread["runnable_ns"]) <= _slack(thread["runnable_ns"]), (waited, thread)
    close = f"counts within {COUNTS:.0%}, accounts closed within {CLOSURE:.0%}"
    return f"sleeps within {worst:.1%} of their own clock, {close}"


def wall() -> str:
    """All of the time of threads, running and not, in one profile; and what a spinner's functions share."""
    measures = OffCpu(time="wall"), OnCpu(HZ, time="wall")
    for name, arguments in (
        ("sleeps", (8,)),
        ("two_spinners", (1000,)),
        ("fork_storm", (50, 2)),
        ("pipe_chain", (4, 200)),
    ):
        found = traced(name, *arguments, measures=measures)
        _check_closure(found)
        _check_sums(found)
    found = traced("shares", 4000, measures=measures)
    _check_closure(found)
    _check_sums(found)
    busy = sum(part["ns"] for part in found.truth["waits"])
    running = [sample for sample in found.profile.samples if sample.label("state") == "running"]
    seen = Counter[str]()
    for part in found.truth["waits"]:
        name = part["function"]
        seen[name] = sum(s.values[0] for s in running if any(frame.name == name for frame in s.stack))
    worst = max(abs(seen[part["function"]] / seen.total() - part["ns"] / busy) for part in found.truth["waits"])
    print(seen, found.truth["waits"])
    assert worst <= SHARES, worst
    taken = sum(sample.values[4] for sample in running)
    assert taken >= seen.total() / NSEC * HZ / 2, (taken, seen.total())
    whole = sum(s.values[4] for s in running if reaches_start(s.stack))
    assert whole >= WHOLE * taken, (whole, taken, found.profile.comments)
    return f"samples sum to the threads' time; shares of five functions within {worst:.1%} by {taken:,} samples"


def timeline() -> str:
    """The scheduler's events: none lost, in order, and the accounts are their sums."""
    counted = 0
    for name, arguments in (("pipe_chain", (4, 200)), ("fork_storm", (50, 2)), ("two_spinners", (1000,))):
        found = traced(name, *arguments, measures=(OffCpu(), Timeline()))
        scheduling = found.profile.scheduling
        assert scheduling is not None
        assert not sum(scheduling.lost().values()), (name, scheduling.lost())
        for times in found.profile.threads:
            rows = np.flatnonzero((scheduling.threads["tid"] == times.tid) & (scheduling.threads["tgid"] == times.pid))
            mine = phases(scheduling)
            mine = mine[np.isin(mine["thread"], rows)]
            ran = int((mine["end"] - mine["begin"])[mine["state"] == STATES.index(RUNNING)].sum())
            assert abs(ran - times.on_cpu) <= CLOSURE * times.wall, (name, times, ran)
        counted += scheduling.count()
    return f"{counted:,} events, none lost; what they say of running is what the accounts say"


def peer() -> str:
    """libbpf-tools' offcputime beside ours, on the same process at the same time."""
    found: dict[str, float] = {}
    with Workload("sleeps", 40, linger=True) as workload:
        theirs = subprocess.Popen(
            ["/usr/sbin/offcputime", "-p", str(workload.pid), "30"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_for_link(theirs.pid)
        scope = Scope(pids=list(workload.pids))
        scope.resolve()
        ours = run_traced(workload, ProbeOptions(scope, collectors([OffCpu()])), None)
        theirs.send_signal(signal.SIGINT)
        said, errors = theirs.communicate(timeout=60)
    assert theirs.returncode == 0, errors
    functions = {wait["function"] for wait in ours.truth["waits"]}
    for block in said.split("\n\n"):
        total = re.search(r"^\s+(\d+)\s*$", block, re.MULTILINE)
        # Two stacks whose hashes meet: it has lost one, but its time belongs to the total.
        lost = "[Missed User Stack]" in block and "do_nanosleep" in block
        for function in functions | {"lost"}:
            if total and (lost if function == "lost" else re.search(rf"\b{function}\b", block)):
                found[function] = found.get(function, 0) + int(total[1]) * 1000
    mine = {wait["function"]: ours.waited(wait["function"]) for wait in ours.truth["waits"]}
    for function, ns in mine.items():
        assert function in found or "lost" in found, said[:3000]
        print(f"{function}: ours {ns / MS:.1f} ms, offcputime {found.get(function, 0) / MS:.1f} ms")
    differs = abs(sum(mine.values()) - sum(found.values())) / sum(mine.values())
    print(f"offcputime's lost stacks: {found.get('lost', 0) / MS:.1f} ms")
    assert differs <= PEERS, (differs, said[:3000])
    return f"the same {len(mine)} functions, totals within {differs:.1%}"


def _check_sums(found: Traced) -> None:
    """A thread's samples are its time: what it ran, waited for a core and was blocked."""
    sums = Counter[tuple[object, object]]()
    for sample in found.profile.samples:
        sums[sample.label("pid"), sample.label("tid")] += sample.values[0]
    accounts = Counter[tuple[object, object]]()
    for times in found.profile.threads:
        accounts[times.pid, times.tid] += times.on_cpu + times.runnable + sum(times.blocked.values())
    for who, account in accounts.items():
        assert abs(sums[who] - account) <= CLOSURE * account, (who, sums[who], account)


def _slack(ns: int) -> float:
    return max(TIMES * ns, 10 * MS)


def _check_times(found: Traced, *, per_thread: bool) -> float:
    """The largest share by which a function's time differs."""
    worst = 0.0
    for wait in found.truth["waits"]:
        tid = wait["tid"] if per_thread else None
        function, ns = wait["function"], wait["ns"]
        blocks = found.blocks(function, tid)
        most = max(1, COUNTS * blocks)
        if not blocks - most <= wait["blocks"] <= blocks + found.unseen + most:
            for sample in found.samples(function, tid):
                print(sample.values, sample.labels, " → ".join(frame.name for frame in sample.stack[-12:]))
            raise AssertionError((function, blocks, wait, found.counters))
        busy = sum(t["cpu_ns"] for t in found.truth["threads"] if tid in (None, t["tid"])) + found.preempted(tid)
        waited = found.waited(function, tid)
        print(f"{function}: {waited / MS:.1f} ms of {ns / MS:.1f} ms, {blocks} waits of {wait['blocks']}")
        assert ns - busy - found.stolen - _slack(ns) <= waited <= ns + _slack(ns), (function, waited, busy, wait)
        if ns > 50 * MS:
            worst = max(worst, abs(ns - waited) / ns)
    return worst


def _check_closure(found: Traced) -> None:
    for times in found.profile.threads:
        together = times.on_cpu + times.runnable + sum(times.blocked.values())
        assert abs(together - times.wall) <= CLOSURE * times.wall, times
