"""Threads of a language's runtime, and Go's standard library."""

from __future__ import annotations

import pytest
from stallscope.converters.facts.runtimes import is_parked, of_go_library
from stallscope.converters.facts.stacks import Stacks
from stallscope.converters.facts.wait_kinds import LOCK, THREAD, WORK
from stallscope.converters.facts.wait_sites import site
from stallscope.converters.facts.waits import wait_of
from stallscope.converters.model import Frame, Module, Stack
from stallscope.converters.summary.summarize import summarize
from summary_profiles import LIBC, SECOND, Tracee, empty, kernel, user

JVM = Module("/usr/lib/jvm/java-17/lib/server/libjvm.so")
PROGRAM = Module("/srv/hot")


def go(*names: str) -> Stack:
    return tuple(Frame(name, module=PROGRAM) for name in names)


FSYNC = kernel("__x64_sys_fsync", "folio_wait_bit", "__schedule")
FUTEX = kernel("__x64_sys_futex", "futex_wait", "__schedule")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("runtime.futex.abi0", True),
        ("runtime/internal/syscall.Syscall6", True),
        ("internal/poll.(*FD).Fsync", True),
        ("internal/runtime/atomic.Cas", True),
        ("syscall.write", True),
        ("os.(*File).Sync", True),
        ("net/http.(*conn).serve", True),
        ("sync.runtime_Semrelease", True),
        ("time.Sleep", True),
        ("main.(*Cache).persist", False),
        ("github.com/x/y/internal/poll.(*FD).Fsync", False),
        ("runtime_loop", False),
        ("os::signal_wait()", False),
        ("io.part.0", False),
        ("time.constprop.0", False),
        ("netsnmp.run", False),
        ("", False),
    ],
)
def test_go_s_standard_library(name: str, expected: bool) -> None:
    assert of_go_library(name) is expected


def test_go_s_library_is_told_by_the_function_that_the_program_calls() -> None:
    stack = go(
        "runtime.goexit.abi0", "main.main.func1", "main.(*Cache).Refresh", "main.(*Cache).persist", "os.(*File).Sync",
        "internal/poll.(*FD).Fsync", "syscall.Fsync", "syscall.RawSyscall6",
    )  # fmt: skip
    found = site(stack + FSYNC)
    assert found.frames == ("main.(*Cache).Refresh", "main.(*Cache).persist", "os.(*File).Sync", "fsync")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("runtime.mcall", "runtime.schedule", "runtime.findRunnable", "runtime.stopm"), "runtime.findRunnable"),
        (("runtime.mstart1", "runtime.sysmon", "runtime.usleep"), "runtime.sysmon"),
        (("clone3", "WatcherThread::run()", "WatcherThread::sleep() const"), ""),
        (("clone3", "GangWorker::run()", "GangWorker::loop()", "PosixSemaphore::wait()"), ""),
        (("main.main", "main.findRunnable"), ""),
        ((), ""),
    ],
)
def test_threads_that_are_parked(names: tuple[str, ...], expected: str) -> None:
    assert Stacks().of(go(*names)).parked == expected
    assert is_parked(expected) is bool(expected)


def test_a_class_of_a_program_may_be_called_as_one_of_hotspot() -> None:
    for name in ("WorkerThread::run()", "GangWorker::loop()", "CompileQueue::get()"):
        assert Stacks().of(user(JVM, name)).parked == name.removesuffix("()")
        assert is_parked(name.removesuffix("()"))
        assert not Stacks().of(user(PROGRAM, name)).parked
        assert wait_of((*user(PROGRAM, name), *user(LIBC, "pthread_cond_wait"), *FUTEX), "interruptible").kind == THREAD


def test_a_parked_thread_waits_for_work_unless_it_waits_for_a_lock() -> None:
    assert wait_of(go("runtime.schedule", "runtime.findRunnable") + FUTEX, "interruptible").kind == WORK
    assert wait_of(go("runtime.schedule", "runtime.findRunnable") + FSYNC, "uninterruptible").kind != WORK
    monitor = (*user(JVM, "GangWorker::loop", "ObjectMonitor::EnterI"), *user(LIBC, "pthread_cond_wait"), *FUTEX)
    assert wait_of(monitor, "interruptible").kind == LOCK


def test_what_a_program_waits_for_comes_before_its_runtime_s_idle_threads() -> None:
    profile = empty()
    main = Tracee(profile, 7, "hot", 7, "hot")
    main.wait(go("runtime.schedule", "runtime.findRunnable") + FUTEX, "interruptible", 6 * SECOND)
    main.wait(go("main.main", "main.persist", "os.(*File).Sync") + FSYNC, "uninterruptible", 3 * SECOND)
    main.run(SECOND)
    summary = summarize(profile)
    assert "main.main → main.persist → os.(*File).Sync → fsync" in summary.answer[0]
    assert [wait.idle for wait in summary.waits] == [False, True]
    assert summary.waits[1].frames == ("runtime.findRunnable",)
