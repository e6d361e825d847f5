from __future__ import annotations

import pytest
from stallscope.converters.model import Frame, Module, Stack
from stallscope.converters.summary.shared_frames import shared_frames
from stallscope.converters.summary.wait_sites import NAME_LIMIT, function_name, site
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


def test_python_frames_count_and_its_evaluator_does_not() -> None:
    python = Module("/usr/bin/python3.11")
    stack = (
        *user(python, "Py_BytesMain", "_PyEval_EvalFrameDefault"),
        *(Frame(name, "python", file="train.py") for name in ("<module>", "train", "step")),
        *user(python, "_PyEval_EvalFrameDefault", "cfunction_vectorcall", "time_sleep"),
        *user(LIBC, "clock_nanosleep"),
        *SLEEP,
    )
    assert text(stack) == "step > … > time_sleep > clock_nanosleep | do_nanosleep"
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
    assert site(ROW, shared).frames == ("XactLockTableWait", "LockAcquire", "ProcSleep", "epoll_wait")
    assert site(TUPLE, shared).frames == ("LockTuple", "LockAcquire", "ProcSleep", "epoll_wait")
    assert site(NAP, shared).frames == ("main", "pg_sleep", "epoll_wait")
    assert site(ROW).frames == ("WaitLatch", "WaitEventSetWait", "epoll_wait")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("topk", "topk"),
        ("topk(at::Tensor const&, long)", "topk"),
        ("at::native::topk<float, 4>(at::Tensor const&) const", "at::native::topk"),
        ("std::vector<int> ops::run<float>(std::function<void (int)>) const &", "ops::run"),
        ("void (anonymous namespace)::f(int)", "{anonymous}::f"),
        ("Queue::operator()(int) const", "Queue::operator()"),
        ("operator<<(std::ostream&, A const&)", "operator<<"),
        ("A::operator bool() const", "A::operator bool"),
        ("my_operator(int)", "my_operator"),
        ("f(int)::{lambda(int)#1}::operator()(int) const", "f::{lambda#1}::operator()"),
        ("<alloc::vec::Vec<T> as core::ops::Drop>::drop", "<alloc::vec::Vec<T> as core::ops::Drop>::drop"),
        ("alloc::vec::Vec<T>::push", "alloc::vec::Vec::push"),
        ("main.(*Server).Serve", "main.(*Server).Serve"),
        ("__mutex_lock.constprop.0", "__mutex_lock"),
        ("f(int) [clone .isra.0] [clone .cold]", "f"),
        ("broken(((", "broken((("),
        ("broken>>", "broken>>"),
        ("()", "()"),
        ("", ""),
    ],
)
def test_function_name(name: str, expected: str) -> None:
    assert function_name(name) == expected


def test_endless_name_is_bounded() -> None:
    name = function_name("a" * 50_000 + "z")
    assert len(name) == NAME_LIMIT
    assert name.startswith("aaa")
    assert name.endswith("z")
    assert function_name("a" * NAME_LIMIT) == "a" * NAME_LIMIT
    assert len(site((Frame("p" * 50_000, "python"),)).frames[0]) == NAME_LIMIT
