from __future__ import annotations

import pytest
from stallscope.converters.facts.frame_names import NAME_LIMIT, function_name
from stallscope.converters.facts.shared_frames import shared_frames
from stallscope.converters.facts.wait_kinds import EVENTS, PEER
from stallscope.converters.facts.wait_sites import site
from stallscope.converters.facts.waits import wait_of
from stallscope.converters.model import Frame, Module, Stack
from summary_profiles import (
    CUDA,
    EPOLL,
    EXE,
    FUTEX,
    LIBC,
    MUTEX,
    POOL,
    SPIN,
    TOPK,
    WAIT_FOR_WORKER,
    kernel,
    user,
)

LIBCUDA = Module("/usr/lib/libcuda.so.1")
LIBSTDCXX = Module("/usr/lib/libstdc++.so.6")
NVIDIA = Module("[nvidia]")
READ = kernel("ksys_read", "vfs_read", "anon_pipe_read")
SLEEP = kernel("__x64_sys_clock_nanosleep", "common_nsleep", "hrtimer_nanosleep", "do_nanosleep")


def text(stack: Stack) -> str:
    where = site(stack)
    return " > ".join(where.frames) + " | " + where.kernel


def frames(module: Module | None, *names: str) -> Stack:
    return (*user(EXE, "main", "step"), *user(module, *names))


@pytest.mark.parametrize(
    ("stack", "expected"),
    [
        (TOPK, "topk > cudaGetDeviceProperties > ioctl | __mutex_lock"),
        (WAIT_FOR_WORKER, "main > wait_for_worker > pthread_cond_wait | futex_wait"),
        (POOL, "pool_main > std::condition_variable::wait | futex_wait"),
        ((*frames(LIBC, "epoll_wait"), *EPOLL), "main > step > epoll_wait | ep_poll"),
        ((*frames(LIBC, "__GI___libc_read"), *READ), "main > step > read | pipe_read"),
        ((*frames(LIBC, "fread", "_IO_file_read", "read"), *READ), "main > step > fread > read | pipe_read"),
        ((*frames(LIBC, "usleep", "__nanosleep"), *SLEEP), "main > step > usleep > clock_nanosleep | do_nanosleep"),
        ((*frames(LIBC, "nanosleep"), *SLEEP), "main > step > nanosleep | do_nanosleep"),
        ((*frames(LIBC, "waitpid"), *kernel("kernel_wait4", "do_wait")), "main > step > waitpid > wait4 | do_wait"),
        (
            (*frames(LIBC, "poll"), *kernel("__x64_sys_poll", "do_sys_poll", "poll_schedule_timeout.constprop.0")),
            "main > step > poll | do_sys_poll",
        ),
        (
            (*frames(EXE, "touch"), *(Frame(n, "kernel") for n in ("asm_exc_page_fault", "folio_wait_bit_common"))),
            "step > touch > page fault | folio_wait_bit_common",
        ),
        ((*frames(LIBC, "__lll_lock_wait"), *FUTEX), "main > step > lll_lock_wait | futex_wait"),
        (SPIN[:2], "spin | "),
        (SPIN, "spin | irqentry_exit"),
        ((), " | "),
    ],
)
def test_what_matters_of_a_stack(stack: Stack, expected: str) -> None:
    assert text(stack) == expected


def test_api_is_shown_with_its_caller_however_deep_the_library_is() -> None:
    inside = frames(CUDA, "cudaGetDeviceProperties", "libcudart_1", "libcudart_2")
    assert text((*inside, *MUTEX)) == "step > cudaGetDeviceProperties > … > libcudart_2 > ioctl | __mutex_lock"


def test_library_without_names_is_named_once() -> None:
    stack = (*frames(CUDA, "cudaMalloc"), *user(LIBCUDA, "[libcuda.so.1+0x10]", "[libcuda.so.1+0x20]"), *MUTEX)
    assert text(stack) == "step > cudaMalloc > [libcuda.so.1] > ioctl | __mutex_lock"
    stack = (*frames(CUDA, "cudaMalloc"), *user(LIBCUDA, "cuMemAlloc", "[libcuda.so.1+0x20]"), *MUTEX)
    assert text(stack) == "step > cudaMalloc > cuMemAlloc > ioctl | __mutex_lock"
    assert text((*user(LIBCUDA, "[libcuda.so.1+0x20]"), *MUTEX)) == "[libcuda.so.1] > ioctl | __mutex_lock"
    stack = (*frames(CUDA, "cudaMalloc"), *user(LIBCUDA, "[libcuda.so.1!fn_0x10]", "[libcuda.so.1+0x20]"), *MUTEX)
    assert text(stack) == "step > cudaMalloc > [libcuda.so.1] > ioctl | __mutex_lock"


def test_wrapper_of_the_system_call_inside_the_library_or_the_program_is_the_call() -> None:
    assert text((*frames(CUDA, "cudaMalloc", "ioctl"), *MUTEX)) == "step > cudaMalloc > ioctl | __mutex_lock"
    assert text((*frames(EXE, "__ioctl"), *MUTEX)) == "main > step > ioctl | __mutex_lock"


def test_a_function_may_be_called_as_the_library_s_that_it_calls() -> None:
    """The waits of such a function would else be those of its caller."""
    sleep = (*user(LIBC, "nanosleep", "clock_nanosleep"), *SLEEP)
    assert text((*frames(EXE, "nanosleep"), *sleep)) == "step > nanosleep > nanosleep | do_nanosleep"
    assert text((*frames(EXE, "walk", "walk", "walk"), *sleep)) == "walk > nanosleep | do_nanosleep"


def test_python_frames_count_and_its_evaluator_does_not() -> None:
    python = Module("/usr/bin/python3.11")
    stack = (
        *user(python, "Py_BytesMain", "_PyEval_EvalFrameDefault"),
        *(Frame(name, "python", file="train.py") for name in ("<module>", "train", "step")),
        *user(python, "_PyEval_EvalFrameDefault", "cfunction_vectorcall", "time_sleep"),
        *user(LIBC, "clock_nanosleep"),
        *SLEEP,
    )
    assert text(stack) == "train > step > … > time_sleep > clock_nanosleep | do_nanosleep"
    assert text((*stack[:5], *SLEEP)) == "train > step > clock_nanosleep | do_nanosleep"


def test_only_plumbing_is_still_something() -> None:
    assert text((*user(LIBC, "start_thread", "__read"), *READ)) == "read | pipe_read"
    assert text(user(LIBC, "start_thread", "malloc")) == "malloc | "
    assert text((*user(None, "[unknown]"), *READ)) == "read | pipe_read"


def test_kernel_thread() -> None:
    names = ("ret_from_fork_asm", "kthread", "worker_thread", "schedule", "__schedule", "[0xffffffffc0001234]")
    stack = tuple(Frame(name, "kernel") for name in names)
    assert text(stack) == " | worker_thread"


def test_kernel_module_without_names_is_named() -> None:
    stack = (Frame("__x64_sys_ioctl", "kernel"), Frame("[nvidia+0x1a2b]", "kernel", NVIDIA))
    assert text(stack) == "ioctl | [nvidia]"


def test_user_only_stack_has_no_kernel_wait() -> None:
    assert text(frames(LIBC, "ioctl")) == "main > step > ioctl | "


def python_of(file: str, *functions: tuple[str, int]) -> tuple[Frame, ...]:
    return tuple(Frame(name, "python", file=file, line=line) for name, line in functions)


def test_innermost_python_function_of_the_program_has_its_line() -> None:
    own = python_of("/srv/train.py", ("<module>", 30), ("train", 19), ("next_batch", 14))
    library = python_of("/usr/lib/python3.11/queue.py", ("Queue.get", 171))
    semaphore = user(LIBC, "sem_clockwait", "__new_sem_wait_slow64")
    assert text((*own, *library, *semaphore, *FUTEX)) == "train > train.py:14 next_batch > Queue.get | futex_wait"
    again = python_of("/srv/train.py", ("next_batch", 15))
    assert text((*own[:-1], *again, *library, *semaphore, *FUTEX)).startswith("train > train.py:15 next_batch")
    assert text((*own, *semaphore, *FUTEX)) == "train > train.py:14 next_batch > sem_clockwait | futex_wait"
    assert text((Frame("f", "python", file="/x.py"), *FUTEX)).startswith("f > ")


POLL = (*user(LIBC, "__poll"), *kernel("__x64_sys_poll", "do_sys_poll"))
CLIENT = (
    *python_of("/t/req.py", ("<module>", 8), ("fetch_price", 3)),
    *python_of("/usr/lib/python3/dist-packages/requests/sessions.py", ("Session.get", 602)),
)
READINTO = python_of("/usr/lib/python3.11/socket.py", ("SocketIO.readinto", 706))


@pytest.mark.parametrize(("qualified", "name"), [(True, "Connection._poll"), (False, "_poll")])
def test_poll_of_one_connection_of_multiprocessing(qualified: bool, name: str) -> None:
    """A poll of several connections is none: only `Connection.poll` waits for the other end of its own."""
    own = python_of("/srv/train.py", ("<module>", 30), ("train", 19))
    loader = python_of(
        "/v/lib/python3.11/site-packages/torch/utils/data/dataloader.py", ("__next__", 741), ("_try_get_data", 1240)
    )
    library = python_of("/usr/lib/python3.11/multiprocessing/queues.py", ("get", 113))
    file = "/usr/lib/python3.11/multiprocessing/connection.py"
    connection = python_of(file, ("Connection.poll" if qualified else "poll", 256), (name, 423))
    waits = (*python_of(file, ("wait", 930)), *python_of("/usr/lib/python3.11/selectors.py", ("select", 415)), *POLL)
    assert text((*own, *loader, *library, *connection, *waits)) == (
        f"<module> > train.py:19 train > __next__ > … > {name} > poll | do_sys_poll"
    )
    assert wait_of((*own, *loader, *library, *connection, *waits), "interruptible").kind == PEER
    assert wait_of((*own, *loader, *waits), "interruptible").kind == EVENTS
    assert (
        wait_of(
            (*own, *python_of("/usr/lib/python3.11/subprocess.py", ("Popen._communicate", 2100)), *waits[1:]),
            "interruptible",
        ).kind
        == PEER
    )


def test_the_function_that_waits_for_a_peer_is_named_below_pythons_library() -> None:
    python = Module("/usr/bin/python3.11")
    inside = user(python, "_bufferedreader_raw_read", "_PyEval_EvalFrameDefault")
    receive = user(python, "cfunction_vectorcall", "sock_recv_into", "sock_call_ex")
    expected = "<module> > req.py:3 fetch_price > Session.get > … > {} > poll | do_sys_poll"
    assert text((*CLIENT, *inside, *READINTO, *receive, *POLL)) == expected.format("sock_recv_into")
    assert text((*CLIENT, *receive, *POLL)) == expected.format("sock_recv_into")
    nameless = user(python, "[python3.11+0x10]", "[python3.11+0x20]")
    assert text((*CLIENT, *nameless, *READINTO, *nameless, *POLL)) == expected.format("SocketIO.readinto")


def test_without_python_frames_too() -> None:
    python = Module("/usr/bin/python3.11")
    outside = user(python, "Py_RunMain", "run_mod", "_PyEval_EvalFrameDefault")
    stacks = [(*outside, *user(python, each), *POLL) for each in ("sock_recv_into", "sock_sendall", "select_poll_poll")]
    shared = shared_frames([(stack, 10) for stack in stacks])
    hidden = shared._replace(called=frozenset((python.path, name) for name in ("sock_recv_into", "select_poll_poll")))
    assert site(stacks[0], hidden).frames == ("Py_RunMain", "run_mod", "…", "sock_recv_into", "poll")
    assert site(stacks[2], hidden).frames == ("Py_RunMain", "run_mod", "…", "poll")


def test_no_function_outside_of_the_innermost_python_function_waits_for_the_peer() -> None:
    python, select = Module("/usr/bin/python3.11"), python_of("/usr/lib/python3.11/selectors.py", ("select", 415))
    poll = (*select, *user(python, "cfunction_vectorcall", "select_poll_poll"), *POLL)
    assert text((*CLIENT, *READINTO, *poll)) == "<module> > req.py:3 fetch_price > Session.get > … > poll | do_sys_poll"


def test_the_lock_of_python_is_named_below_its_library() -> None:
    python = Module("/usr/bin/python3.11")
    own, library = python_of("/t.py", ("f", 3)), python_of("/usr/lib/python3.11/json.py", ("dumps", 9))
    stack = (*own, *library, *user(python, "take_gil"), *user(LIBC, "pthread_cond_timedwait"), *FUTEX)
    assert text(stack).endswith("take_gil | futex_wait")
    nameless = (*own, *library, *user(python, "[python3.11+0x10]"), *user(LIBC, "pthread_cond_timedwait"), *FUTEX)
    assert text(nameless).endswith("take_gil | futex_wait")


def test_python_waits_for_its_lock() -> None:
    python = Module("/usr/bin/python3.11")
    stack = (*user(python, "[python3.11+0x10]"), *user(LIBC, "pthread_cond_timedwait@@GLIBC_2.3.2"), *FUTEX)
    assert text(stack) == "[python3.11] > take_gil | futex_wait"
    assert (
        text((*frames(LIBC, "pthread_cond_timedwait"), *FUTEX)) == "main > step > pthread_cond_timedwait | futex_wait"
    )


LATCH = user(EXE, "ProcSleep", "WaitLatch", "WaitEventSetWait")
ROW = (*user(EXE, "main", "heap_update", "XactLockTableWait", "LockAcquire"), *LATCH, *user(LIBC, "epoll_wait"), *EPOLL)
TUPLE = (*user(EXE, "main", "heap_lock", "LockTuple", "LockAcquire"), *LATCH, *user(LIBC, "epoll_wait"), *EPOLL)
NAP = (*user(EXE, "main", "pg_sleep"), *LATCH[1:], *user(LIBC, "epoll_wait"), *EPOLL)


def test_what_many_waits_go_through_is_left_out() -> None:
    shared = shared_frames([(ROW, 10), (TUPLE, 10), (NAP, 10)])
    assert site(ROW, shared).frames == ("XactLockTableWait", "LockAcquire", "ProcSleep", "…", "epoll_wait")
    assert site(TUPLE, shared).frames == ("LockTuple", "LockAcquire", "ProcSleep", "…", "epoll_wait")
    assert site(NAP, shared).frames == ("main", "pg_sleep", "…", "epoll_wait")


def test_what_is_known_to_pass_waits_on_is_left_out_of_a_single_one_too() -> None:
    assert site(ROW).frames == ("LockAcquire", "ProcSleep", "…", "epoll_wait")
    assert site(NAP).frames == ("main", "pg_sleep", "…", "epoll_wait")


def test_endless_name_is_bounded() -> None:
    name = function_name("a" * 50_000 + "z")
    assert len(name) == NAME_LIMIT
    assert name.startswith("aaa")
    assert name.endswith("z")
    assert function_name("a" * NAME_LIMIT) == "a" * NAME_LIMIT
    assert len(site((Frame("p" * 50_000, "python"),)).frames[0]) == NAME_LIMIT


LIBPQ, LIBSSL = Module("/usr/lib/x86_64-linux-gnu/libpq.so.5"), Module("/usr/lib/x86_64-linux-gnu/libssl.so.3")
NODE = Module("/usr/bin/node")
RECV = kernel("__x64_sys_recv", "tcp_recvmsg", "sk_wait_data")


def test_the_own_function_that_calls_libraries_is_named() -> None:
    inside = (*user(LIBPQ, "PQexec", "pqReadData"), *user(LIBSSL, "SSL_read", "ssl_read_internal"))
    stack = (*user(EXE, "main", "serve", "load_session"), *inside, *user(LIBC, "recv"), *RECV)
    assert text(stack) == "serve > load_session > PQexec > … > recv | sk_wait_data"
    alone = (*user(EXE, "load_session"), *inside, *user(LIBC, "recv"), *RECV)
    assert text(alone) == "load_session > PQexec > … > ssl_read_internal > recv | sk_wait_data"


def test_it_has_the_same_name_whatever_other_waits_there_are() -> None:
    inside = (*user(LIBPQ, "PQexec", "pqReadData"), *user(LIBC, "recv"), *RECV)
    load = (*user(EXE, "main", "load_session"), *inside)
    others = [((*user(EXE, "main", name), *inside), 10) for name in ("save_session", "find_user")]
    assert site(load, shared_frames([(load, 10), *others])) == site(load)


def test_the_function_of_a_script_is_named_and_the_interpreter_is_not() -> None:
    stack = (
        *user(NODE, "main", "node::Start(int, char**)", "uv_run", "Builtins_JSEntry"),
        Frame("JS:^emit node:events:471:44", "jit"),
        Frame("JS:^ /srv/app.js:3:27", "jit"),
        *user(NODE, "Builtins_InterpreterEntryTrampoline"),
        Frame("JS:^loadSession /srv/app.js:2:21", "jit"),
        Frame("JS:^openSync node:fs:570:18", "jit"),
        *user(NODE, "v8::internal::Builtin_HandleApiCall(int, unsigned long*)", "node::fs::Open()", "uv__fs_work"),
        *user(LIBC, "open"),
        *kernel("__x64_sys_openat", "do_sys_openat2", "fifo_open", "wait_for_partner"),
    )
    assert text(stack) == "app.js:3 > … > loadSession > openSync > … > open | wait_for_partner"


def test_what_a_decorator_puts_around_a_library_s_function_is_not_told() -> None:
    """A function of a library that nothing else is called through is told, and one of the program, too."""
    own = python_of("/srv/train.py", ("<module>", 30), ("rank", 21))
    torch = "/usr/lib/python3/site-packages/torch/distributed"
    wrapper = python_of(f"{torch}/c10d_logger.py", ("_exception_logger.<locals>.wrapper", 83))
    reduce = python_of(f"{torch}/distributed_c10d.py", ("all_reduce", 3200))
    wait = (*user(LIBC, "pthread_cond_wait"), *FUTEX)
    called = "rank > all_reduce | futex_wait"
    assert text((*own, *wrapper, *reduce, *wait)).endswith(called)
    assert text((*own, *wrapper, *wrapper, *reduce, *wait)).endswith(called)
    assert text((*own, *wrapper, *wait)).endswith("rank > _exception_logger.<locals>.wrapper | futex_wait")
    native = user(Module("/usr/lib/python3/site-packages/torch/lib/libtorch.so"), "at::all_reduce")
    assert text((*own, *wrapper, *native, *wait)).endswith("rank > _exception_logger.<locals>.wrapper | futex_wait")
    mine = python_of("/srv/train.py", ("timed.<locals>.wrapper", 7))
    assert text((*own, *mine, *reduce, *wait)).endswith("timed.<locals>.wrapper > all_reduce | futex_wait")


def test_the_operation_in_which_ranks_meet_is_told_though_others_are_between() -> None:
    torch = Module("/usr/lib/python3/site-packages/torch/lib/libtorch_cpu.so")
    own = python_of("/srv/train.py", ("<module>", 30), ("rank", 21))
    reduce = python_of("/usr/lib/python3/site-packages/torch/distributed/distributed_c10d.py", ("all_reduce", 3200))
    inside = user(torch, "c10d::Work::wait(std::chrono::duration<long>)")
    wait = (*user(LIBSTDCXX, "std::condition_variable::wait(int&)"), *user(LIBC, "pthread_cond_wait"), *FUTEX)
    assert "rank > all_reduce > … > c10d::Work::wait > std::condition_variable::wait" in text(
        (*own, *reduce, *inside, *wait)
    )
    other = user(
        Module("/usr/lib/python3/site-packages/mine/libmine.so"), "c10d::Work::wait(std::chrono::duration<long>)"
    )
    assert "c10d::Work::wait" not in text((*own, *reduce, *other, *wait))
