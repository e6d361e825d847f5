"""The checks of why threads wait, in a guest: who wakes them, who holds locks, and what a quota stops."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from guest_traces import CLOSURE, TRACE, run, traced
from runner import Workload
from stallscope.converters.model import Sample
from stallscope.converters.model.locks import OWNER, SHARED
from stallscope.converters.model.wait_objects import LABEL, PIPE, WRITES
from stallscope.converters.model.wakers import has_waker, links, own_part
from stallscope.converters.phrases.remarks import worded
from stallscope.converters.transforms.critical_path import critical_path, thread_of
from stallscope.tracers.engines.ebpf.measures.locks import kernel_knows_caches, kernel_tells
from stallscope.tracers.measures.locks import Locks
from stallscope.tracers.measures.offcpu import OffCpu
from stallscope.tracers.measures.timeline import Timeline
from stallscope.tracers.measures.wakeup import WakeUp


def wakeup() -> str:
    """Checks who ended each wait: the stage before, with its own stack; a timer; and all of the blocked time is
    told."""
    found = traced("pipe_chain", 4, 200, 200, measures=(OffCpu(), WakeUp(4, alone=False)))
    column = found.profile.index("blocked")
    told, right, stacks = Counter[bool](), Counter[str](), Counter[bool]()
    for sample in found.profile.samples:
        is_wakeup = has_waker(sample.stack)
        told[is_wakeup] += sample.values[column if is_wakeup else 0] if not _is_runnable(sample) else 0
        process = str(sample.label("process"))
        if is_wakeup and process.startswith("stage-") and "read_token" in [f.name for f in own_part(sample.stack)]:
            before = f"stage-{(int(process[-1]) - 1) % 4}-"
            waker = str(sample.label("waker"))
            right[before if waker.startswith(before) else waker] += sample.values[column]
            if waker.startswith("stage-"):
                names = [frame.name for frame in links(sample.stack)[0]]
                stacks["write_token" in names and "read_token" not in names] += sample.values[column]
    assert told[True] == told[False] > 0, told
    share = sum(time for name, time in right.items() if name.startswith("stage-")) / right.total()
    assert share >= 0.95, right
    whose = stacks[True] / stacks.total()
    assert whose >= 0.95, stacks
    slept = traced("sleeps", 20, measures=(WakeUp(),))
    woken = Counter[str]()
    for sample in slept.profile.samples:
        if any(frame.name.startswith("sleep_") for frame in sample.stack):
            woken[str(sample.label("waker"))] += sample.values[0]
    timer = woken["[timer]"] / woken.total()
    assert timer >= 0.95, woken
    by = f"{share:.1%} of the time in a ring of pipes by the right process, {whose:.1%} with its stack"
    return f"{by}; {timer:.1%} of sleeps by a timer"


def objects() -> str:
    """Checks what waits are on: in a ring of pipes, the one into which the stage before writes."""
    found = traced("pipe_chain", 4, 2_000, 200, measures=(OffCpu(),))
    known = {each.id: each for each in found.profile.objects}
    names = {times.pid: times.process for times in found.profile.threads}
    right = Counter[str]()
    for sample in found.profile.samples:
        process, what = str(sample.label("process")), known.get(int(sample.label(LABEL) or 0))
        is_read = "read_token" in [frame.name for frame in sample.stack] and not _is_runnable(sample)
        if process.startswith("stage-") and is_read:
            before = f"stage-{(int(process[-1]) - 1) % 4}"
            ends = [names.get(end.pid, "?") for end in what.ends] if what else []
            is_right = what and (what.kind, what.does) == (PIPE, WRITES) and before in ends
            right["right" if is_right else f"{process}: {what}"] += sample.values[0]
    share = right["right"] / right.total()
    assert share >= 0.95, right
    return f"{share:.1%} of the time in a ring of pipes with the process at the other end"


def locks() -> str:
    """A mutex between processes with its holder; a lock of the kernel, or the reason why not; a critical path."""
    found = traced("mutexes", "shared", 4, 20, 10_000, measures=(WakeUp(), Locks()))
    lock = max(found.profile.locks, key=lambda each: each.time)
    assert (lock.kind, lock.owned_by) == ("mutex", SHARED), lock
    assert sum(thread.thread.startswith("waiter") for thread in lock.waiters) == 4, lock.waiters
    best = lock.holders[0]
    share = best.time / lock.time
    assert (best.thread, best.source) == ("holder", OWNER), lock.holders
    assert share >= 0.75, lock.holders
    assert not any(found.profile.lost[kind] for kind in ("waits for locks", "holders of locks")), found.profile.lost
    kernel = "locks of the kernel are not told"
    assert kernel_tells() or any(comment.startswith(kernel) for comment in worded(found.profile.comments))
    if kernel_tells():
        written = traced("mutexes", "inode", 4, 40, measures=(WakeUp(), Locks()))
        semaphore = max((each for each in written.profile.locks if each.kind == "rwsem"), key=lambda each: each.time)
        assert semaphore.holders and semaphore.holders[0].source == OWNER, semaphore
        if kernel_knows_caches():
            assert "_inode_info.vfs_inode.i_rwsem #" in semaphore.name, semaphore
        memory = traced("mutexes", "memory", 4, 60, measures=(WakeUp(), Locks()))
        assert "mm_struct.mmap_lock" in {each.name for each in memory.profile.locks}, memory.profile.locks
        kernel = f"a rwsem with {semaphore.waits} waits and its owners; mm_struct.mmap_lock by its name"
    path = traced("waits_through", 4, 20, measures=(WakeUp(), Timeline()))
    assert path.profile.scheduling is not None
    main = thread_of(path.profile.scheduling, path.truth["pid"])
    segments = critical_path(path.profile.scheduling, main)
    assert abs(segments.wall - path.thread(path.truth["pid"]).wall) <= CLOSURE * segments.wall
    assert max(len(segment.behind) for segment in segments.segments) == 2
    return f"{share:.1%} of the waits for a mutex of several processes by its holder; {kernel}; a path of 3 threads"


def _is_runnable(sample: Sample) -> bool:
    return str(sample.label("state")).startswith("runnable")


def quota() -> str:
    """A control group of version 2 with half a core: the answer names it, with what it stopped."""
    top = Path("/sys/fs/cgroup")
    if not (top / "cgroup.controllers").exists():
        run("/bin/mount", "-t", "cgroup2", "cgroup2", str(top))
    (top / "cgroup.subtree_control").write_text("+cpu")
    group = top / "half-a-core"
    group.mkdir()
    (group / "cpu.max").write_text("50000 100000")
    with Workload("crowd", 60_000, 4, 2) as workload:
        (group / "cgroup.procs").write_text(str(workload.pid))
        workload.release()
        output = Path("/run/quota.pb.gz")
        said = run(TRACE, "-p", str(workload.pid), "-d", "5", "--force", "-o", str(output), timeout=300)
        workload.kill()
    print(said)
    told = " ".join(said.split())
    found = re.search(r"A quota throttles crowd: control group /half-a-core may use 0\.5 cores, and used [^;]+", told)
    assert found, said
    return found[0]
