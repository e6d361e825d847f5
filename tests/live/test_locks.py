"""Locks, who waits for them, and who has them: against workloads in which all of that is known."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from stallscope.converters import pprof
from stallscope.converters.model.locks import CONDITION, GIL, KERNEL, OWNER, PROCESS, SHARED, WAKER, WRITER, LockTimes
from stallscope.converters.summary.summarize import summarize
from stallscope.tracers.engines.ebpf.measures import locks as measured
from stallscope.tracers.engines.ebpf.measures.locks import LocksCollector, kernel_knows_caches, kernel_tells
from stallscope.tracers.engines.ebpf.probes import KERNEL_BTF
from stallscope.tracers.kernel.shapes import SHAPES, Shape
from stallscope.tracers.measures.locks import Locks
from stallscope.tracers.measures.wakeup import WakeUp
from tracing import Trace, Traced

MS = 1_000_000
GIL_USERS = """
import threading
def compute():
    total = 0
    for i in range(3_000_000):
        total += i
threads = [threading.Thread(target=compute) for _ in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""

MONITOR_USERS = """
public class Monitors {
    static final Object monitor = new Object();
    static void pause(int ms) { try { Thread.sleep(ms); } catch (InterruptedException e) { throw new Error(e); } }
    static void hold() { synchronized (monitor) { pause(20); } }
    static void use() { synchronized (monitor) { Thread.onSpinWait(); } }
    public static void main(String[] none) throws Exception {
        Thread holder = new Thread(() -> { for (int i = 0; i < 60; i++) { hold(); pause(1); } }, "holder");
        holder.start();
        for (int i = 0; i < 4; i++)
            new Thread(() -> { while (holder.isAlive()) { use(); pause(1); } }, "waiter-" + i).start();
    }
}
"""

LOCK_USERS = """
import threading, time
lock = threading.Lock()
def use():
    for i in range(20):
        with lock: time.sleep(0.01)
threads = [threading.Thread(target=use) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def traced(trace: Trace, *workload: object) -> Traced:
    return trace(*workload, measures=(WakeUp(), Locks()))


def the_lock(found: Traced, kind: str) -> LockTimes:
    """The one with the most time of a kind, of the program."""
    return max((lock for lock in found.profile.locks if lock.kind == kind), key=lambda lock: lock.time)


def truth(found: Traced) -> int:
    """ns that the waiters waited in take_lock(), as they measured it."""
    holder = {thread["tid"] for thread in found.truth["threads"] if thread["thread"] == "holder"}
    return sum(w["ns"] for w in found.truth["waits"] if w["function"] == "take_lock" and w["tid"] not in holder)


def by_waiters(lock: LockTimes) -> int:
    return sum(thread.time for thread in lock.waiters if thread.thread.startswith("waiter"))


def check_time(found: Traced, lock: LockTimes) -> None:
    """Checks the time, which includes what the waiters waited for a core, and ran."""
    measured, told = truth(found), by_waiters(lock)
    waiters = [t for t in found.profile.threads if t.thread.startswith("waiter")]
    busy = sum(t.runnable + t.on_cpu for t in waiters) + found.stolen
    assert measured - busy - max(0.03 * measured, MS) <= told <= measured + max(0.03 * measured, MS), (measured, told)


@pytest.mark.parametrize(
    ("kind", "shown", "owned_by", "source"),
    [
        ("static", "mutex", PROCESS, OWNER),
        ("pi", "PI mutex", PROCESS, OWNER),
        ("rwlock", "rwlock", PROCESS, WRITER),
        ("shared", "mutex", SHARED, OWNER),
        ("robust", "mutex", SHARED, OWNER),
    ],
)
def test_holder_is_named(trace: Trace, kind: str, shown: str, owned_by: str, source: str) -> None:
    found = traced(trace, "mutexes", kind, 8, 20, 10_000)
    lock = the_lock(found, shown)
    assert lock.owned_by == owned_by
    assert len([thread for thread in lock.waiters if thread.thread.startswith("waiter")]) == 8
    check_time(found, lock)
    (holder,) = [t for t in found.truth["threads"] if t["thread"] == "holder"]
    held = sum(each.time for each in lock.holders if each.tid == holder["tid"])
    runnable = sum(thread.runnable for thread in found.profile.threads)
    assert held + 8 * runnable >= 0.95 * lock.time, lock.holders
    best = lock.holders[0]
    assert (best.thread, best.source) == ("holder", source), lock.holders
    assert "take_lock" in lock.places[0].frames, lock.places
    if kind != "pi":  # the kernel gives it to the next one
        assert "give_lock" in best.frames, best
    if kind == "static":  # threads of one process
        answer = " ".join(summarize(found.profile).answer)
        assert f"while its thread holder (tid {holder['tid']}) has it" in answer, answer
    assert not any(found.profile.lost[loss] for loss in ("waits for locks", "holders of locks", "queues of locks"))


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_every_shape_of_the_probes(trace: Trace, shape: Shape) -> None:
    options: dict[str, Any] = {"btf": KERNEL_BTF} if shape.raw else {}
    measures = WakeUp(), Locks()
    found = trace("mutexes", "shared", 4, 60, 5000, shape=shape, measures=measures, **options)
    lock = the_lock(found, "mutex")
    assert (lock.owned_by, lock.holders[0].thread, lock.holders[0].source) == (SHARED, "holder", OWNER)
    if kernel_tells():
        found = trace("mutexes", "inode", 4, 30, shape=shape, measures=(WakeUp(), Locks()), **options)
        assert any(each.kind == "rwsem" and each.holders for each in found.profile.locks)


def test_names(trace: Trace) -> None:
    static = the_lock(traced(trace, "mutexes", "static", 4, 10, 5000), "mutex")
    assert static.name == "lock_table+0x40"
    assert static.process == "mutexes"
    shared = the_lock(traced(trace, "mutexes", "shared", 4, 10, 5000), "mutex")
    assert shared.name == "/memfd:locks+0x1040"


def test_waits_with_others_and_alone(trace: Trace) -> None:
    """Each waiter is asleep before the mutex is given back: how many wait at the same time does not depend on speed."""
    found = traced(trace, "lock_queue", 4, 20, 3000)
    lock = the_lock(found, "mutex")
    assert 100 - found.missed <= lock.judged <= lock.waits <= 100
    assert 20 - (100 - lock.judged) <= lock.alone <= 20
    told = {"take_alone": lock.alone_time, "take_with_others": lock.judged_time - lock.alone_time}
    busy = sum(thread.runnable + thread.on_cpu for thread in found.profile.threads) + found.stolen
    for function, time in told.items():
        measured = sum(each["ns"] for each in found.truth["waits"] if each["function"] == function)
        assert measured - busy - MS <= time <= measured + MS, function
    assert lock.judged_time == sum(thread.time for thread in lock.waiters) == lock.time
    assert lock.alone_time < lock.busy < lock.time
    assert lock.mean_waiting
    assert 1 < lock.mean_waiting < 4
    means = [time / number for time, number in zip(told.values(), (lock.alone, lock.judged - lock.alone), strict=True)]
    assert lock.factor == pytest.approx(means[1] / means[0])


def test_who_waits_alone_has_no_factor(trace: Trace) -> None:
    """Waits of a single waiter are never at the same time, however slow it is."""
    found = traced(trace, "lock_queue", 1, 10, 2000)
    lock = the_lock(found, "mutex")
    assert 20 - found.missed <= lock.judged <= 20
    assert (lock.alone, lock.factor) == (lock.judged, None)
    assert lock.busy == lock.judged_time


def test_queue_that_never_empties(trace: Trace) -> None:
    """The queue lasts while the holder has the lock, and until the last one of the others was woken."""
    lock = the_lock(traced(trace, "mutexes", "static", 8, 4, 150_000), "mutex")
    assert 0.9 * 150 * MS <= lock.queue <= 4.5 * 150 * MS
    assert lock.queue_waits >= 4


def test_condition_variable_is_no_contention(trace: Trace) -> None:
    found = traced(trace, "mutexes", "condition", 8, 20, 5000)
    lock = the_lock(found, "condition")
    assert lock.is_contention is False
    told = sum(thread.time for thread in lock.waiters if thread.thread.startswith("waiter"))
    assert told > 4 * 20 * 5 * MS
    assert lock.holders[0].thread == "holder"


def test_lock_without_an_owner_is_told_by_its_waker(trace: Trace) -> None:
    """The lock's word says nothing of who has it."""
    found = traced(trace, "lock_holder", 8, 12, 20_000)
    lock = max((lock for lock in found.profile.locks if "take_lock" in lock.places[0].frames), key=lambda x: x.time)
    assert (lock.kind, lock.owned_by, lock.is_contention) == ("futex", SHARED, None)
    assert {holder.source for holder in lock.holders} == {WAKER}
    assert lock.holders[0].process == "holder", lock.holders
    assert len(lock.waiters) >= 8


def test_lock_of_the_kernel(trace: Trace, require: Callable[[bool, str], None]) -> None:
    """Writers of one file: its inode has a semaphore, and a writer that waits for it is blocked in this."""
    require(kernel_tells(), "the kernel does not report waits for its locks")
    found = traced(trace, "mutexes", "inode", 6, 60)
    blocked = sum(s.values[0] for s in found.samples("write_file") if any("rwsem" in f.name for f in s.stack))
    lock = max((lock for lock in found.profile.locks if lock.kind == "rwsem"), key=lambda lock: lock.time)
    measured = sum(w["ns"] for w in found.truth["waits"] if w["function"] == "write_file")
    assert blocked > 0
    assert (lock.owned_by, lock.is_contention) == (KERNEL, True)
    runnable = sum(thread.runnable for thread in found.profile.threads)
    assert 0.97 * blocked - MS <= lock.time <= min(measured, blocked + runnable + found.stolen + 50 * MS), blocked
    assert any("write_file" in place.frames for place in lock.places), lock.places
    writers = {t["tid"] for t in found.truth["threads"]}
    assert {thread.tid for thread in lock.waiters} <= writers
    owners = sum(each.time for each in lock.holders if each.tid in writers and each.source == OWNER)
    assert owners >= 0.8 * lock.time, lock.holders
    assert lock.taken_in.endswith(("write_iter", "write")), lock.taken_in
    assert not any(found.profile.lost[loss] for loss in ("waits for locks", "holders of locks", "queues of locks"))


@pytest.mark.parametrize("asks", [True, False], ids=["asking", "comparing"])
def test_lock_of_a_process_in_the_kernel(
    trace: Trace, require: Callable[[bool, str], None], monkeypatch: pytest.MonkeyPatch, asks: bool
) -> None:
    """Threads that change the memory of their process: known on every kernel, as it is the thread's own."""
    require(kernel_tells(), "the kernel does not report waits for its locks")
    require(kernel_knows_caches() or not asks, "the kernel does not tell the caches of memory")
    monkeypatch.setattr(measured, "kernel_knows_caches", lambda: asks)
    found = traced(trace, "mutexes", "memory", 6, 100)
    lock = max((lock for lock in found.profile.locks if lock.kind == "rwsem"), key=lambda lock: lock.time)
    assert (lock.name, lock.owned_by, lock.process) == ("mm_struct.mmap_lock", KERNEL, "mutexes")
    assert lock.pid == found.truth["pid"]
    assert any("use_memory" in place.frames for place in lock.places), lock.places
    assert {thread.tid for thread in lock.waiters} <= {thread["tid"] for thread in found.truth["threads"]} | {lock.pid}
    assert not found.profile.lost["what holds locks of the kernel"]


def test_kernel_that_refuses_the_question(
    trace: Trace, require: Callable[[bool, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs may not call this function: the others are loaded."""
    require(kernel_tells(), "the kernel does not report waits for its locks")
    monkeypatch.setattr(measured, "kernel_knows_caches", lambda: True)
    monkeypatch.setattr(measured, "ASKS", "schedule")
    measure = LocksCollector(Locks())
    found = trace("mutexes", "memory", 6, 100, measures=(WakeUp(), measure))
    assert measure.placed == ("locks_begin", "locks_end")
    assert "mm_struct.mmap_lock" in {lock.name for lock in found.profile.locks}


@pytest.mark.parametrize("raw", [False, True])
def test_type_and_field_of_a_lock_of_the_kernel(trace: Trace, require: Callable[[bool, str], None], raw: bool) -> None:
    """The lock is that of the file's inode: it is in a cache for inodes of this file system."""
    require(kernel_knows_caches(), "the kernel does not tell the caches of memory")
    options: dict[str, Any] = {"btf": KERNEL_BTF, "shape": SHAPES[-1]} if raw else {}
    found = trace("mutexes", "inode", 6, 60, measures=(WakeUp(), Locks()), **options)
    lock = max((lock for lock in found.profile.locks if lock.kind == "rwsem"), key=lambda lock: lock.time)
    assert re.fullmatch("shmem_inode_info.vfs_inode.i_rwsem #[0-9]+", lock.name)
    assert lock.pid == 0


def test_spinlock_of_the_kernel(trace: Trace, require: Callable[[bool, str], None]) -> None:
    """The table of descriptors has one, which threads on two cores take. Only the kernel's stack is known."""
    require(kernel_tells(), "the kernel does not report waits for its locks")
    require(len(os.sched_getaffinity(0)) > 1, "there is one core")
    for _ in range(6):  # two of them have to be on cores at the same time
        found = traced(trace, "mutexes", "table", 3, 1000)
        spins = [lock for lock in found.profile.locks if lock.kind == "spinlock"]
        if mine := [lock for lock in spins if any({"dup", "close"} & {*place.frames} for place in lock.places)]:
            break
    lock = max(mine, key=lambda each: each.waits)
    wall = sum(thread["wall_ns"] for thread in found.truth["threads"])
    assert 0 < lock.time < wall
    assert {thread.tid for thread in lock.waiters} <= {thread["tid"] for thread in found.truth["threads"]}
    assert not lock.holders


@pytest.mark.parametrize("python", [sys.executable, "/usr/bin/python3"])
def test_global_interpreter_lock(live: None, tmp_path: Path, python: str) -> None:
    """Threads of Python that compute: one of them at a time. Debian's has no names for its own functions."""
    script, out = tmp_path / "threads.py", tmp_path / "out.pb.gz"
    script.write_text(GIL_USERS)
    command = [Path(sys.executable).with_name("trace-wakeup"), "-o", out, "--", python, script]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    with out.open("rb") as file:
        locks = [lock for lock in pprof.load(file).locks if lock.kind == GIL]
    assert locks
    assert all(lock.is_contention and lock.owned_by == PROCESS for lock in locks)
    known = sum(place.time for lock in locks for place in lock.places if "take_gil" in place.frames)
    assert known >= 0.5 * sum(lock.time for lock in locks), locks  # others: stacks before the tables were there
    assert len({thread.tid for lock in locks for thread in lock.waiters}) >= 3
    assert len(locks) == 1, locks  # its mutex and its condition variable are parts of one structure
    givers = locks[0].holders
    assert {thread.source for thread in givers} <= {OWNER, WAKER}
    assert givers
    named = any("drop_gil" in thread.frames for thread in givers)
    assert named or b"drop_gil" not in Path(python).resolve().read_bytes() or python != sys.executable, givers


def test_a_lock_of_python_is_one(tmp_path: Path) -> None:
    """The lock is a semaphore of the C library, or a mutex and a condition variable."""
    script, out = tmp_path / "locks.py", tmp_path / "out.pb.gz"
    script.write_text(LOCK_USERS)
    command = [Path(sys.executable).with_name("trace-wakeup"), "-o", out, "--", sys.executable, script]
    finished = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert finished.returncode == 0, finished.stderr
    with out.open("rb") as file:
        locks = pprof.load(file).locks
    most = max((lock for lock in locks if len(lock.waiters) >= 3), key=lambda lock: lock.time)
    assert most.time >= 4 * 20 * 10 * MS  # at least one waits while another one sleeps
    assert most.is_lock_like or most.kind == CONDITION, most


def test_monitor_of_java(require: Callable[[bool, str], None], tmp_path: Path) -> None:
    """A monitor is no lock that the kernel knows: who has it is told all the same, and no other lock is blamed."""
    require(bool(shutil.which("java") and shutil.which("javac")), "no Java: apt-get install default-jdk-headless")
    source, out = tmp_path / "Monitors.java", tmp_path / "out.pb.gz"
    source.write_text(MONITOR_USERS)
    subprocess.run(["javac", source], check=True, timeout=120)
    java = ["java", "-Xint", "-cp", tmp_path, "Monitors"]
    line = [Path(sys.executable).with_name("trace-wakeup"), "--depth", "8", "--json", "-o", out, "--", *java]
    text = subprocess.run(line, check=True, capture_output=True, timeout=120).stdout.decode()
    summary = json.JSONDecoder().raw_decode(text[text.index('{\n  "version"') :])[0]
    answer = " ".join(summary["answer"])
    who = r"what the 4 waiter-\* threads of .* wait for others"
    told = re.search(rf"([\d.]+) % of {who} .* ends with .* holder \(tid", answer)
    assert told, answer
    assert float(told[1]) >= 70, answer
    contended = [lock for lock in summary["locks"] if lock["contention"] is not False]
    assert sum(lock["time_ns"] for lock in contended) <= 0.05 * summary["waits_for"]["blocked_ns"], contended
