from __future__ import annotations

from stallscope.converters.facts.stacks import Stacks
from stallscope.converters.facts.waits import Waits
from stallscope.converters.model import Frame, Module, Stack
from summary_profiles import EPOLL, EXE, FUTEX, LIBC, kernel, user

CUDA = Module("/usr/lib/libcuda.so.1")
POSTGRES = Module("/usr/lib/postgresql/15/bin/postgres")


def names(stack: Stack) -> list[str]:
    return [told.name for told in Stacks().of(stack).user]


def test_the_kernels_frames_are_innermost_as_a_rule() -> None:
    program, below = user(EXE, "main", "read"), kernel("ksys_read", "anon_pipe_read")
    for stack in ((*program, *below), (program[0], *below, program[1])):  # others' readers mix them
        parts = Stacks().of(stack)
        assert (names(stack), parts.call, parts.kernel) == (["main", "read"], "read", "pipe_read")
    assert names(program) == ["main", "read"]
    assert names(below) == names(()) == []


def test_the_program_ends_where_only_calls_of_the_c_library_follow() -> None:
    parts = Stacks().of((*user(EXE, "main", "step"), *user(LIBC, "fread", "_IO_file_read", "__GI___libc_read"), *EPOLL))
    assert (parts.end, parts.called) == (2, "fread")
    parts = Stacks().of((*user(EXE, "main", "epoll_wait"), *EPOLL))
    assert (parts.end, parts.called) == (1, ""), "its own function for the system call"


def test_what_a_function_tells_is_found_out_once() -> None:
    there = [Frame("topk", "native", EXE, address) for address in (1, 2)]
    nameless = [Frame(f"[libcuda.so.1+{address}]", "native", CUDA) for address in ("0x1", "0x2")]
    lines = [Frame("step", "python", None, 0, "train.py", line) for line in (3, 4)]
    told = Stacks().of((*there, *nameless, *lines)).user
    assert told[0] is told[1]
    assert told[2] is told[3]
    assert [each.located for each in told[4:]] == ["train.py:3 step", "train.py:4 step"]


def test_functions_that_park_or_take_a_lock_of_their_program_are_found_anywhere() -> None:
    parks = (*user(EXE, "runtime.findRunnable", *"abcdefgh"), *FUTEX)
    locks = (*user(POSTGRES, "ProcSleep", *"abcdefgh"), *EPOLL)
    another = (*user(EXE, "ProcSleep"), *EPOLL)
    stacks = Stacks()
    found = [stacks.of(stack) for stack in (parks, locks, another)]
    assert [parts.is_marked for parts in found] == [True, True, False]
    assert [parts.parked for parts in found] == ["runtime.findRunnable", "", ""]


def test_equal_parts_that_decide_are_looked_at_once() -> None:
    waits = Waits()
    wait = user(LIBC, "pthread_cond_wait")
    one, other, epoll = ((*user(EXE, "main", "load"), *wait, *FUTEX), (*user(EXE, "save"), *wait, *FUTEX), EPOLL)
    assert waits.of(one, "interruptible") is waits.of(other, "interruptible")
    assert waits.of(one, "interruptible") != waits.of(epoll, "interruptible")
    assert waits.of(one, "interruptible") != waits.of(one, "runnable-woken")
