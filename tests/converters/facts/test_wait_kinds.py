from __future__ import annotations

import pytest
from stallscope.converters.model import Frame, Module, Stack
from stallscope.converters.facts.wait_kinds import TOLD_BY_OTHERS, kind_of, user_lock
from stallscope.converters.summary.wait_sites import site
from summary_profiles import EXE, FUTEX, LIBC, LIBSTDCXX, POOL, TOPK, kernel, user

PYTHON = Module("/usr/bin/python3.11")


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
            (*user(EXE, "main", "sock_recv_into"), *user(LIBC, "poll"), *kernel("__x64_sys_poll", "do_sys_poll")),
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
            (Frame("read_reply", "python", file="x.py", line=4), *kernel("__x64_sys_poll", "do_sys_poll")),
            "interruptible",
            "peer",
        ),
        (
            (*in_libc("accept4"), *kernel("__x64_sys_accept4", "unix_accept", "__skb_wait_for_more_packets")),
            "interruptible",
            "events",
        ),
        ((*in_libc("wait4"), *kernel("kernel_wait4", "do_wait")), "interruptible", "child"),
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
    where = site(stack)
    assert kind_of(state, where.frames, where.kernel) == kind


@pytest.mark.parametrize("with_python", [True, False])
@pytest.mark.parametrize(("inner", "kind"), [("sock_recv_into", "peer"), ("select_poll_poll", "events")])
def test_kind_is_the_same_with_the_frames_of_python(with_python: bool, inner: str, kind: str) -> None:
    library = "/usr/lib/python3.11/http/client.py"
    scripts = (
        Frame("fetch_price", "python", file="/t/req.py", line=3),
        *(Frame(name, "python", file=library, line=9) for name in ("get", "begin")),
    )
    native = user(PYTHON, "_PyEval_EvalFrameDefault", "cfunction_vectorcall", inner, "sock_call_ex")
    below = (*user(LIBC, "poll"), *kernel("__x64_sys_poll", "do_sys_poll"))
    where = site((*user(PYTHON, "Py_BytesMain"), *(scripts if with_python else ()), *native, *below))
    assert kind_of("interruptible", where.frames, where.kernel) == kind


@pytest.mark.parametrize("inner", [("PQexec",), ("PQexec", "PQgetResult", "pqWait", "pqSocketPoll")])
def test_a_client_of_postgres_waits_for_its_server(inner: tuple[str, ...]) -> None:
    driver = user(Module("/v/site-packages/psycopg2/_psycopg.so"), "psyco_curs_execute", "_pq_execute_sync")
    nameless = user(Module("/v/site-packages/psycopg2/libpq.so.5"), *inner, "[libpq.so.5+0x10]")
    scripts = (Frame("orders_of_customer", "python", file="/t/pg.py", line=6),)
    below = (*user(LIBC, "poll"), *kernel("__x64_sys_poll", "do_sys_poll"))
    where = site((*user(PYTHON, "Py_BytesMain"), *scripts, *driver, *nameless, *below))
    assert kind_of("interruptible", where.frames, where.kernel) == "peer"


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
    where = site(in_libc(*names))
    assert where.kernel == ""
    assert kind_of(state, where.frames, "") == kind


@pytest.mark.parametrize("name", ["[lost]", "[not sampled]", "[other stacks]", "[stopped by eu-stack]"])
@pytest.mark.parametrize("state", ["interruptible", "uninterruptible", "traced", "other"])
def test_time_of_an_unknown_place_is_no_wait(name: str, state: str) -> None:
    where = site((Frame(name, "other"),))
    assert kind_of(state, where.frames, where.kernel) == "unknown"


def test_without_a_stack_the_state_alone_tells_little() -> None:
    where = site((Frame("[no stack]", "other"),))
    assert kind_of("uninterruptible", where.frames, "") == "unknown"
    assert kind_of("stopped", where.frames, "") == "stopped"
    assert kind_of("interruptible", site((Frame("[bash]", "other"),)).frames, "") == "work"


def test_who_ends_a_wait() -> None:
    assert "lock" not in TOLD_BY_OTHERS
    assert "held" not in TOLD_BY_OTHERS
    assert {"thread", "peer", "sleep", "events", "child", "work"} == TOLD_BY_OTHERS


def test_the_lock_is_named() -> None:
    where = site((*in_libc("pthread_rwlock_rdlock", "__lll_lock_wait"), *FUTEX))
    assert user_lock(where.frames, where.kernel) == "pthread_rwlock_rdlock"
    assert user_lock(where.frames, "ep_poll") == ""
    assert user_lock(("main", "pthread_cond_wait"), "futex_wait") == ""
    for below in ("futex_wait", ""):
        assert user_lock(("ObjectMonitor::EnterI", "…", "pthread_cond_wait"), below) == "ObjectMonitor::EnterI"


def test_a_lock_of_a_database_is_a_lock() -> None:
    frames = ("XactLockTableWait", "…", "ProcSleep", "…", "epoll_wait")
    assert kind_of("interruptible", frames, "do_epoll_wait") == "lock"
    assert user_lock(frames, "do_epoll_wait") == user_lock(frames, "") == "ProcSleep"
    assert kind_of("interruptible", ("secure_read", "…", "epoll_wait"), "do_epoll_wait") == "events"
