"""Native stacks of programs without frame pointers: whole, and frame for frame what debuggers see.

The programs and their truth: tests/workloads/README.md. Time in stacks that are whole is counted over all off-CPU time
of the trace, preemptions at any instruction and threads that slept when it began included.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from container import Container, can_contain
from paths import PATHS, TOO_DEEP, follows
from redis_under_load import installed as redis_installed
from redis_under_load import load, redis
from runner import FOLDER, SettledWorkload, Workload
from stacks_truth import (
    TruthStack,
    aliases,
    differences,
    eu_stacks,
    gdb_stacks,
    native,
    reaches_start,
    same_name,
)
from stallscope.converters.model import Frame, Profile, Sample
from stallscope.converters.phrases.remarks import worded
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.ebpf.assemble import profile_of
from stallscope.tracers.engines.ebpf.measures.registry import collectors
from stallscope.tracers.engines.ebpf.probes import KERNEL_BTF, ProbeOptions, Probes
from stallscope.tracers.engines.ebpf.session import Session
from stallscope.tracers.images.elf import BytesSource, ElfFile
from stallscope.tracers.kernel.records import MAX_FRAMES, RecordSink
from stallscope.tracers.kernel.shapes import SHAPES, Shape
from stallscope.tracers.measures.offcpu import OffCpu
from stallscope.tracers.unwind.cache import TableCache
from tracing import RUNNABLE, Trace, Traced, run_traced

pytestmark = pytest.mark.usefixtures("live")

MILLISECONDS = 2500
WHOLE = 0.99
"""Part of the off-CPU time that is in whole stacks, at least."""
WHOLE_AFTER_EXEC = 0.9
MISPLACED = 0.005
"""Part of the time and of the waits, at most, under another path than their own."""
EARLY = 0.4
"""Part of the waits in a library that took another's place, at most, before that is known."""
NOT_WALKED = ("[not started yet]", "[switch not reported]")


@dataclass
class Held:
    """A trace over a program at work, up to the moment when all its threads stood still, and their stacks then."""

    traced: Traced
    comms: dict[int, str]
    eu: dict[int, TruthStack]
    gdb: dict[int, TruthStack]

    @property
    def remarks(self) -> list[str]:
        """Remarks of the trace on itself."""
        profile = self.traced.profile
        return [*worded(profile.comments), *(f"{number} {what}" for what, number in profile.lost.items() if number)]

    def last_stack(self, tid: int) -> list[Frame]:
        """The user frames that the thread stands in when the trace ends."""
        return last_stack(self.traced.profile, tid)


def last_stack(profile: Profile, tid: int) -> list[Frame]:
    stacks = {s.stack for s in profile.samples if s.label("tid") == tid and s.label("open") == "yes"}
    assert len(stacks) == 1, (tid, stacks)
    return native(stacks.pop())


class SettledContainer(SettledWorkload, Container):
    pass


def trace_workload(workload: Workload, knobs: Mapping[str, int] | None = None) -> Traced:
    scope = Scope(pids=list(workload.pids))
    scope.resolve()
    return run_traced(workload, ProbeOptions(scope, collectors([OffCpu()]), knobs=knobs or {}), None)


def trace_process(pid: int, seconds: float) -> Profile:
    scope = Scope(pids=[pid])
    scope.resolve()
    sink = RecordSink()
    engine = Probes(ProbeOptions(scope, collectors([OffCpu()])), sink)
    try:
        return profile_of(Session(engine, None, seconds).run(sink), "Off-CPU time")
    finally:
        engine.close()


@lru_cache
def held(program: str) -> Held:
    _compile_tables()
    with SettledWorkload(program, MILLISECONDS, linger=True) as workload:
        traced = trace_workload(workload)
        comms = comms_of(workload)
        return Held(traced, comms, eu_stacks(workload.pid), gdb_stacks(workload.pid))


@lru_cache
def _compile_tables() -> None:
    """Compiles the tables of the 512 libraries: the first time they take longer than the program runs."""
    cache = TableCache()
    for path in (FOLDER / "many").glob("*.so"):
        cache.table(ElfFile(BytesSource(path.read_bytes())))
    cache.close()


def comms_of(workload: Workload) -> dict[int, str]:
    tasks = Path(f"/proc/{workload.pid}/task")
    return {tid: (tasks / str(tid) / "comm").read_text().rstrip("\n") for tid in workload.tids}


def check_whole(profile: Profile, *, but: Sequence[str] = (), share: float = WHOLE) -> None:
    """``but``: threads whose stacks cannot all be whole."""
    time: Counter[bool] = Counter()
    broken: Counter[str] = Counter()
    for sample in profile.samples:
        if sample.stack[0].name in NOT_WALKED or sample.label("thread") in but:
            continue
        whole = reaches_start(sample.stack)
        time[whole] += sample.values[0]
        if not whole:
            broken[described(sample)] += sample.values[0]
    assert time.total() > 0
    found = time[True] / time.total()
    worst = [f"{ns / time.total():.2%} {stack}" for stack, ns in broken.most_common(8)]
    assert found >= share, "\n".join([f"only {found:.2%} of the time is in whole stacks; the worst others:", *worst])


def described(sample: Sample) -> str:
    frames = native(sample.stack)
    outer = " → ".join(frame.name for frame in frames[:4])
    return f"{sample.label('thread')} ({sample.label('state')}, {len(frames)} user frames): {outer}"


@pytest.mark.parametrize("program", PATHS)
def test_stacks_reach_the_start_of_the_thread(program: str) -> None:
    check_whole(held(program).traced.profile, but=(TOO_DEEP, "reload"))


@pytest.mark.parametrize("program", PATHS)
def test_every_thread_did_its_work(program: str) -> None:
    """The whole is also right: the time that each thread measured is where its function is."""
    traced, comms = held(program).traced, held(program).comms
    for wait in traced.truth["waits"]:
        path = PATHS[program].get(comms[wait["tid"]], ())
        if not wait["ns"] or wait["function"] in ("same_address", "reload", TOO_DEEP, "zlib"):
            continue
        samples = [s for s in traced.profile.samples if s.label("tid") == wait["tid"] and s.label("open") != "yes"]
        there = [s for s in samples if follows([frame.name for frame in native(s.stack)], path)]
        waits = sum(s.values[1] for s in there if s.label("state") not in RUNNABLE)
        assert wait["blocks"] * WHOLE - traced.unseen <= waits, (wait, path)


@pytest.mark.parametrize("program", PATHS)
def test_frames_are_those_of_eu_stack(program: str) -> None:
    here = held(program)
    for tid, truth in here.eu.items():
        found = differences(here.last_stack(tid), truth, MAX_FRAMES)
        assert not found, (here.comms[tid], found[:10], here.remarks)


@pytest.mark.parametrize("program", sorted(set(PATHS) - {"jit_mixed"}))
def test_frames_are_those_of_gdb(program: str) -> None:
    here = held(program)
    for tid, truth in here.gdb.items():
        found = differences(here.last_stack(tid), truth, MAX_FRAMES)
        assert not found, (here.comms[tid], found[:10], here.remarks)


@pytest.mark.parametrize("program", PATHS)
def test_threads_are_where_the_program_says(program: str) -> None:
    here = held(program)
    for tid, comm in here.comms.items():
        if comm not in PATHS[program] or comm == TOO_DEEP:
            continue
        names = [frame.name for frame in here.last_stack(tid)]
        assert follows(names, PATHS[program][comm]), (comm, names)


def test_stack_that_is_too_deep_is_cut_and_counted() -> None:
    here = held("cpp_frames")
    (tid,) = [tid for tid, comm in here.comms.items() if comm == TOO_DEEP]
    frames = here.last_stack(tid)
    assert len(frames) == MAX_FRAMES, here.remarks
    assert differences(frames, here.eu[tid], MAX_FRAMES) == []
    assert here.traced.profile.lost[f"stacks cut at {MAX_FRAMES} frames"] > 0


def test_libraries_that_change_places_keep_their_names() -> None:
    """`reload` in many_mappings: two libraries in turn at one address. A frame may have no name; never the other's.

    Until the probes know of a change, the walk cannot get beyond it."""
    traced, comms = held("many_mappings").traced, held("many_mappings").comms
    (tid,) = [tid for tid, comm in comms.items() if comm == "reload"]
    waits: Counter[str] = Counter()
    early = 0
    for sample in traced.samples("reload_wait", tid):
        names = [frame.name for frame in native(sample.stack)]
        if not reaches_start(sample.stack):
            early += sample.values[1]
            continue
        at = names.index("reload_wait")
        outer, inner = sample.stack[at - 2], sample.stack[at - 1]
        assert names[at - 3] == "reload_main", names
        if outer.module and inner.module and not inner.name.startswith("["):
            assert outer.module.path == inner.module.path
            assert inner.module.path.endswith(f"reload_{inner.name[-1]}.so"), sample.stack
        waits[inner.name] += sample.values[1]
    (truth,) = [wait for wait in traced.truth["waits"] if wait["function"] == "reload"]
    assert waits.total() + early >= truth["blocks"] * WHOLE
    assert early <= waits.total() * EARLY
    assert set(waits) <= {"inner_0", "inner_5"} or any(name.startswith("[") for name in waits)


@pytest.mark.parametrize("knobs", [{}, {"memo_check": 1, "user_memo": 0}], ids=["memo", "every stack walked"])
@pytest.mark.parametrize("frame", ["near", "far"])
def test_every_path_to_a_wait_has_its_own_time(frame: str, knobs: dict[str, int]) -> None:
    with Workload("call_paths", frame, 5, linger=True) as workload:
        traced = trace_workload(workload, knobs)
        workload.finish()
    check_whole(traced.profile)
    assert (traced.counters["user_memo_hits"] > 0) == (not knobs)
    assert traced.counters["user_memo_wrong"] == 0
    time: Counter[str] = Counter()
    waits: Counter[str] = Counter()
    for sample in traced.samples("leaf_near"):
        path = path_of([frame.name for frame in sample.stack])
        if sample.label("state") != "runnable-preempted":
            time[path] += sample.values[0]
        if sample.label("state") not in RUNNABLE:
            waits[path] += sample.values[1]
    truth = {wait["function"]: wait for wait in traced.truth["waits"]}
    assert set(time) <= set(truth)
    wrong = sum(abs(waits[path] - wait["blocks"]) for path, wait in truth.items())
    assert wrong <= MISPLACED * waits.total() + traced.unseen, (wrong, waits.total())
    # The program's clock is read around the wait: what is more than that belongs to another path.
    excess = sum(max(time[path] - wait["ns"], 0) for path, wait in truth.items())
    assert excess <= MISPLACED * time.total(), (excess, time.total())


@pytest.mark.parametrize("shape", SHAPES[1:], ids=lambda shape: shape.name)
def test_other_ways_of_using_the_kernel_walk_as_well(trace: Trace, shape: Shape) -> None:
    options: dict[str, Any] = {"btf": KERNEL_BTF} if shape.raw else {}
    traced = trace("call_paths", "near", 2, shape=shape, **options)
    there = traced.samples("leaf_near")
    assert all(reaches_start(sample.stack) for sample in there)
    waits = sum(sample.values[1] for sample in there if sample.label("state") not in RUNNABLE)
    blocks = sum(wait["blocks"] for wait in traced.truth["waits"])
    assert blocks * WHOLE - traced.unseen <= waits <= blocks


def path_of(names: list[str]) -> str:
    """Name of a path as call_paths calls it."""
    if depth := names.count("recurse"):
        return f"recurse/{depth}"
    found = [name for name in names if name.startswith(("caller_", "compare_"))]
    return found[0] if found else "none"


def test_a_process_that_becomes_another_program() -> None:
    """Each lives for about a second, of which it may take a moment to learn where its code is."""
    with Workload("exec_chain", 5, 180, linger=True) as workload:
        traced = trace_workload(workload)
        workload.finish()
    check_whole(traced.profile, share=WHOLE_AFTER_EXEC)
    for wait in traced.truth["waits"]:
        samples = [s for s in traced.samples(wait["function"]) if s.label("state") not in RUNNABLE]
        program = "exec_chain_other" if wait["function"] == "link_odd" else "exec_chain"
        seen = 0
        for sample in filter(lambda sample: reaches_start(sample.stack), samples):
            names = [frame.name for frame in native(sample.stack)]
            assert follows(names, ("_start", "main", wait["function"], "doze", "nanosleep")), names
            module = native(sample.stack)[0].module
            assert module and module.path == str(FOLDER / program)
            seen += sample.values[1]
        assert WHOLE_AFTER_EXEC * wait["blocks"] - traced.unseen <= seen <= wait["blocks"]


def test_redis_under_load(require: Callable[[bool, str], None]) -> None:
    require(redis_installed(), "there is no redis (package redis-tools)")
    with redis() as (server, path):
        with load(path):
            busy = trace_process(server.pid, 2.5)
        check_whole(busy)
        idle = trace_process(server.pid, 1)
        truth = eu_stacks(server.pid)
    check_whole(idle)
    for tid, stack in truth.items():
        found = differences(last_stack(idle, tid), stack)
        assert not found, (tid, found[:10])


@pytest.mark.parametrize("replaced", [None, "before", "during"])
@pytest.mark.parametrize("kind", ["tmpfs", "overlay"])
def test_container(require: Callable[[bool, str], None], kind: str, replaced: str | None) -> None:
    """Whole stacks and the names that the program has outside, whatever has become of its file."""
    require(can_contain(), "new namespaces and mounts need root")
    with SettledContainer("cpp_frames", 1000, kind=kind, linger=True) as workload:
        change = threading.Timer(0.5, workload.replace_program, [Path("/bin/true")])
        if replaced == "before":
            workload.replace_program(Path("/bin/true"))
        elif replaced == "during":
            change.start()
        try:
            traced = trace_workload(workload)
        finally:
            change.cancel()
        comms = comms_of(workload)
    check_whole(traced.profile, but=(TOO_DEEP,))
    outside = {held("cpp_frames").comms[tid]: stack for tid, stack in held("cpp_frames").eu.items()}
    for tid, comm in comms.items():
        mine, truth = last_stack(traced.profile, tid), outside[comm][-MAX_FRAMES:]
        assert len(mine) == len(truth), (comm, [frame.name for frame in mine])
        for ours, true in zip(mine, truth, strict=True):
            assert same_name(ours.name, true.name, aliases(true.path, true.vaddr - 1)), (comm, ours, true)
