"""Functions of servers, clients and training jobs that tell what a wait is for."""

from __future__ import annotations

import pytest
from stallscope.converters.facts.wait_functions import METADATA_LOCK
from stallscope.converters.facts.waits import wait_of
from stallscope.converters.model import Frame, Module, Stack
from summary_profiles import EXE, FUTEX, LIBC, kernel, user

POSTGRES = Module("/usr/lib/postgresql/15/bin/postgres")
HTTP = "/usr/lib/python3.11/http/client.py"
MARIADBD = Module("/usr/sbin/mariadbd")
NODE = Module("/usr/bin/node")
TORCH = "/venv/lib/python3.11/site-packages/torch"
EPOLL_WAIT = (*user(LIBC, "epoll_wait"), *kernel("__x64_sys_epoll_wait", "do_epoll_wait"))
POLLS = kernel("__x64_sys_poll", "do_sys_poll")
SOCKET = kernel("__x64_sys_recvfrom", "sk_wait_data")


def script(*functions: tuple[str, str]) -> Stack:
    """Functions of scripts, by their files."""
    return tuple(Frame(name, "python", file=file, line=5) for file, name in functions)


@pytest.mark.parametrize(
    ("module", "functions", "call", "kind", "lock"),
    [
        (MARIADBD, ("handler::ha_index_read_map", "[mariadbd+0x1]"), "pthread_cond_timedwait", "lock", "lock_wait"),
        (MARIADBD, ("lock_wait(que_thr_t*)",), "pthread_cond_timedwait", "lock", "lock_wait"),
        (MARIADBD, ("MDL_context::acquire_lock", "MDL_wait::wait"), "pthread_cond_timedwait", "lock", METADATA_LOCK),
        (MARIADBD, ("MDL_context::release_lock", "MDL_wait::wait"), "pthread_cond_timedwait", "thread", ""),
        (MARIADBD, ("handler::ha_index_read_map", "[mariadbd+0x1]"), "pthread_cond_wait", "thread", ""),
        (EXE, ("handler::ha_index_read_map",), "pthread_cond_timedwait", "thread", ""),
        (MARIADBD, ("Item_func_sleep::val_int()",), "pthread_cond_timedwait", "sleep", ""),
        (EXE, ("Item_func_sleep::val_int()",), "pthread_cond_timedwait", "thread", ""),
    ],
)
def test_statements_of_mariadb(module: Module, functions: tuple[str, ...], call: str, kind: str, lock: str) -> None:
    wait = wait_of((*user(module, "main", *functions), *user(LIBC, call), *FUTEX), "interruptible")
    assert (wait.kind, wait.lock) == (kind, lock)


def test_an_event_loop_until_a_process_has_ended() -> None:
    loop = user(NODE, "node::SyncProcessRunner::Spawn(v8::FunctionCallbackInfo<v8::Value> const&)", "uv_run")
    assert wait_of((*loop, *EPOLL_WAIT), "interruptible").kind == "child"
    assert wait_of((*user(NODE, "node::Start(int, char**)", "uv_run"), *EPOLL_WAIT), "interruptible").kind == "events"
    assert wait_of((*user(EXE, "node::SyncProcessRunner::Spawn"), *EPOLL_WAIT), "interruptible").kind == "events"


@pytest.mark.parametrize(
    ("below", "job"),
    [
        (script((f"{TORCH}/utils/data/dataloader.py", "_BaseDataLoaderIter.__next__")), "loader"),
        (script(("/srv/data/dataloader.py", "Loader.__next__")), ""),
        (script((f"{TORCH}/distributed/distributed_c10d.py", "all_reduce")), "collective"),
        (script((f"{TORCH}/distributed/distributed_c10d.py", "get_rank")), ""),
        (user(Module(f"{TORCH}/lib/libtorch_cpu.so"), "c10d::ProcessGroupGloo::AsyncWork::wait(long)"), "collective"),
        (user(Module(f"{TORCH}/lib/libtorch_cpu.so"), "c10d::Reducer::finalize_backward()"), "collective"),
        (user(Module("/usr/lib/x86_64-linux-gnu/libmpi.so.40"), "PMPI_Allreduce"), "collective"),
        (user(Module("/usr/lib/x86_64-linux-gnu/libmpi.so.40"), "PMPI_Comm_rank"), ""),
        (user(EXE, "MPI_Barrier"), ""),
    ],
)
def test_waits_of_a_training_job(below: Stack, job: str) -> None:
    stack = (*script(("/srv/train.py", "train_step")), *below, *user(LIBC, "pthread_cond_wait"), *FUTEX)
    assert (wait_of(stack, "interruptible").job, wait_of(stack, "runnable-woken").job) == (job, "")


CELERY = "/venv/lib/python3.11/site-packages/celery/result.py"
PIKA = "/venv/lib/python3.11/site-packages/pika/adapters/blocking_connection.py"


@pytest.mark.parametrize(
    ("below", "kind", "asks"),
    [
        ((*user(LIBC, "getaddrinfo", "poll"), *kernel("__x64_sys_poll", "do_sys_poll")), "peer", True),
        ((*user(LIBC, "connect"), *kernel("__x64_sys_connect", "__inet_stream_connect")), "peer", True),
        ((*script((PIKA, "BlockingChannel.basic_publish")), *EPOLL_WAIT), "peer", True),
        ((*script((HTTP, "HTTPConnection.getresponse")), *user(LIBC, "recv"), *SOCKET), "peer", True),
        ((*user(Module("/usr/lib/libpq.so.5"), "PQgetResult"), *user(LIBC, "poll"), *POLLS), "peer", True),
        (
            (*user(Module("/usr/sbin/php-fpm8.2"), "_php_stream_open_wrapper_ex"), *user(LIBC, "poll"), *POLLS),
            "peer",
            True,
        ),
        ((*user(POSTGRES, "SyncRepWaitForLSN", "WaitLatch", "WaitEventSetWait"), *EPOLL_WAIT), "peer", True),
        ((*script((CELERY, "AsyncResult.get")), *user(LIBC, "recv"), *SOCKET), "peer", True),
        ((*script((CELERY, "AsyncResult.forget")), *user(LIBC, "recv"), *SOCKET), "peer", False),
        ((*script(("/srv/celery/result.py", "get")), *user(LIBC, "recv"), *SOCKET), "peer", False),
        ((*user(LIBC, "recv"), *SOCKET), "peer", False),
        ((*user(LIBC, "poll"), *POLLS), "events", False),
        ((*script((PIKA, "BlockingChannel.start_consuming")), *EPOLL_WAIT), "events", False),
        ((*script(("/srv/pika/adapters/blocking_connection.py", "basic_publish")), *EPOLL_WAIT), "events", False),
        ((*user(LIBC, "getaddrinfo", "usleep"), *kernel("__x64_sys_nanosleep", "do_nanosleep")), "sleep", False),
    ],
)
def test_who_asks_waits_for_an_answer(below: Stack, kind: str, asks: bool) -> None:
    wait = wait_of((*user(EXE, "main", "look_up"), *below), "interruptible")
    assert (wait.kind, wait.asks) == (kind, asks)


SLEEPS = (*user(LIBC, "clock_nanosleep"), *kernel("__x64_sys_clock_nanosleep", "do_nanosleep"))


@pytest.mark.parametrize(
    ("function", "kind", "lock"),
    [
        (("/venv/lib/python3.11/site-packages/filelock/_api.py", "BaseFileLock.acquire"), "lock", "lock of a file"),
        (("/v/site-packages/filelock/_core/_acquire.py", "A._poll_until_acquired"), "lock", "lock of a file"),
        (("/v/site-packages/portalocker/utils.py", "Lock.acquire"), "lock", "lock of a file"),
        (("/v/site-packages/fasteners/process_lock.py", "_InterProcessLock._do_acquire"), "lock", "lock of a file"),
        (("/usr/lib/python3/dist-packages/borg/locking.py", "ExclusiveLock.acquire"), "lock", "lock of a file"),
        (("/v/site-packages/filelock/_api.py", "BaseFileLock.release"), "sleep", ""),
        (("/srv/filelock.py", "acquire"), "sleep", ""),
        (("/v/site-packages/myfilelock/_api.py", "acquire"), "sleep", ""),
    ],
)
def test_locks_on_files_that_are_asked_for_again_and_again(function: tuple[str, str], kind: str, lock: str) -> None:
    wait = wait_of((*script(("/srv/job.py", "main"), function), *SLEEPS), "interruptible")
    assert (wait.kind, wait.lock) == (kind, lock)
