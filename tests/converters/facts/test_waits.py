from __future__ import annotations

import pytest
from stallscope.converters.facts.plumbing import in_library
from stallscope.converters.facts.wait_kinds import TOLD_BY_OTHERS, WORK
from stallscope.converters.facts.wait_sites import site
from stallscope.converters.facts.waits import Waits, wait_of
from stallscope.converters.model import Frame, Module, Stack
from summary_profiles import EPOLL, EXE, FUTEX, LIBC, LIBSTDCXX, POOL, TOPK, kernel, user

PYTHON = Module("/usr/bin/python3.11")
JVM = Module("/usr/lib/jvm/java-17/lib/server/libjvm.so")
POSTGRES = Module("/usr/lib/postgresql/15/bin/postgres")
HTTP = "/usr/lib/python3.11/http/client.py"


def in_libc(*names: str) -> Stack:
    return (*user(EXE, "main", "step"), *user(LIBC, *names))


@pytest.mark.parametrize(
    ("stack", "state", "kind"),
    [
        (POOL, "interruptible", "thread"),
        ((*in_libc("read"), *kernel("ksys_read", "vfs_read", "anon_pipe_read")), "interruptible", "peer"),
        ((*in_libc("open"), *kernel("__x64_sys_openat", "wait_for_partner")), "interruptible", "peer"),
        ((*in_libc("nanosleep"), *kernel("__x64_sys_nanosleep", "do_nanosleep")), "interruptible", "sleep"),
        ((*in_libc("nanosleep"), *kernel("__x64_sys_nanosleep", "hrtimer_nanosleep")), "interruptible", "sleep"),
        ((*in_libc("poll"), *kernel("__x64_sys_poll", "do_sys_poll")), "interruptible", "events"),
        (
            (*user(PYTHON, "sock_recv_into"), *user(LIBC, "poll"), *kernel("__x64_sys_poll", "do_sys_poll")),
            "interruptible",
            "peer",
        ),
        (
            (*user(EXE, "main", "run_threads"), *user(LIBC, "poll"), *kernel("__x64_sys_poll", "do_sys_poll")),
            "interruptible",
            "events",
        ),
        (
            (Frame("wait", "python", file="a_reader.py", line=4), *kernel("__x64_sys_poll", "do_sys_poll")),
            "interruptible",
            "events",
        ),
        (
            (Frame("read_reply", "python", file=HTTP, line=4), *kernel("__x64_sys_poll", "do_sys_poll")),
            "interruptible",
            "peer",
        ),
        (
            (*in_libc("accept4"), *kernel("__x64_sys_accept4", "unix_accept", "__skb_wait_for_more_packets")),
            "interruptible",
            "work",
        ),
        ((*in_libc("wait4"), *kernel("kernel_wait4", "do_wait")), "interruptible", "child"),
        ((*in_libc("vfork"), *kernel("__x64_sys_vfork", "wait_for_completion_state")), "uninterruptible", "child"),
        ((*in_libc("clone"), *kernel("__x64_sys_clone3", "wait_for_vfork_done")), "uninterruptible", "child"),
        ((*in_libc("ioctl"), *kernel("__x64_sys_ioctl", "wait_for_completion_state")), "uninterruptible", "held"),
        ((*in_libc("fsync"), *kernel("__x64_sys_fsync", "__refrigerator")), "other", "stopped"),
        ((*in_libc("read"), *kernel("get_signal", "do_freezer_trap")), "interruptible", "stopped"),
        (TOPK, "uninterruptible", "lock"),
        (TOPK, "interruptible", "lock"),
        ((*in_libc("flock"), *kernel("__x64_sys_flock", "locks_lock_inode_wait")), "interruptible", "lock"),
        ((*in_libc("ioctl"), *kernel("__x64_sys_ioctl", "rwsem_down_read_slowpath")), "uninterruptible", "lock"),
        ((*in_libc("pthread_mutex_lock", "__lll_lock_wait"), *FUTEX), "interruptible", "lock"),
        ((*user(EXE, "main"), *user(LIBSTDCXX, "std::mutex::lock()"), *FUTEX), "interruptible", "lock"),
        ((*user(PYTHON, "[python3.11+0x1]"), *user(LIBC, "pthread_cond_timedwait"), *FUTEX), "interruptible", "lock"),
        ((*in_libc("fsync"), *kernel("__x64_sys_fsync", "folio_wait_bit")), "uninterruptible", "held"),
        ((*in_libc("ioctl"), *kernel("__x64_sys_ioctl", "request_wait_answer")), "interruptible", "held"),
        (POOL, "uninterruptible", "held"),
        ((Frame("[switch not reported]", "other"),), "other", "unknown"),
        ((), "other", "unknown"),
        (POOL, "other", "thread"),
        ((*in_libc("read"), *kernel("ksys_read", "vfs_read", "folio_wait_bit")), "other", "held"),
        (kernel("ret_from_fork", "kthread", "kjournald2"), "other", "held"),
        (POOL, "stopped", "stopped"),
        (POOL, "traced", "stopped"),
        (POOL, "runnable-woken", "core"),
        (kernel("ret_from_fork", "kthread", "kjournald2"), "interruptible", "work"),
        (kernel("ret_from_fork", "kthread", "worker_thread"), "idle", "work"),
    ],
)
def test_kinds(stack: Stack, state: str, kind: str) -> None:
    assert wait_of(stack, state).kind == kind


@pytest.mark.parametrize("with_python", [True, False])
@pytest.mark.parametrize(("inner", "kind"), [("sock_recv_into", "peer"), ("select_poll_poll", "events")])
def test_kind_is_the_same_with_the_frames_of_python(with_python: bool, inner: str, kind: str) -> None:
    library = "/usr/lib/python3.11/http/client.py"
    scripts = (
        Frame("fetch_price", "python", file="/t/req.py", line=3),
        *(Frame(name, "python", file=library, line=9) for name in ("get", "_tunnel")),
    )
    native = user(PYTHON, "_PyEval_EvalFrameDefault", "cfunction_vectorcall", inner, "sock_call_ex")
    below = (*user(LIBC, "poll"), *kernel("__x64_sys_poll", "do_sys_poll"))
    stack = (*user(PYTHON, "Py_BytesMain"), *(scripts if with_python else ()), *native, *below)
    assert wait_of(stack, "interruptible").kind == kind


@pytest.mark.parametrize("inner", [("PQexec",), ("PQexec", "PQgetResult", "pqWait", "pqSocketPoll")])
def test_a_client_of_postgres_waits_for_its_server(inner: tuple[str, ...]) -> None:
    driver = user(Module("/v/site-packages/psycopg2/_psycopg.so"), "psyco_curs_execute", "_pq_execute_sync")
    nameless = user(Module("/v/site-packages/psycopg2/libpq.so.5"), *inner, "[libpq.so.5+0x10]")
    scripts = (Frame("orders_of_customer", "python", file="/t/pg.py", line=6),)
    below = (*user(LIBC, "poll"), *kernel("__x64_sys_poll", "do_sys_poll"))
    stack = (*user(PYTHON, "Py_BytesMain"), *scripts, *driver, *nameless, *below)
    assert wait_of(stack, "interruptible").kind == "peer"


@pytest.mark.parametrize(
    ("names", "state", "kind"),
    [
        (("pthread_cond_wait", "__futex_abstimed_wait_common"), "interruptible", "thread"),
        (("__new_sem_wait_slow64.constprop.0", "__futex_abstimed_wait_common"), "interruptible", "thread"),
        (("pthread_cond_wait",), "other", "thread"),
        (("pthread_cond_wait",), "uninterruptible", "held"),
        (("pthread_mutex_lock", "__lll_lock_wait"), "interruptible", "lock"),
        (("usleep", "clock_nanosleep"), "interruptible", "sleep"),
        (("wait4",), "interruptible", "child"),
        (("epoll_pwait",), "interruptible", "events"),
        (("poll",), "interruptible", "events"),
        (("recvmsg",), "interruptible", "peer"),
        (("read",), "interruptible", "peer"),
        (("read",), "uninterruptible", "held"),
        (("read",), "other", "held"),
        (("ioctl",), "interruptible", "held"),
    ],
)
def test_kinds_without_kernel_stacks(names: tuple[str, ...], state: str, kind: str) -> None:
    assert wait_of(in_libc(*names), state).kind == kind


@pytest.mark.parametrize("name", ["[lost]", "[not sampled]", "[other stacks]", "[stopped by eu-stack]"])
@pytest.mark.parametrize("state", ["interruptible", "uninterruptible", "traced", "other"])
def test_time_of_an_unknown_place_is_no_wait(name: str, state: str) -> None:
    assert wait_of((Frame(name, "other"),), state).kind == "unknown"


def test_without_a_stack_the_state_alone_tells_little() -> None:
    assert wait_of((Frame("[no stack]", "other"),), "uninterruptible").kind == "unknown"
    assert wait_of((Frame("[no stack]", "other"),), "stopped").kind == "stopped"
    assert wait_of((Frame("[bash]", "other"),), "interruptible").kind == "work"


def test_who_ends_a_wait() -> None:
    assert "lock" not in TOLD_BY_OTHERS
    assert "held" not in TOLD_BY_OTHERS
    assert {"thread", "peer", "sleep", "events", "child", "work"} == TOLD_BY_OTHERS


def test_the_lock_is_named() -> None:
    taken = in_libc("pthread_rwlock_rdlock", "__lll_lock_wait")
    assert wait_of((*taken, *FUTEX), "interruptible").lock == "pthread_rwlock_rdlock"
    assert wait_of((*taken, *EPOLL), "interruptible").lock == ""
    assert wait_of((*in_libc("pthread_cond_wait"), *FUTEX), "interruptible").lock == ""
    monitor = user(JVM, "ObjectMonitor::EnterI(JavaThread*)", "os::PlatformEvent::park()")
    for below in (FUTEX, ()):
        stack = (*user(JVM, "JavaMain"), *monitor, *user(LIBC, "pthread_cond_wait"), *below)
        assert wait_of(stack, "interruptible").lock == "ObjectMonitor::EnterI"


STDLIB = "/usr/lib/python3.11"
TIMER = (*user(LIBC, "usleep", "clock_nanosleep"), *kernel("__x64_sys_clock_nanosleep", "do_nanosleep"))


@pytest.mark.parametrize("taken", ["PyThread_acquire_lock_timed", "_PyMutex_LockTimed", "_PyRecursiveMutex_LockTimed"])
@pytest.mark.parametrize(
    ("file", "function", "kind"),
    [
        ("/srv/job/job.py", "save", "lock"),
        ("/srv/job/job.py", "wait", "lock"),
        ("/srv/venv/lib/python3.11/site-packages/pool/base.py", "checkout", "lock"),
        (f"{STDLIB}/logging/__init__.py", "acquire", "lock"),
        (f"{STDLIB}/threading.py", "__enter__", "lock"),
        (f"{STDLIB}/threading.py", "wait", "thread"),
        (f"{STDLIB}/threading.py", "_wait_for_tstate_lock", "thread"),
        (f"{STDLIB}/threading.py", "Condition.wait", "thread"),
        (f"{STDLIB}/threading.py", "Thread._wait_for_tstate_lock", "thread"),
        (f"{STDLIB}/queue.py", "Queue.get", "thread"),
        ("/srv/job/queue.py", "Queue.get", "lock"),
        ("/srv/job/threading.py", "wait", "lock"),
        ("/srv/asyncio/tasks.py", "save", "lock"),
        (f"{STDLIB}/concurrent/futures/thread.py", "_worker", "work"),
        (f"{STDLIB}/multiprocessing/pool.py", "wait", "thread"),
    ],
)
@pytest.mark.parametrize("below", [FUTEX, ()])
def test_a_lock_of_a_script(taken: str, file: str, function: str, kind: str, below: Stack) -> None:
    """Python's library takes locks to wait for signals."""
    scripts = (Frame("main", "python", file="/srv/job/job.py", line=3), Frame(function, "python", file=file, line=7))
    native = user(PYTHON, "_PyEval_EvalFrameDefault", "lock_PyThread_acquire_lock", taken)
    stack = (*user(PYTHON, "Py_BytesMain"), *scripts, *native, *user(LIBC, "sem_clockwait"), *below)
    found = wait_of(stack, "interruptible")
    assert (found.kind, found.lock) == (kind, taken if kind == "lock" else "")


@pytest.mark.parametrize("function", ["join", "Thread.join", "Thread._wait_for_tstate_lock"])
@pytest.mark.parametrize("folder", [STDLIB, "/srv/job"])
def test_a_join_of_python(folder: str, function: str) -> None:
    script = Frame(function, "python", file=f"{folder}/threading.py", line=7)
    stack = (*user(PYTHON, "Py_BytesMain"), script, *user(LIBC, "sem_clockwait"), *FUTEX)
    assert wait_of(stack, "interruptible").join is (folder == STDLIB)


@pytest.mark.parametrize("name", ["ld-train", "libc-bench", "vdso_jobs", "python3-train", "java", "ld.so.py"])
def test_a_program_with_the_name_of_a_library_is_none(name: str) -> None:
    program = Module(f"/srv/job/{name}")
    for call, lock in (("pthread_cond_timedwait", ""), ("pthread_mutex_lock", "pthread_mutex_lock")):
        stack = (*user(program, "main", "take"), *user(LIBC, call), *FUTEX)
        assert (wait_of(stack, "interruptible").lock, site(stack).frames) == (lock, ("main", "take", call))


@pytest.mark.parametrize("name", ["type_call_handlers", "cfunction_registry", "method_vectorcalls", "slot_tp_9"])
def test_functions_of_a_program_with_names_like_python_s_are_its_own(name: str) -> None:
    stack = (*user(LIBC, "clone3", "start_thread"), *user(EXE, name), *user(LIBC, "pthread_rwlock_rdlock"), *FUTEX)
    assert site(stack).frames == (name, "pthread_rwlock_rdlock")


def test_a_lock_in_a_lambda_that_is_a_part_of_std_thread() -> None:
    thread = "std::thread::_State_impl<std::thread::_Invoker<std::tuple<main::{lambda()#1}> > >::_M_run()"
    lock = user(LIBC, "pthread_rwlock_rdlock", "__futex_abstimed_wait_common64")
    for below in (FUTEX, ()):
        stack = (*user(LIBC, "clone3", "start_thread"), *user(EXE, thread), *lock, *below)
        assert wait_of(stack, "interruptible").lock == site(stack).frames[-1] == "pthread_rwlock_rdlock"


@pytest.mark.parametrize(
    "path",
    [
        *("/usr/lib/libc.so.6", "/lib/libc-2.31.so", "/lib/ld-musl-x86_64.so.1", "/lib/libc.musl-x86_64.so.1"),
        *("/lib64/ld-linux-x86-64.so.2", "/libexec/ld.so.1", "/usr/lib/libstdc++.so.6.0.30", "/lib/libpthread-2.31.so"),
        *("[vdso]", "linux-vdso.so.1", "[vsyscall]", "/usr/lib/libgcc_s.so.1", "/usr/lib/libc++.so.1"),
    ],
)
def test_libraries_through_which_every_program_waits(path: str) -> None:
    assert in_library(Frame("read", module=Module(path)))


@pytest.mark.parametrize("name", ["python3", "python3.11", "python3.13t", "libpython3.11.so.1.0", "libpython3.so"])
def test_python_s_own_lock_by_the_only_call_of_a_function(name: str) -> None:
    stack = (*user(Module(f"/opt/{name}"), f"[{name}+0x1]"), *user(LIBC, "pthread_cond_timedwait"), *FUTEX)
    assert wait_of(stack, "interruptible").lock == "take_gil"


def test_a_queue_of_python_is_no_lock() -> None:
    scripts = (Frame("main", "python", file="/srv/job/job.py", line=3),)
    native = user(PYTHON, "_queue_SimpleQueue_get_impl", "PyThread_acquire_lock_timed")
    below = (*native, *user(LIBC, "sem_clockwait"), *FUTEX)
    assert wait_of((*user(PYTHON, "Py_BytesMain"), *scripts, *below), "interruptible").kind == "thread"
    assert wait_of((*user(PYTHON, "Py_BytesMain"), *below), "interruptible").kind == "thread", "no script is known"


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("/usr/lib/python3.11/lib-dynload/_queue.cpython-311-x86_64-linux-gnu.so", "thread"),
        ("/usr/lib/python3.11/lib-dynload/_thread_queue.cpython-311-x86_64-linux-gnu.so", "lock"),
    ],
)
def test_a_queue_of_python_whose_module_has_no_names(file: str, kind: str) -> None:
    scripts = (Frame("main", "python", file="/srv/job/job.py", line=3),)
    module = Frame("[_queue.cpython-311-x86_64-linux-gnu.so]", "native", Module(file))
    below = (module, *user(PYTHON, "PyThread_acquire_lock_timed"), *user(LIBC, "sem_clockwait"), *FUTEX)
    assert wait_of((*user(PYTHON, "Py_BytesMain"), *scripts, *below), "interruptible").kind == kind


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        ("std::sys::sync::mutex::futex::Mutex::lock_contended", "lock"),
        ("std::sys::unix::locks::futex_rwlock::RwLock::write_contended", "lock"),
        ("<std::sys::sync::rwlock::futex::RwLock>::read_contended", "lock"),
        ("parking_lot::raw_mutex::RawMutex::lock_slow", "lock"),
        ("parking_lot::raw_rwlock::RawRwLock::lock_exclusive_slow", "lock"),
        ("absl::lts_20230802::Mutex::Lock()", "lock"),
        ("std::sys::sync::condvar::futex::Condvar::wait", "thread"),
        ("app::Mutex::lock_contended", "thread"),
        ("absl::lts_20230802::CondVar::Wait(absl::Mutex*)", "thread"),
    ],
)
def test_locks_that_a_program_has_linked_in(function: str, kind: str) -> None:
    stack = (*user(EXE, "main", "work", function), *user(LIBC, "syscall"), *FUTEX)
    found = wait_of(stack, "interruptible")
    assert (found.kind, bool(found.lock)) == (kind, kind == "lock")


@pytest.mark.parametrize("module", [EXE, Module("/usr/lib/x86_64-linux-gnu/libsqlite3.so.0")])
def test_a_database_that_is_tried_again_is_a_lock(module: Module) -> None:
    retries = user(module, "sqlite3Step", "sqlite3BtreeBeginTrans", "sqlite3InvokeBusyHandler", "unixSleep")
    found = wait_of((*user(EXE, "main"), *retries, *TIMER), "interruptible")
    assert (found.kind, found.lock) == ("lock", "sqlite3InvokeBusyHandler")
    sleeps = user(module, "sqlite3_sleep", "unixSleep")
    assert wait_of((*user(EXE, "main"), *sleeps, *TIMER), "interruptible").kind == "sleep"


@pytest.mark.parametrize("below", [EPOLL, ()])
def test_a_lock_of_a_database_is_a_lock(below: Stack) -> None:
    latch = user(POSTGRES, "WaitLatch", "WaitEventSetWait")
    waits = (*user(POSTGRES, "PostgresMain", "XactLockTableWait", "ProcSleep"), *latch, *user(LIBC, "epoll_wait"))
    found = wait_of((*waits, *below), "interruptible")
    assert (found.kind, found.lock) == ("lock", "ProcSleep")
    client = (*user(POSTGRES, "PostgresMain", "secure_read"), *latch, *user(LIBC, "epoll_wait"))
    assert wait_of((*client, *below), "interruptible").kind == "events"
    other = (*user(EXE, "main", "ProcSleep"), *user(LIBC, "epoll_wait"))
    assert wait_of((*other, *below), "interruptible").kind == "events"


@pytest.mark.parametrize(
    "name", ["cache_fetch", "cache_read", "take_gil", "pthread_mutex_lock", "PQexec", "recv", "_poll"]
)
@pytest.mark.parametrize("module", [EXE, Module("/srv/job/libown.so"), None])
def test_what_a_program_calls_its_functions_changes_nothing(name: str, module: Module | None) -> None:
    """A script's function, if there is no module, has no effect on the kind either."""
    own = user(module, name) if module else (Frame(name, "python", file="/srv/job/job.py", line=3),)
    poll = (*user(LIBC, "poll"), *kernel("__x64_sys_poll", "do_sys_poll"))
    lock = (*user(LIBC, "pthread_cond_wait"), *FUTEX)
    for below, kind in ((poll, "events"), (lock, "thread")):
        found = wait_of((*user(EXE, "main"), *own, *below), "interruptible")
        assert (found.kind, found.lock) == (kind, "")


C10D = "/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py"


@pytest.mark.parametrize(
    ("frame", "for_all"),
    [
        (Frame("MPI_Allreduce", "native", Module("/usr/lib/libmpi.so.40")), True),
        (Frame("PMPI_Bcast", "native", Module("/usr/lib/libmpi.so.40")), True),
        (Frame("MPI_Recv", "native", Module("/usr/lib/libmpi.so.40")), False),
        (Frame("MPI_Waitall", "native", Module("/usr/lib/libmpi.so.40")), False),
        (Frame("ncclReduceScatter", "native", Module("/srv/app/libnccl.so.2")), True),
        (Frame("ncclRecv", "native", Module("/srv/app/libnccl.so.2")), False),
        (Frame("ncclGroupEnd", "native", Module("/srv/app/libnccl.so.2")), False),
        (
            Frame(
                "barrier", "python", file="/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py", line=4
            ),
            True,
        ),
        (
            Frame(
                "recv", "python", file="/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py", line=4
            ),
            False,
        ),
    ],
)
def test_operations_in_which_all_ranks_meet(frame: Frame, for_all: bool) -> None:
    stack = (*user(EXE, "main", "step"), frame, *user(LIBC, "poll"), *kernel("__x64_sys_poll", "do_sys_poll"))
    found = wait_of(stack, "interruptible")
    assert (found.job, found.for_all) == ("collective", for_all)


@pytest.mark.parametrize(
    ("function", "path", "job"),
    [
        ("ncclAllReduce", "/srv/app/libnccl.so.2", "collective"),
        ("PMPI_Barrier", "/srv/app/libmpi.so.40.30.4", "collective"),
        ("ncclAllReduce", "/srv/app/libfast_nccl.so", ""),
        ("ncclAllReduce", "/srv/app/app", ""),
        ("ncclGetVersion", "/srv/app/libnccl.so.2", ""),
    ],
)
def test_collectives_of_a_library_that_a_program_ships(function: str, path: str, job: str) -> None:
    own = Module("/srv/app/app")
    stack = (*user(own, "main", "step"), *user(Module(path), function, "meet"), *user(LIBC, "poll"), *EPOLL)
    assert wait_of(stack, "interruptible").job == job


@pytest.mark.parametrize(
    ("function", "path", "gpu"),
    [
        ("cudaStreamSynchronize", "/usr/local/cuda/lib64/libcudart.so.12", True),
        ("cudaMemcpy2D", "/opt/venv/lib/python3.11/site-packages/nvidia/cuda_runtime/lib/libcudart.so.12", True),
        ("cuCtxSynchronize", "/usr/lib/x86_64-linux-gnu/libcuda.so.1", True),
        ("cuMemcpyDtoHAsync_v2", "/usr/lib/x86_64-linux-gnu/libcuda.so.1", False),
        ("cudaGetDeviceProperties", "/usr/local/cuda/lib64/libcudart.so.12", False),
        ("cudaStreamSynchronize", "/srv/app/app", False),
    ],
)
def test_waits_for_a_gpu(function: str, path: str, gpu: bool) -> None:
    stack = (*user(EXE, "main", "step"), *user(Module(path), function), *user(LIBC, "poll"), *EPOLL)
    assert wait_of(stack, "interruptible").gpu == (function if gpu else "")


def test_a_thread_of_nccl_that_runs() -> None:
    nccl, waits = Module("/usr/lib/libnccl.so.2"), Waits()
    progress = user(nccl, "ncclProxyProgress(void*)", "progressOps")
    stacks = [
        progress,
        (*progress, *user(LIBC, "sched_yield"), *kernel("__x64_sys_sched_yield")),
        (*progress, *user(LIBC, "recv"), *kernel("__x64_sys_recvfrom", "tcp_recvmsg")),
        user(nccl, "ncclProxyService(void*)", "proxyServiceInitOp"),
        user(Module("/srv/train"), "ncclProxyProgress(void*)", "progressOps"),
    ]
    assert [waits.polls(stack) for stack in stacks] == ["ncclProxyProgress", "ncclProxyProgress", "", "", ""]
    blocked = (*user(nccl, "ncclProxyProgress(void*)"), *user(LIBC, "pthread_cond_wait"), *kernel("futex_wait"))
    assert wait_of(blocked, "interruptible").kind == WORK
