"""Threads of a language's runtime, and Go's standard library."""

from __future__ import annotations

import pytest
from stallscope.converters.facts.runtimes import is_parked, of_go_library, parked_in
from stallscope.converters.facts.stacks import Stacks
from stallscope.converters.facts.wait_kinds import LOCK, THREAD, WORK
from stallscope.converters.facts.wait_sites import site
from stallscope.converters.facts.waits import wait_of
from stallscope.converters.model import Frame, Module, Stack
from stallscope.converters.summary.summarize import summarize
from summary_profiles import EXE, LIBC, SECOND, Tracee, empty, kernel, user

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
        (("systemstack.abi0", "gcMarkDone.func1", "forEachP", "notetsleep_internal", "futexsleep"), "forEachP"),
        (("mcall", "park_m", "schedule", "lock2", "futexsleep"), "lock2"),
        (("mcall", "futexsleep"), "futex"),
        (("futexsleep",), "futex"),
    ],
)
def test_the_runtime_s_own_waits_are_told_by_what_waits(names: tuple[str, ...], expected: str) -> None:
    stack = go(*(f"runtime.{name}" for name in (*names, "futex.abi0")))
    assert site(stack + FUTEX).frames == (f"runtime.{expected}",)
    # What a function of the program calls is told as ever, and a function of C may be called like one of Go's runtime.
    assert site(go("main.f", "runtime.mallocgc", "runtime.lock2", "runtime.futex.abi0") + FUTEX).frames == (
        "main.f",
        "runtime.mallocgc",
    )
    assert site(user(LIBC, "start_thread", "futex") + FUTEX).frames == ("futex",)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("runtime.mcall", "runtime.schedule", "runtime.findRunnable", "runtime.stopm"), "runtime.findRunnable"),
        (("runtime.mstart1", "runtime.sysmon", "runtime.usleep"), "runtime.sysmon"),
        (("runtime.mcall", "runtime.schedule", "runtime.stoplockedm", "runtime.mPark"), "runtime.stoplockedm"),
        (("runtime.mcall", "runtime.schedule", "runtime.execute"), ""),
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


PYTHON = Module("/usr/bin/python3.11")
POSTGRES = Module("/usr/lib/postgresql/15/bin/postgres")
STDLIB = "/usr/lib/python3.11"
TORCH = "/venv/lib/python3.11/site-packages/torch"
RECV = (*user(PYTHON, "sock_recv_into"), *user(LIBC, "recv"), *kernel("__x64_sys_recvfrom", "sk_wait_data"))
EPOLL_WAIT = (*user(LIBC, "epoll_wait"), *kernel("__x64_sys_epoll_wait", "do_epoll_wait"))


def script(*functions: tuple[str, str]) -> Stack:
    """Frames of scripts: (file, function)."""
    return tuple(Frame(name, "python", file=file, line=5) for file, name in functions)


@pytest.mark.parametrize(
    ("scripts", "kind"),
    [
        ([(f"{STDLIB}/http/server.py", "BaseHTTPRequestHandler.handle_one_request")], "work"),
        ([(f"{STDLIB}/http/server.py", "handle_one_request"), (f"{STDLIB}/socket.py", "SocketIO.readinto")], "work"),
        ([("/v/site-packages/gunicorn/workers/sync.py", "SyncWorker.wait")], "work"),
        ([(f"{STDLIB}/multiprocessing/pool.py", "worker"), (f"{STDLIB}/multiprocessing/queues.py", "get")], "work"),
        ([(f"{TORCH}/utils/data/_utils/worker.py", "_worker_loop")], "work"),
        (
            [("/v/site-packages/distributed/threadpoolexecutor.py", "_worker"), (f"{STDLIB}/queue.py", "Queue.get")],
            "work",
        ),
        (
            [("/v/site-packages/anyio/_backends/_asyncio.py", "WorkerThread.run"), (f"{STDLIB}/queue.py", "Queue.get")],
            "work",
        ),
        (
            [
                ("/v/site-packages/sentry_sdk/worker.py", "BackgroundWorker._target"),
                (f"{STDLIB}/queue.py", "Queue.get"),
            ],
            "work",
        ),
        # What the server was given waits itself, or a library for it; or it is no server of the library.
        ([(f"{STDLIB}/http/server.py", "handle_one_request"), ("/srv/shop.py", "Shop.do_GET")], "peer"),
        ([(f"{STDLIB}/http/server.py", "handle_one_request"), (f"{STDLIB}/http/client.py", "_read_status")], "peer"),
        ([("/srv/multiprocessing/pool.py", "worker")], "peer"),
        (
            [
                ("/v/site-packages/distributed/threadpoolexecutor.py", "_worker"),
                ("/v/site-packages/distributed/worker.py", "execute"),
            ],
            "peer",
        ),
    ],
)
def test_servers_and_pools_wait_for_work(scripts: list[tuple[str, str]], kind: str) -> None:
    main = script(("/srv/shop.py", "<module>"))
    assert wait_of((*main, *script(*scripts), *RECV), "interruptible").kind == kind


@pytest.mark.parametrize(
    ("stack", "kind"),
    [
        ((*user(POSTGRES, "main", "PostmasterMain", "WalWriterMain", "WaitLatch"), *EPOLL_WAIT), "work"),
        ((*user(POSTGRES, "main", "PostmasterMain", "[postgres+0x1]"), *EPOLL_WAIT), "work"),
        ((*user(POSTGRES, "main", "PostmasterMain", "PostgresMain", "secure_read"), *EPOLL_WAIT), "events"),
        ((*user(EXE, "main", "PostmasterMain"), *EPOLL_WAIT), "events"),
        ((*user(EXE, "main", "WalWriterMain"), *EPOLL_WAIT), "events"),
    ],
)
def test_processes_in_the_background_wait_for_work(stack: Stack, kind: str) -> None:
    assert wait_of(stack, "interruptible").kind == kind


def test_a_server_of_a_file_system_waits_for_requests() -> None:
    read = (*user(EXE, "serve"), *user(LIBC, "read"), *kernel("ksys_read", "vfs_read", "fuse_dev_do_read"))
    assert wait_of(read, "interruptible").kind == "work"
    assert wait_of((*read[:-1], *kernel("request_wait_answer")), "interruptible").kind == "held"


@pytest.mark.parametrize(
    ("path", "parked"),
    [
        ("/usr/lib/x86_64-linux-gnu/libfuse3.so.3.14.0", "fuse_session_loop_mt"),
        ("/usr/lib/libfuse.so.2", "fuse_session_loop_mt"),
        ("/opt/app/libfuser.so", ""),
        ("/opt/app/server", ""),
    ],
)
def test_the_main_thread_of_a_fuse_file_system(path: str, parked: str) -> None:
    assert parked_in(Frame("fuse_session_loop_mt", module=Module(path))) == parked


@pytest.mark.parametrize(
    ("path", "parked"),
    [
        ("/opt/venv/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2", True),
        ("/usr/lib/librccl.so.1.0", True),
        ("/opt/torch/lib/libtorch_cuda.so", True),
        ("/opt/app/train", False),
        ("/opt/app/libncclown.so", False),
    ],
)
def test_threads_of_nccl(path: str, parked: bool) -> None:
    for name in ("ncclProxyService(void*)", "ncclProxyProgress(void*)", "rasThreadMain(void*)"):
        assert parked_in(Frame(name, module=Module(path))) == (name.partition("(")[0] if parked else "")
